import { createHash } from "node:crypto";
import {
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findModuleFile } from "../../../src/loader/index.js";
import { createRequestScope } from "../../../src/request-scope.js";
import { openScope } from "./loading.js";

const MAX_BYTES = 8;

let dir: string;

beforeEach(() => {
  dir = mkdtempSync(path.join(tmpdir(), "module-file-"));
});
afterEach(() => {
  rmSync(dir, { recursive: true });
});

describe("loader/module-file", () => {
  it("finds a file, also behind a link", async () => {
    writeFileSync(path.join(dir, "fn.wasm"), "12345678");
    symlinkSync("fn.wasm", path.join(dir, "link"));
    const hex = createHash("sha256").update("12345678").digest("hex");

    const found = await find("link");

    expect(found).toEqual({
      digest: `sha256:${hex}`,
      filePath: path.join(dir, "fn.wasm"),
      sizeBytes: 8,
      description: path.join(dir, "link"),
    });
  });

  it.each([
    {
      name: "nothing",
      make: () => undefined,
      code: "module-not-found",
      want: "no such file",
    },
    {
      name: "a directory",
      make: (file: string) => mkdirSync(file),
      code: "module-not-regular",
      want: "expected a regular file",
    },
    {
      name: "an empty file",
      make: (file: string) => writeFileSync(file, ""),
      code: "module-empty",
      want: "the file is empty",
    },
    {
      name: "a file that is too large",
      make: (file: string) => writeFileSync(file, "123456789"),
      code: "module-too-large",
      want: "the file has 9 bytes, --max-module-size allows 8",
    },
  ])("refuses $name", async ({ make, code, want }) => {
    make(path.join(dir, "fn.wasm"));

    await expect(find("fn.wasm")).rejects.toMatchObject({
      code,
      message: `module ${path.join(dir, "fn.wasm")}: ${want}`,
    });
  });

  it("escapes the name of a file", async () => {
    await expect(find("a\n\u202e")).rejects.toThrow(
      `module ${dir}/a\\u000a\\u202e: no such file`,
    );
  });

  it("stops when its caller goes away", async () => {
    writeFileSync(path.join(dir, "fn.wasm"), "1");
    const scope = createRequestScope({ deadlineAtMs: Infinity });
    scope.cancel();

    await expect(
      findModuleFile(path.join(dir, "fn.wasm"), MAX_BYTES, scope),
    ).rejects.toMatchObject({ code: "resolve-cancelled" });
  });
});

function find(name: string) {
  return findModuleFile(path.join(dir, name), MAX_BYTES, openScope());
}
