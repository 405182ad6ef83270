import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  LoaderError,
  type LoaderErrorCode,
} from "../../../src/loader/index.js";
import {
  createManifestFiles,
  readFound,
} from "../../../src/loader/manifest-file.js";
import type { Clock, ManifestBytes, ModuleFile } from "../../../src/ports.js";
import { scopeFromSignal } from "../../../src/request-scope.js";

const HOUR_MS = 3_600_000;
const MAX_BYTES = 65_536;

let root: string;
/** --module-dir, a real path. */
let dir: string;

describe("loader/manifest-file", () => {
  beforeEach(() => {
    root = realpathSync(
      mkdtempSync(path.join(tmpdir(), "function-wasm-manifest-")),
    );
    dir = path.join(root, "modules");
    mkdirSync(dir);
  });
  afterEach(() => {
    rmSync(root, { recursive: true });
  });

  it("reads a file and says what it holds", async () => {
    write("sub/wasmfn.yaml", "abi: 2\n");

    const manifest = await read("sub/wasmfn.yaml");

    expect(manifest).toEqual({
      form: "file",
      bytes: Buffer.from("abi: 2\n"),
      digest: digestOf("abi: 2\n"),
    });
  });

  it.each([
    { name: "a link to a file inside", manifestPath: "link.yaml" },
    { name: "a path with dots that stays inside", manifestPath: "x/../a.yaml" },
    {
      name: "an absolute path inside",
      manifestPath: () => path.join(dir, "a.yaml"),
    },
  ])("reads $name", async ({ manifestPath }) => {
    write("a.yaml", "a");
    symlinkSync("a.yaml", path.join(dir, "link.yaml"));

    const found = await read(
      typeof manifestPath === "string" ? manifestPath : manifestPath(),
    );

    expect(textOf(found)).toBe("a");
  });

  it("reads a file of just the size allowed", async () => {
    write("a.yaml", "x".repeat(MAX_BYTES));

    expect((await read("a.yaml")).bytes).toHaveLength(MAX_BYTES);
  });

  it("does not read an unchanged file again", async () => {
    const manifestOf = createReader();
    write("a.yaml", "a");

    const before = await manifestOf("a.yaml");
    const after = await manifestOf("a.yaml");

    expect(after).toBe(before);
  });

  it("keeps each of several manifests apart from the others", async () => {
    const manifestOf = createReader();
    const names = ["a", "b", "c"];
    for (const name of names) write(name, name);

    for (const name of [...names, ...names])
      expect(textOf(await manifestOf(name))).toBe(name);
  });

  it("reads again what it had to forget", async () => {
    const manifestOf = createReader();
    const names = Array.from({ length: 70 }, (_, i) => `m${String(i)}`);
    for (const name of names) write(name, name.padEnd(MAX_BYTES));

    const first = await manifestOf("m0");
    for (const name of names) await manifestOf(name);
    const again = await manifestOf("m0");

    expect(again).not.toBe(first);
    expect(again).toEqual(first);
  });

  describe("sees at once that a file", () => {
    it("was rewritten with as many bytes", async () => {
      const manifestOf = createReader({ nowMs: Date.now });
      const texts: string[] = [];

      for (let i = 0; i < 20; i++) {
        write("a.yaml", String(i % 10));
        texts.push(textOf(await manifestOf("a.yaml")));
      }

      expect(texts).toEqual(texts.map((_, i) => String(i % 10)));
    });

    it("was replaced by another of the same age and size", async () => {
      const manifestOf = createReader();
      const then = new Date("2020-01-01T00:00:00Z");
      for (const name of ["a.yaml", "b.yaml"]) {
        write(name, name.slice(0, 1));
        utimesSync(path.join(dir, name), then, then);
      }

      const before = await manifestOf("a.yaml");
      renameSync(path.join(dir, "b.yaml"), path.join(dir, "a.yaml"));
      const after = await manifestOf("a.yaml");

      expect([textOf(before), textOf(after)]).toEqual(["a", "b"]);
    });

    it("is gone", async () => {
      const manifestOf = createReader();
      write("a.yaml", "a");

      await manifestOf("a.yaml");
      rmSync(path.join(dir, "a.yaml"));

      await expect(manifestOf("a.yaml")).rejects.toMatchObject({
        code: "module-not-found",
      });
    });
  });

  describe("refuses", () => {
    it.each([
      {
        name: "a missing file",
        manifestPath: "missing.yaml",
        code: "module-not-found",
        want: "module.manifestPath missing.yaml: no such file under --module-dir",
      },
      {
        name: "a way out by dots",
        manifestPath: "../secret",
        code: "path-outside-module-dir",
        want: "module.manifestPath ../secret: the path leads out of --module-dir",
      },
      {
        name: "an absolute path",
        manifestPath: "/etc/passwd",
        code: "path-outside-module-dir",
        want: "module.manifestPath /etc/passwd: the path leads out of --module-dir",
      },
      {
        name: "a link that leads out",
        manifestPath: "out",
        code: "path-outside-module-dir",
        want: "module.manifestPath out: a symbolic link leads out of --module-dir",
      },
      {
        name: "a directory",
        manifestPath: "sub",
        code: "module-not-regular",
        want: "module.manifestPath sub: expected a regular file, got a directory",
      },
      {
        name: "a FIFO, without waiting for a writer",
        manifestPath: "fifo",
        code: "module-not-regular",
        want: "module.manifestPath fifo: expected a regular file, got a FIFO",
      },
      {
        name: "an empty file",
        manifestPath: "empty",
        code: "module-empty",
        want: "module.manifestPath empty: the file is empty",
      },
      {
        name: "a file one byte too large",
        manifestPath: "large",
        code: "module-too-large",
        want: "module.manifestPath large: the file has 65537 bytes, a module manifest may have 65536",
      },
      {
        name: "a file of a terabyte, unread",
        manifestPath: "huge",
        code: "module-too-large",
        want: "module.manifestPath huge: the file has 1099511627776 bytes, a module manifest may have 65536",
      },
      {
        name: "a NUL and a line break",
        manifestPath: "a\0\nb",
        code: "path-invalid",
        want: "module.manifestPath a\\u0000\\u000ab: the path holds a NUL character",
      },
    ] satisfies {
      name: string;
      manifestPath: string;
      code: LoaderErrorCode;
      want: string;
    }[])("$name", async ({ manifestPath, code, want }) => {
      write("empty", "");
      write("large", "x".repeat(MAX_BYTES + 1));
      write("huge", "");
      truncateSync(path.join(dir, "huge"), 2 ** 40);
      mkdirSync(path.join(dir, "sub"));
      writeFileSync(path.join(root, "secret"), "hunter2");
      symlinkSync("../secret", path.join(dir, "out"));
      execFileSync("mkfifo", [path.join(dir, "fifo")]);

      expect(await refusal(read(manifestPath))).toMatchObject({
        code,
        message: `cannot resolve module: ${want}`,
      });
    });

    it("to go on for a caller who has gone", async () => {
      write("a.yaml", "a");
      const manifestOf = createReader({ signal: AbortSignal.abort() });

      expect(await refusal(manifestOf("a.yaml"))).toMatchObject({
        code: "resolve-cancelled",
        message:
          "cannot resolve module: module.manifestPath a.yaml: the request ended while the file was being read",
      });
    });
  });

  describe("refuses a file that, once found,", () => {
    const CHANGED = {
      code: "module-changed",
      message:
        "cannot resolve module: module.manifestPath a.yaml: the file changed while it was being read",
    };

    it.each([
      { name: "was rewritten", content: "b: 1" },
      { name: "was cut short", content: "a:" },
      { name: "was emptied", content: "" },
    ])("$name", async ({ content }) => {
      const file = found("a: 1");
      write("a.yaml", content);

      expect(await refusal(readFound(file, "a.yaml"))).toMatchObject(CHANGED);
    });

    it("was removed", async () => {
      const file = found("a: 1");
      rmSync(file.filePath);

      expect(await refusal(readFound(file, "a.yaml"))).toMatchObject({
        code: "module-unreadable",
        message:
          "cannot resolve module: module.manifestPath a.yaml: the file cannot be read (ENOENT)",
      });
    });

    it("became a link", async () => {
      const file = found("a: 1");
      write("b.yaml", "a: 1");
      rmSync(file.filePath);
      symlinkSync("b.yaml", file.filePath);

      expect(await refusal(readFound(file, "a.yaml"))).toMatchObject({
        code: "module-unreadable",
        message:
          "cannot resolve module: module.manifestPath a.yaml: the file cannot be read (ELOOP)",
      });
    });
  });

  it("takes of a file that has grown what it held when it was found", async () => {
    const file = found("a: 1");
    write("a.yaml", `a: 1${"x".repeat(1000)}`);

    expect(Buffer.from(await readFound(file, "a.yaml")).toString()).toBe(
      "a: 1",
    );
  });
});

interface ReaderOptions {
  readonly nowMs?: Clock["nowMs"];
  readonly signal?: AbortSignal;
}

/** By default at a time when every file has long been settled, so that digests are remembered. */
function createReader(options: ReaderOptions = {}) {
  const nowMs = options.nowMs ?? (() => Date.now() + HOUR_MS);
  const files = createManifestFiles(dir, { nowMs, monotonicMs: nowMs });
  const signal = options.signal ?? new AbortController().signal;
  return (manifestPath: string): Promise<ManifestBytes> =>
    files.read(manifestPath, scopeFromSignal(Infinity, signal));
}

function read(manifestPath: string): Promise<ManifestBytes> {
  return createReader()(manifestPath);
}

/** The file `a.yaml`, written and found. */
function found(content: string): ModuleFile {
  write("a.yaml", content);
  const filePath = path.join(dir, "a.yaml");
  return {
    digest: digestOf(content),
    filePath,
    sizeBytes: statSync(filePath).size,
    description: "Path a.yaml",
  };
}

async function refusal(result: Promise<unknown>): Promise<LoaderError> {
  const outcome: unknown = await result.catch((error: unknown) => error);
  if (outcome instanceof LoaderError) return outcome;
  throw new Error(`no LoaderError but ${JSON.stringify(outcome)}`, {
    cause: outcome,
  });
}

function write(name: string, content: string): void {
  const file = path.join(dir, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, content);
}

function textOf({ bytes }: ManifestBytes): string {
  return Buffer.from(bytes).toString();
}

function digestOf(content: string): `sha256:${string}` {
  return `sha256:${createHash("sha256").update(content).digest("hex")}`;
}
