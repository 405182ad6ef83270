import type * as ChildProcesses from "node:child_process";
import { ChildProcess } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import {
  createCompiler,
  type Compiler,
  type CompilerOptions,
} from "../../../src/engine/compiler.js";
import type * as Native from "../../../src/engine/native.js";
import type { ModuleFile } from "../../../src/ports.js";
import {
  clock,
  createLogCollector,
  MiB,
  writeModule,
  type LogLine,
} from "../../support/engine.js";
import { assembleText } from "../../support/guests.js";

/** What is started in the compiler's place; `null` = the compiler, which these tests need built. */
const started = vi.hoisted(() => ({
  program: null as string | null,
  spawn: null as (() => ChildProcess) | null,
}));
vi.mock("../../../src/engine/native.js", async (original) => {
  const native = await original<typeof Native>();
  return {
    ...native,
    get compilerPath() {
      return started.program ?? native.compilerPath;
    },
  };
});
vi.mock("node:child_process", async (original) => {
  const real = await original<typeof ChildProcesses>();
  return {
    ...real,
    spawn: (...call: Parameters<typeof real.spawn>) =>
      started.spawn?.() ?? real.spawn(...call),
  };
});

const SMALL_BYTES = 2 * MiB;

let dir: string;
let compilers: Compiler[];
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "compiler-test-"));
  compilers = [];
});
afterEach(() => {
  for (const compiler of compilers) compiler.close();
  started.program = null;
  started.spawn = null;
  vi.useRealTimers();
  vi.unstubAllEnvs();
  rmSync(dir, { recursive: true, force: true });
});

function open(options: Partial<CompilerOptions> = {}): {
  compiler: Compiler;
  lines: LogLine[];
} {
  const { logger, lines } = createLogCollector();
  const compiler = createCompiler(
    { stackLimitBytes: 512 * 1024, maxConcurrentCompiles: 1, ...options },
    clock,
    logger,
  );
  compilers.push(compiler);
  return { compiler, lines };
}

async function module(text: string): Promise<ModuleFile> {
  return await writeModule(dir, "Path m.wasm", await assembleText(text));
}

const artifact = (name = "artifact") => join(dir, name);

/** A file of that size, that only a stand-in is asked to compile. */
function moduleOfSize(name: string, sizeBytes: number): ModuleFile {
  return {
    digest: `sha256:${name}`,
    filePath: join(dir, name),
    sizeBytes,
    description: `Path ${name}`,
  };
}

/** Starts a shell script in the compiler's place; `$1` is the job. */
function standIn(script: string): void {
  started.program = join(dir, "stand-in");
  writeFileSync(started.program, `#!/bin/sh\n${script}\n`);
  chmodSync(started.program, 0o700);
}

/** A stand-in that writes `<dir>/<artifact's name>.started` and then takes as long as it may. */
function standInThatWaits(): void {
  standIn(
    `path=\${1#*'"artifactPath":"'}; echo $$ > "\${path%%'"'*}.started"; exec sleep 600`,
  );
}

async function until(condition: () => boolean): Promise<void> {
  await vi.waitFor(() => expect(condition()).toBe(true), {
    timeout: 20_000,
    interval: 5,
  });
}

const hasStarted = (name: string) => existsSync(artifact(`${name}.started`));

function pidOf(name: string): number {
  return Number(readFileSync(artifact(`${name}.started`), "utf8"));
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe("engine/compiler with the real compiler", () => {
  it("writes a private artifact, and says so in the log", async () => {
    const { compiler, lines } = open();
    const file = await module('(module (func (export "f")))');

    const failure = await compiler.compile(file, "core", artifact());

    expect(failure).toBeNull();
    expect(statSync(artifact()).size).toBeGreaterThan(0);
    expect(statSync(artifact()).mode & 0o777).toBe(0o600);
    expect(lines).toEqual([
      {
        level: "info",
        message: "compiled",
        fields: {
          digest: file.digest,
          sizeBytes: file.sizeBytes,
          kind: "core",
          elapsedMs: expect.any(Number) as number,
        },
      },
    ]);
  });

  it("compiles a component", async () => {
    const { compiler } = open();
    const file = await module("(component)");

    expect(await compiler.compile(file, "component", artifact())).toBeNull();

    expect(existsSync(artifact())).toBe(true);
  });

  it.each([
    {
      name: "a body that does not validate",
      text: "(module (func (result i32) i64.const 1))",
      kind: "core" as const,
      want: /type mismatch: expected i32, found i64/,
    },
    {
      name: "a component that should be a core module",
      text: "(component)",
      kind: "core" as const,
      want: /component/,
    },
    {
      name: "a core module that should be a component",
      text: "(module)",
      kind: "component" as const,
      want: /module/,
    },
  ])("refuses $name", async ({ text, kind, want }) => {
    const { compiler, lines } = open();

    const failure = await compiler.compile(
      await module(text),
      kind,
      artifact(),
    );

    expect(failure).toEqual({
      kind: "refused",
      text: expect.stringMatching(want) as string,
    });
    expect(existsSync(artifact())).toBe(false);
    expect(lines).toMatchObject([
      { level: "warn", message: "compile failed", fields: { failure } },
    ]);
  });

  it("escapes what it quotes of a module", async () => {
    const { compiler } = open();
    const name = String.raw`a\1b[31m\0d\0a\e2\80\ae`;
    const file = await module(
      `(module (func) (export "${name}" (func 0)) (export "${name}" (func 0)))`,
    );

    const failure = await compiler.compile(file, "core", artifact());

    expect(failure?.kind).toBe("refused");
    expect(failure?.text).toContain(String.raw`a\u001b[31m`);
    expect(failure?.text).toMatch(/^[^\p{C}\p{Zl}\p{Zp}]*$/u);
  });

  it.each([
    { name: "another digest", change: { digest: `sha256:${"0".repeat(64)}` } },
    { name: "another size", change: { sizeBytes: 7 } },
  ] satisfies { name: string; change: Partial<ModuleFile> }[])(
    "notices that the file is not what it was: $name",
    async ({ change }) => {
      const { compiler } = open();
      const file = { ...(await module("(module)")), ...change };

      const failure = await compiler.compile(file, "core", artifact());

      expect(failure).toEqual({
        kind: "changed",
        text: expect.stringMatching(
          /^the file changed while it was loaded: expected .*, got /,
        ) as string,
      });
      expect(existsSync(artifact())).toBe(false);
    },
  );

  it.each([
    {
      name: "the module has gone",
      change: { filePath: "/nowhere/m.wasm" },
      path: artifact,
      kind: "io",
      want: /^cannot open the module file: /,
    },
    {
      name: "the artifact's directory is missing",
      change: {},
      path: () => join(dir, "missing", "artifact"),
      kind: "unwritable",
      want: /^cannot write the artifact: /,
    },
    {
      name: "the artifact is there",
      change: {},
      path: () => join(dir, "m.wasm"),
      kind: "unwritable",
      want: /^cannot write the artifact: /,
    },
  ])("says that it cannot read or write when $name", async (row) => {
    const { compiler } = open();
    const file = { ...(await module("(module)")), ...row.change };

    const failure = await compiler.compile(file, "core", row.path());

    expect(failure).toEqual({
      kind: row.kind,
      text: expect.stringMatching(row.want) as string,
    });
  });
});

describe("engine/compiler child process", () => {
  it("gives the child nothing of the server's environment", async () => {
    vi.stubEnv("REGISTRY_PASSWORD", "secret");
    standIn('tr "\\0" "\\n" < /proc/$$/environ > "${0%/*}/environment"');
    const { compiler } = open();

    await compiler.compile(moduleOfSize("m", 1), "core", artifact());

    const names = readFileSync(join(dir, "environment"), "utf8")
      .split("\n")
      .map((line) => line.split("=")[0])
      .filter((name) => name !== "");
    expect(names).toEqual(["RAYON_NUM_THREADS"]);
  });

  it("limits CPU and address space by the module's size", async () => {
    standIn(
      'printf %s "$1" > "${0%/*}/job-$$"; printf %s "$1" > "${0%/*}/job"',
    );
    const { compiler } = open({ stackLimitBytes: 12345 });
    const job = async (sizeBytes: number) => {
      await compiler.compile(moduleOfSize("m", sizeBytes), "core", artifact());
      return JSON.parse(readFileSync(join(dir, "job"), "utf8")) as unknown;
    };

    expect(await job(1)).toEqual({
      modulePath: join(dir, "m"),
      digest: "sha256:m",
      sizeBytes: 1,
      kind: "core",
      artifactPath: artifact(),
      stackLimitBytes: 12345,
      cpuLimitSeconds: 23,
      addressSpaceBytes: 256 * MiB + 20,
    });
    expect(await job(77 * MiB)).toMatchObject({
      cpuLimitSeconds: 20 + 3 * 77,
      addressSpaceBytes: 256 * MiB + 20 * 77 * MiB,
    });
  });

  it.each([
    {
      name: "its CPU limit",
      script: "kill -XCPU $$",
      want: "it needs more than 23 CPU seconds or 256 MiB (SIGXCPU)",
    },
    {
      name: "its address space",
      script: "echo 'memory allocation failed' >&2; kill -ABRT $$",
      want: "it needs more than 23 CPU seconds or 256 MiB (SIGABRT)",
    },
    {
      name: "a crash",
      script: "kill -SEGV $$",
      want: "it needs more than 23 CPU seconds or 256 MiB (SIGSEGV)",
    },
    {
      name: "a panic, whose text is the module's in part",
      script:
        "printf 'panicked at \\033[31m\\r\"x\"\\nnote: more' >&2; exit 101",
      want: String.raw`it needs more than 23 CPU seconds or 256 MiB (panicked at \u001b[31m\u000d\"x\")`,
    },
    {
      name: "silence",
      script: "exit 1",
      want: "it needs more than 23 CPU seconds or 256 MiB ()",
    },
    {
      name: "an answer that is none",
      script: "echo null; exit 1",
      want: "it needs more than 23 CPU seconds or 256 MiB ()",
    },
    {
      name: "an answer without a message",
      script: `echo '{"ok":false,"code":"invalid"}'; exit 2`,
      want: "it needs more than 23 CPU seconds or 256 MiB ()",
    },
    {
      name: "an answer without end",
      script: "head -c 1000000 /dev/zero | tr '\\0' '{'; exit 2",
      want: "it needs more than 23 CPU seconds or 256 MiB ()",
    },
  ])(
    "takes $name for a module that asks too much",
    async ({ script, want }) => {
      standIn(script);
      const { compiler } = open();

      const failure = await compiler.compile(
        moduleOfSize("m", 1),
        "core",
        artifact(),
      );

      expect(failure).toEqual({ kind: "exhausted", text: want });
    },
  );

  it("bounds a long reason", async () => {
    standIn(`printf '{"code":"invalid","message":"%010000d"}' 0; exit 2`);
    const { compiler } = open();

    const failure = await compiler.compile(
      moduleOfSize("m", 1),
      "core",
      artifact(),
    );

    expect(failure?.kind).toBe("refused");
    expect(failure?.text.length).toBeLessThan(1_100);
  });

  it("kills a child that takes too long by the clock", async () => {
    standInThatWaits();
    const { compiler } = open();
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const compiling = compiler.compile(
      moduleOfSize("m", 1),
      "core",
      artifact(),
    );
    await vi.waitUntil(() => hasStarted("artifact"), { timeout: 20_000 });

    vi.advanceTimersByTime(67_000);

    expect(await compiling).toEqual({
      kind: "exhausted",
      text: "it took longer than 67 s",
    });
    expect(isAlive(pidOf("artifact"))).toBe(false);
    expect(vi.getTimerCount()).toBe(0);
  });

  it.each([
    {
      name: "the program is missing",
      arrange: () => {
        started.program = join(dir, "missing");
      },
      want: /^cannot start the compiler: spawn .* ENOENT$/,
    },
    {
      name: "the program may not be run",
      arrange: () => {
        standIn("exit 0");
        chmodSync(started.program ?? "", 0o600);
      },
      want: /^cannot start the compiler: spawn .* EACCES$/,
    },
    {
      name: "there are no file descriptors, so no pipes",
      arrange: () => {
        started.spawn = () => {
          const child = new ChildProcess();
          process.nextTick(() =>
            child.emit("error", new Error("spawn EMFILE")),
          );
          return child;
        };
      },
      want: /^cannot start the compiler: spawn EMFILE$/,
    },
    {
      name: "there is no memory",
      arrange: () => {
        started.spawn = () => {
          throw new Error("spawn ENOMEM");
        };
      },
      want: /^cannot start the compiler: spawn ENOMEM$/,
    },
  ])("says that it cannot start when $name", async ({ arrange, want }) => {
    arrange();
    const { compiler } = open();

    const failure = await compiler.compile(
      moduleOfSize("m", 1),
      "core",
      artifact(),
    );

    expect(failure).toEqual({
      kind: "unavailable",
      text: expect.stringMatching(want) as string,
    });
  });

  it("logs every five seconds that it is still compiling", async () => {
    standInThatWaits();
    const { compiler, lines } = open();
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    const file = moduleOfSize("m", 1);
    const compiling = compiler.compile(file, "core", artifact());
    await vi.waitUntil(() => hasStarted("artifact"), { timeout: 20_000 });

    vi.advanceTimersByTime(15_000);

    expect(lines).toHaveLength(3);
    for (const line of lines) {
      expect(line).toEqual({
        level: "info",
        message: "still compiling",
        fields: {
          digest: file.digest,
          sizeBytes: 1,
          kind: "core",
          elapsedMs: expect.any(Number) as number,
        },
      });
    }
    compiler.close();
    await compiling;
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("engine/compiler lanes", () => {
  it("does not let a small module wait behind a large one", async () => {
    standInThatWaits();
    const { compiler } = open();
    const large = moduleOfSize("large", SMALL_BYTES + 1);
    void compiler.compile(large, "core", artifact("large"));
    await until(() => hasStarted("large"));
    void compiler.compile(large, "core", artifact("large-2"));

    started.program = null;
    const small = await module("(module)");
    const failure = await compiler.compile(small, "core", artifact("small"));

    expect(failure).toBeNull();
    expect(isAlive(pidOf("large"))).toBe(true);
    expect(hasStarted("large-2")).toBe(false);
  });

  it("does not let a large module wait behind a small one", async () => {
    standInThatWaits();
    const { compiler } = open();

    void compiler.compile(
      moduleOfSize("small", SMALL_BYTES),
      "core",
      artifact("small"),
    );
    void compiler.compile(
      moduleOfSize("large", SMALL_BYTES + 1),
      "core",
      artifact("large"),
    );

    await until(() => hasStarted("small") && hasStarted("large"));
  });

  it("compiles as many large modules at once as it may, one small one", async () => {
    standInThatWaits();
    const { compiler } = open({ maxConcurrentCompiles: 2 });
    for (const name of ["large-1", "large-2", "large-3"]) {
      const file = moduleOfSize(name, SMALL_BYTES + 1);
      void compiler.compile(file, "core", artifact(name));
    }
    for (const name of ["small-1", "small-2"])
      void compiler.compile(moduleOfSize(name, 1), "core", artifact(name));
    await until(() =>
      ["large-1", "large-2", "small-1"].every((name) => hasStarted(name)),
    );
    expect([hasStarted("large-3"), hasStarted("small-2")]).toEqual([
      false,
      false,
    ]);

    process.kill(pidOf("small-1"), "SIGKILL");
    process.kill(pidOf("large-2"), "SIGKILL");

    await until(() => hasStarted("large-3") && hasStarted("small-2"));
  });

  it("refuses more than 256 that wait", async () => {
    standInThatWaits();
    const { compiler } = open();
    const file = moduleOfSize("m", 1);
    const waiting = Array.from({ length: 257 }, (_, n) =>
      compiler.compile(file, "core", artifact(`${n}`)),
    );
    await until(() => hasStarted("0"));

    const failure = await compiler.compile(file, "core", artifact());

    expect(failure).toEqual({
      kind: "unavailable",
      text: "too many modules wait to be compiled",
    });
    compiler.close();
    await Promise.all(waiting);
  });
});

describe("engine/compiler close", () => {
  const shuttingDown = {
    kind: "unavailable",
    text: "the runtime is shutting down",
  };

  it("kills what runs and starts nothing that waits", async () => {
    standInThatWaits();
    const { compiler } = open();
    const file = moduleOfSize("m", 1);
    const running = compiler.compile(file, "core", artifact("running"));
    const waiting = compiler.compile(file, "core", artifact("waiting"));
    await until(() => hasStarted("running"));

    compiler.close();

    expect(await running).toEqual(shuttingDown);
    expect(await waiting).toEqual(shuttingDown);
    expect(isAlive(pidOf("running"))).toBe(false);
    expect(hasStarted("waiting")).toBe(false);
  });

  it("starts nothing afterwards", async () => {
    const { compiler } = open();
    const file = await module("(module)");

    compiler.close();
    compiler.close();

    expect(await compiler.compile(file, "core", artifact())).toEqual(
      shuttingDown,
    );
    expect(existsSync(artifact())).toBe(false);
  });
});
