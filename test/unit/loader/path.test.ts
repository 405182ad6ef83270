import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  LoaderError,
  type LoaderErrorCode,
} from "../../../src/loader/index.js";
import { createPathSource } from "../../../src/loader/path.js";
import type { Clock, ModuleFile } from "../../../src/ports.js";
import { scopeFromSignal } from "../../../src/request-scope.js";

const HOUR_MS = 3_600_000;
const MAX_BYTES = 1000;
const NOBODY = 65534;

let root: string;
/** --module-dir, a real path. */
let dir: string;

describe("loader/path", () => {
  beforeEach(() => {
    root = realpathSync(
      mkdtempSync(path.join(tmpdir(), "function-wasm-path-")),
    );
    dir = path.join(root, "modules");
    mkdirSync(dir);
  });
  afterEach(() => {
    rmSync(root, { recursive: true });
  });

  it("finds a file and says what it holds", async () => {
    write("sub/greeter.wasm", "hello");

    expect(await resolve("sub/greeter.wasm")).toEqual({
      digest: digestOf("hello"),
      filePath: path.join(dir, "sub/greeter.wasm"),
      sizeBytes: 5,
      description: "Path sub/greeter.wasm",
    });
  });

  describe("finds", () => {
    it.each([
      {
        name: "a path with dots that stays inside",
        modulePath: "./x/../sub/a.wasm",
      },
      { name: "a name that begins with two dots", modulePath: "..a.wasm" },
      {
        name: "an absolute path inside",
        modulePath: () => path.join(dir, "sub/a.wasm"),
      },
      { name: "a link to a file inside", modulePath: "link.wasm" },
      {
        name: "an absolute link to a file inside",
        modulePath: "absolute-link.wasm",
      },
      {
        name: "a link through a linked directory",
        modulePath: "linked/a.wasm",
      },
    ])("$name", async ({ modulePath }) => {
      write("sub/a.wasm", "a");
      write("..a.wasm", "a");
      symlinkSync("sub/a.wasm", path.join(dir, "link.wasm"));
      symlinkSync(
        path.join(dir, "sub/a.wasm"),
        path.join(dir, "absolute-link.wasm"),
      );
      symlinkSync("sub", path.join(dir, "linked"));

      const found = await resolve(
        typeof modulePath === "string" ? modulePath : modulePath(),
      );

      expect(found.digest).toBe(digestOf("a"));
    });

    it("a file of just the size allowed", async () => {
      write("a.wasm", "x".repeat(MAX_BYTES));

      expect((await resolve("a.wasm")).sizeBytes).toBe(MAX_BYTES);
    });

    it("what a Kubernetes volume shows, before and after an update", async () => {
      write("..v1/a.wasm", "one");
      symlinkSync("..v1", path.join(dir, "..data"));
      symlinkSync("..data/a.wasm", path.join(dir, "a.wasm"));
      const loader = createTestLoader();

      const before = await loader("a.wasm");
      write("..v2/a.wasm", "two");
      symlinkSync("..v2", path.join(dir, "..data_tmp"));
      renameSync(path.join(dir, "..data_tmp"), path.join(dir, "..data"));
      rmSync(path.join(dir, "..v1"), { recursive: true });
      const after = await loader("a.wasm");

      expect(before.digest).toBe(digestOf("one"));
      expect(after.digest).toBe(digestOf("two"));
      expect(after.filePath).toBe(path.join(dir, "..v2/a.wasm"));
    });

    it("what a --module-dir that is a link shows, before and after it moves", async () => {
      writeFileSync(path.join(mkdir("r1"), "a.wasm"), "one");
      writeFileSync(path.join(mkdir("r2"), "a.wasm"), "two");
      const current = path.join(root, "current");
      symlinkSync("r1", current);
      const loader = createTestLoader({ moduleDir: current });

      const before = await loader("a.wasm");
      symlinkSync("r2", path.join(root, "next"));
      renameSync(path.join(root, "next"), current);
      const after = await loader(path.join(current, "a.wasm"));

      expect(before.digest).toBe(digestOf("one"));
      expect(after.digest).toBe(digestOf("two"));
    });
  });

  describe("sees at once that a file", () => {
    it("was rewritten with as many bytes", async () => {
      const loader = createTestLoader({ nowMs: Date.now });
      const digests: string[] = [];

      for (let i = 0; i < 20; i++) {
        write("a.wasm", String(i % 10));
        digests.push((await loader("a.wasm")).digest);
      }

      expect(digests).toEqual(digests.map((_, i) => digestOf(String(i % 10))));
    });

    it("was rewritten and given its old time of change", async () => {
      const loader = createTestLoader();
      const then = new Date("2020-01-01T00:00:00Z");
      write("a.wasm", "a");
      utimesSync(path.join(dir, "a.wasm"), then, then);

      const before = await loader("a.wasm");
      await sleep(20);
      write("a.wasm", "b");
      utimesSync(path.join(dir, "a.wasm"), then, then);
      const after = await loader("a.wasm");

      expect(before.digest).toBe(digestOf("a"));
      expect(after.digest).toBe(digestOf("b"));
    });

    it("is gone", async () => {
      const loader = createTestLoader();
      write("a.wasm", "a");

      await loader("a.wasm");
      rmSync(path.join(dir, "a.wasm"));

      await expect(loader("a.wasm")).rejects.toMatchObject({
        code: "module-not-found",
      });
    });
  });

  describe("refuses", () => {
    it.each([
      {
        name: "a missing file",
        modulePath: "missing.wasm",
        code: "module-not-found",
        want: "module Path missing.wasm: no such file under --module-dir",
      },
      {
        name: "a link to nothing",
        modulePath: "dangling",
        code: "module-not-found",
        want: "no such file under --module-dir",
      },
      {
        name: "a file taken for a directory",
        modulePath: "a.wasm/b.wasm",
        code: "module-not-found",
        want: "no such file under --module-dir",
      },
      {
        name: "a way out by dots",
        modulePath: "../secret",
        code: "path-outside-module-dir",
        want: "the path leads out of --module-dir",
      },
      {
        name: "a way out by dots from within",
        modulePath: "sub/../../secret",
        code: "path-outside-module-dir",
        want: "the path leads out of --module-dir",
      },
      {
        name: "dots alone",
        modulePath: "..",
        code: "path-outside-module-dir",
        want: "the path leads out of --module-dir",
      },
      {
        name: "a neighbour with the same beginning",
        modulePath: "../modules-old/a.wasm",
        code: "path-outside-module-dir",
        want: "the path leads out of --module-dir",
      },
      {
        name: "an absolute path",
        modulePath: "/etc/passwd",
        code: "path-outside-module-dir",
        want: "the path leads out of --module-dir",
      },
      {
        name: "the root",
        modulePath: "/",
        code: "path-outside-module-dir",
        want: "the path leads out of --module-dir",
      },
      {
        name: "an absolute path to nothing",
        modulePath: "/no/such/file",
        code: "path-outside-module-dir",
        want: "the path leads out of --module-dir",
      },
      {
        name: "a link that leads out",
        modulePath: "out",
        code: "path-outside-module-dir",
        want: "a symbolic link leads out of --module-dir",
      },
      {
        name: "a file behind a linked directory that leads out",
        modulePath: "old/a.wasm",
        code: "path-outside-module-dir",
        want: "a symbolic link leads out of --module-dir",
      },
      {
        name: "a link to /dev/zero",
        modulePath: "zero",
        code: "path-outside-module-dir",
        want: "a symbolic link leads out of --module-dir",
      },
      {
        name: "a directory",
        modulePath: "sub",
        code: "module-not-regular",
        want: "expected a regular file, got a directory",
      },
      {
        name: "--module-dir itself",
        modulePath: ".",
        code: "module-not-regular",
        want: "expected a regular file, got a directory",
      },
      {
        name: "a FIFO, without waiting for a writer",
        modulePath: "fifo",
        code: "module-not-regular",
        want: "expected a regular file, got a FIFO",
      },
      {
        name: "a link to a FIFO",
        modulePath: "fifo-link",
        code: "module-not-regular",
        want: "expected a regular file, got a FIFO",
      },
      {
        name: "an empty file",
        modulePath: "empty",
        code: "module-empty",
        want: "the file is empty",
      },
      {
        name: "a file one byte too large",
        modulePath: "large",
        code: "module-too-large",
        want: "the file has 1001 bytes, --max-module-size allows 1000",
      },
      {
        name: "a file of a terabyte",
        modulePath: "huge",
        code: "module-too-large",
        want: "the file has 1099511627776 bytes, --max-module-size allows 1000",
      },
      {
        name: "a link to itself",
        modulePath: "loop",
        code: "module-unreadable",
        want: "the file cannot be read (ELOOP)",
      },
      {
        name: "an empty path",
        modulePath: "",
        code: "path-invalid",
        want: "the path is empty",
      },
      {
        name: "a NUL",
        modulePath: "a.wasm\0.txt",
        code: "path-invalid",
        want: "module Path a.wasm\\u0000.txt: the path holds a NUL character",
      },
      {
        name: "a name too long",
        modulePath: "a".repeat(300),
        code: "path-invalid",
        want: "the path is too long",
      },
      {
        name: "a line break",
        modulePath: "a\nb",
        code: "module-not-found",
        want: "module Path a\\u000ab: no such file",
      },
    ] satisfies {
      name: string;
      modulePath: string;
      code: LoaderErrorCode;
      want: string;
    }[])("$name", async ({ modulePath, code, want }) => {
      write("a.wasm", "a");
      write("empty", "");
      write("large", "x".repeat(MAX_BYTES + 1));
      write("huge", "");
      truncateSync(path.join(dir, "huge"), 2 ** 40);
      write("sub/a.wasm", "a");
      writeFileSync(path.join(root, "secret"), "hunter2");
      writeFileSync(path.join(mkdir("modules-old"), "a.wasm"), "a");
      execFileSync("mkfifo", [path.join(dir, "fifo")]);
      for (const [link, target] of [
        ["dangling", "missing"],
        ["out", "../secret"],
        ["old", "../modules-old"],
        ["zero", "/dev/zero"],
        ["fifo-link", "fifo"],
        ["loop", "loop"],
      ] as const) {
        symlinkSync(target, path.join(dir, link));
      }

      const error = await refusal(resolve(modulePath));

      expect(error.code).toBe(code);
      expect(error.message).toContain(want);
      expect(error.message).toMatch(
        /^cannot resolve module: module Path [^\n]{1,300}$/,
      );
      expect(
        error.message,
        "an operator's path is nobody else's business",
      ).not.toContain(root);
    });

    it("a device", async () => {
      const error = await refusal(
        createTestLoader({ moduleDir: "/dev" })("zero"),
      );

      expect(error).toMatchObject({
        code: "module-not-regular",
        message:
          "cannot resolve module: module Path zero: expected a regular file, got a device",
      });
    });

    it("a socket", async () => {
      const server = createServer().listen(path.join(dir, "socket"));
      await new Promise((done) => server.once("listening", done));

      const error = await refusal(resolve("socket"));
      await new Promise((done) => server.close(done));

      expect(error).toMatchObject({
        code: "module-not-regular",
        message:
          "cannot resolve module: module Path socket: expected a regular file, got a socket",
      });
    });

    it("a file that may not be read", async () => {
      chmodSync(root, 0o755);
      write("a.wasm", "a");
      chmodSync(path.join(dir, "a.wasm"), 0o000);

      const error = await asOrdinaryUser(() => refusal(resolve("a.wasm")));

      expect(error).toMatchObject({
        code: "module-unreadable",
        message:
          "cannot resolve module: module Path a.wasm: the file cannot be read (EACCES)",
      });
    });

    it("a directory that may not be searched", async () => {
      chmodSync(root, 0o755);
      write("closed/a.wasm", "a");
      chmodSync(path.join(dir, "closed"), 0o000);

      const error = await asOrdinaryUser(() =>
        refusal(resolve("closed/a.wasm")),
      );
      chmodSync(path.join(dir, "closed"), 0o755);

      expect(error).toMatchObject({
        code: "module-unreadable",
        message:
          "cannot resolve module: module Path closed/a.wasm: the file cannot be read (EACCES)",
      });
    });

    it("every path while --module-dir is missing", async () => {
      const error = await refusal(
        createTestLoader({ moduleDir: path.join(root, "no") })("a.wasm"),
      );

      expect(error).toMatchObject({
        code: "module-dir-unreadable",
        message:
          "cannot resolve module: module Path a.wasm: --module-dir cannot be read (ENOENT)",
      });
    });

    it("to go on for a caller who has gone", async () => {
      write("a.wasm", "a");

      const error = await refusal(
        createTestLoader({ signal: AbortSignal.abort() })("a.wasm"),
      );

      expect(error).toMatchObject({
        code: "resolve-cancelled",
        message:
          "cannot resolve module: module Path a.wasm: the request ended while the file was being read",
      });
    });
  });
});

interface TestOptions {
  readonly moduleDir?: string;
  readonly nowMs?: Clock["nowMs"];
  readonly signal?: AbortSignal;
}

/** By default at a time when every file has long been settled, so that digests are remembered. */
function createTestLoader(options: TestOptions = {}) {
  const nowMs = options.nowMs ?? (() => Date.now() + HOUR_MS);
  const source = createPathSource(
    {
      moduleDir: options.moduleDir ?? dir,
      maxBytes: MAX_BYTES,
      maxBytesRule: "--max-module-size allows",
      subject: "module Path",
    },
    { nowMs, monotonicMs: nowMs },
  );
  const signal = options.signal ?? new AbortController().signal;
  return (modulePath: string): Promise<ModuleFile> =>
    source.resolve(modulePath, scopeFromSignal(Infinity, signal));
}

function resolve(modulePath: string): Promise<ModuleFile> {
  return createTestLoader()(modulePath);
}

async function refusal(result: Promise<ModuleFile>): Promise<LoaderError> {
  const outcome: unknown = await result.catch((error: unknown) => error);
  if (outcome instanceof LoaderError) return outcome;
  throw new Error(`no LoaderError but ${JSON.stringify(outcome)}`, {
    cause: outcome,
  });
}

/** Root may read everything, so root becomes somebody else for a moment. */
async function asOrdinaryUser<T>(act: () => Promise<T>): Promise<T> {
  if (process.geteuid?.() !== 0) return await act();
  process.seteuid?.(NOBODY);
  try {
    return await act();
  } finally {
    process.seteuid?.(0);
  }
}

function write(name: string, content: string): void {
  const file = path.join(dir, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, content);
}

function mkdir(name: string): string {
  const made = path.join(root, name);
  mkdirSync(made);
  return made;
}

function digestOf(content: string): string {
  return `sha256:${createHash("sha256").update(content).digest("hex")}`;
}
