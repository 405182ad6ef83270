import { mkdtempSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { sourceParsers } from "../../support/source-parsers.js";
import {
  type ScriptedRegistry,
  startScriptedRegistry,
} from "../../support/scripted-registry.js";
import { createTestLoader, openScope, pinned } from "./loading.js";

const WASM = Buffer.from("\0asm\x01\0\0\0 a module");

let dir: string;
let registry: ScriptedRegistry;

beforeEach(async () => {
  dir = mkdtempSync(path.join(tmpdir(), "loader-"));
  registry = await startScriptedRegistry();
});

afterEach(async () => {
  await registry.stop();
  rmSync(dir, { recursive: true, force: true });
});

describe("loader/loader", () => {
  it("smoke", async () => {
    const { manifestDigest, moduleDigest } = await registry.addModule("a/b", {
      wasm: WASM,
    });
    const { loader } = createTestLoader({ cacheDir: dir });
    const source = pinned(`${registry.authority}/a/b`, manifestDigest);

    const found = await loader.resolve(
      source,
      { credentialOf: () => null, redirectFence: null },
      openScope(),
    );
    expect(found.module.digest).toBe(moduleDigest);
    const file = await found.module.locate();
    expect(await readFile(file.filePath)).toEqual(WASM);
    console.log(
      registry.requests.map((r) => r.method + " " + r.path),
      file,
      sourceParsers.parseDigest("x").kind,
    );
    const t = performance.now();
    for (let i = 0; i < 2000; i++)
      await loader.resolve(
        source,
        { credentialOf: () => null, redirectFence: null },
        openScope(),
      );
    console.log("us per resolve", (performance.now() - t) / 2);
    await loader.close();
  });
});
