import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  appendFileSync,
  type BigIntStats,
  lstatSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fileStateKey, hashFile } from "../../../src/loader/hash-file.js";

/** Takes so long to hash that a test can get between. */
const LARGE_BYTES = 128 * 1024 * 1024;

let file: string;
let dir: string;

describe("loader/hash-file", () => {
  beforeEach(() => {
    dir = mkdtempSync(path.join(tmpdir(), "function-wasm-hash-"));
    file = path.join(dir, "a.wasm");
  });
  afterEach(() => {
    rmSync(dir, { recursive: true });
  });

  it.each([1, 1000, 256 * 1024, 256 * 1024 + 1, 1024 * 1024 - 1])(
    "hashes a file of %d bytes",
    async (sizeBytes) => {
      const content = Buffer.alloc(sizeBytes, "function-wasm ");
      writeFileSync(file, content);

      const result = await hashFile(file, stats(), never());

      const want = `sha256:${createHash("sha256").update(content).digest("hex")}`;
      expect(result).toEqual({ kind: "ok", digest: want });
    },
  );

  it.each([
    {
      name: "was written to",
      change: () => {
        appendFileSync(file, "b");
      },
    },
    {
      name: "was removed",
      change: () => {
        unlinkSync(file);
      },
    },
    {
      name: "was replaced by another with the same bytes",
      change: () => {
        writeFileSync(`${file}.new`, "a");
        execFileSync("mv", [`${file}.new`, file]);
      },
    },
    {
      name: "became a symbolic link",
      change: () => {
        execFileSync("mv", [file, `${file}.old`]);
        symlinkSync(`${file}.old`, file);
      },
    },
    {
      name: "became a FIFO",
      change: () => {
        unlinkSync(file);
        execFileSync("mkfifo", [file]);
      },
    },
  ])("refuses a file that $name before it was opened", async ({ change }) => {
    writeFileSync(file, "a");
    const before = stats();
    change();

    const result = await hashFile(file, before, never());

    expect(result).toMatchObject({ kind: "refused", code: "module-changed" });
  });

  it.each([
    {
      name: "grows",
      change: () => {
        appendFileSync(file, "b");
      },
    },
    {
      name: "shrinks",
      change: () => {
        truncateSync(file, 1);
      },
    },
  ])("refuses a file that $name while it is read", async ({ change }) => {
    writeLargeFile();

    const result = hashFile(file, stats(), never());
    await sleep(2);
    change();

    expect(await result).toMatchObject({
      kind: "refused",
      code: "module-changed",
    });
  });

  it("stops when nobody waits any more", async () => {
    writeLargeFile();
    const abort = new AbortController();

    const result = hashFile(file, stats(), abort.signal);
    await sleep(2);
    abort.abort();

    expect(await result).toMatchObject({
      kind: "refused",
      code: "resolve-cancelled",
    });
  });

  it("lets others run while it hashes a large file", async () => {
    writeLargeFile();
    let turns = 0;
    const timer = setInterval(() => {
      turns += 1;
    }, 1);

    await hashFile(file, stats(), never());
    clearInterval(timer);

    expect(turns).toBeGreaterThan(5);
  });
});

describe("loader/hash-file fileStateKey", () => {
  it.each(["dev", "ino", "size", "mtimeNs", "ctimeNs"] as const)(
    "depends on %s",
    (field) => {
      const before = lstatSync(tmpdir(), { bigint: true });
      const after = Object.assign(Object.create(before) as BigIntStats, {
        [field]: before[field] + 1n,
      });

      expect(fileStateKey(after)).not.toBe(fileStateKey(before));
    },
  );
});

function stats(): BigIntStats {
  return lstatSync(file, { bigint: true });
}

function writeLargeFile(): void {
  writeFileSync(file, "");
  truncateSync(file, LARGE_BYTES);
}

function never(): AbortSignal {
  return new AbortController().signal;
}
