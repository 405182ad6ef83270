import type * as ChildProcesses from "node:child_process";
import { ChildProcess } from "node:child_process";
import { getEventListeners } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
} from "node:fs";
import type * as Os from "node:os";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import {
  runCompiler,
  type CompilerJob,
  type CompilerOutcome,
} from "../../../src/engine/compiler-process.js";
import type * as Native from "../../../src/engine/native.js";
import { MiB, writeModule } from "../../support/engine.js";
import { assembleText, guest } from "../../support/guests.js";
import { compileBomb } from "../../support/hostile-modules.js";
import {
  hasStarted,
  isAlive,
  pidOf,
  scriptThatWaits,
  until,
  writeStandIn,
} from "./stand-in-compiler.js";

/** What is started in the compiler's place; `null` = the compiler, which these tests need built. */
const started = vi.hoisted(() => ({
  program: null as string | null,
  spawn: null as (() => ChildProcess) | null,
  cpus: null as number | null,
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
vi.mock("node:os", async (original) => {
  const real = await original<typeof Os>();
  return {
    ...real,
    availableParallelism: () => started.cpus ?? real.availableParallelism(),
  };
});

let dir: string;
let closing: AbortController;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "compiler-process-test-"));
  closing = new AbortController();
});
afterEach(() => {
  closing.abort();
  started.program = null;
  started.spawn = null;
  started.cpus = null;
  vi.useRealTimers();
  vi.unstubAllEnvs();
  rmSync(dir, { recursive: true, force: true });
});

const artifact = () => join(dir, "artifact");

function checkTask(memoryLimitBytes = 64 * MiB): CompilerJob["task"] {
  return { check: { memoryLimitBytes } };
}

function compileTask(
  kind: Native.ModuleKind = "core",
  artifactPath = artifact(),
): CompilerJob["task"] {
  return { compile: { kind, artifactPath } };
}

/** A job on a module that only a stand-in is asked to look at. */
function jobOf(overrides: Partial<CompilerJob> = {}): CompilerJob {
  return {
    task: compileTask(),
    modulePath: join(dir, "m.wasm"),
    digest: "sha256:m",
    sizeBytes: 1,
    stackLimitBytes: 512 * 1024,
    cpuLimitSeconds: 23,
    addressSpaceBytes: 256 * MiB,
    ...overrides,
  };
}

/** A job on a real module, with limits that suffice. */
async function jobOn(
  module: string | Uint8Array,
  overrides: Partial<CompilerJob> = {},
): Promise<CompilerJob> {
  const bytes =
    typeof module === "string" ? await assembleText(module) : module;
  const file = await writeModule(dir, "Path m.wasm", bytes);
  const { digest, filePath, sizeBytes } = file;
  return jobOf({ modulePath: filePath, digest, sizeBytes, ...overrides });
}

async function run(
  job: CompilerJob,
  wallMs = 60_000,
): Promise<CompilerOutcome> {
  return await runCompiler(job, wallMs, closing.signal);
}

function standIn(script: string): void {
  started.program = writeStandIn(dir, script);
}

describe("engine/compiler-process check", () => {
  it.each([
    { guest: "v1/hello", want: "core" },
    { guest: "v2/hello", want: "component" },
  ] as const)("knows the kind of $guest", async (row) => {
    const job = await jobOn(await guest(row.guest), { task: checkTask() });

    expect(await run(job)).toEqual({ kind: "done", moduleKind: row.want });
  });

  it.each([
    {
      name: "a module of another shape",
      module: "(module)",
      want: /^export wasmfn_run: expected a function .*, got no such export$/,
    },
    {
      name: "a module that starts with more memory than a run may have",
      module: '(module (memory (export "memory") 1025))',
      want: /^its initial memory takes 67174400 bytes, more than .* of 67108864 bytes$/,
    },
    {
      name: "what is no module",
      module: Buffer.from("<html>\x1b[31m"),
      want: /an HTML or XML page beginning "<html>\\u\{1b\}\[31m"$/,
    },
  ])("refuses $name", async ({ module, want }) => {
    const job = await jobOn(module, { task: checkTask() });

    expect(await run(job)).toEqual({
      kind: "refused",
      text: expect.stringMatching(want) as string,
    });
  });

  it("goes by the memory limit it is given", async () => {
    const task = checkTask(2 * 65536);

    expect(await run(await jobOn(await guest("v1/hello"), { task }))).toEqual({
      kind: "done",
      moduleKind: "core",
    });
    expect(
      await run(
        await jobOn(await guest("v1/hello"), { task: checkTask(65536) }),
      ),
    ).toMatchObject({ kind: "refused" });
  });

  it("writes nothing", async () => {
    await run(await jobOn(await guest("v1/hello"), { task: checkTask() }));

    expect(existsSync(artifact())).toBe(false);
  });
});

describe("engine/compiler-process compile", () => {
  it.each([
    { text: '(module (func (export "f")))', kind: "core" },
    { text: "(component)", kind: "component" },
  ] as const)("writes a private artifact of a $kind", async (row) => {
    const job = await jobOn(row.text, { task: compileTask(row.kind) });

    expect(await run(job)).toEqual({ kind: "done", moduleKind: row.kind });

    expect(statSync(artifact()).size).toBeGreaterThan(0);
    expect(statSync(artifact()).mode & 0o777).toBe(0o600);
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
    const job = await jobOn(text, { task: compileTask(kind) });

    expect(await run(job)).toEqual({
      kind: "refused",
      text: expect.stringMatching(want) as string,
    });
    expect(existsSync(artifact())).toBe(false);
  });

  it("escapes what it quotes of a module", async () => {
    const name = String.raw`a\1b[31m\0d\0a\e2\80\ae`;
    const job = await jobOn(
      `(module (func) (export "${name}" (func 0)) (export "${name}" (func 0)))`,
    );

    const outcome = await run(job);

    const text = outcome.kind === "done" ? "" : outcome.text;
    expect(outcome.kind).toBe("refused");
    expect(text).toContain(String.raw`a\u{1b}[31m\u{d} \u{202e}`);
    expect(text).toMatch(/^[^\p{C}\p{Zl}\p{Zp}]*$/u);
  });
});

describe.each([
  { what: "check", task: () => checkTask() },
  { what: "compile", task: () => compileTask() },
])("engine/compiler-process $what of a file", ({ task }) => {
  it.each([
    { name: "another digest", change: { digest: `sha256:${"0".repeat(64)}` } },
    { name: "another size", change: { sizeBytes: 7 } },
  ] satisfies { name: string; change: Partial<CompilerJob> }[])(
    "notices that it is not what it was: $name",
    async ({ change }) => {
      const job = await jobOn("(module)", { task: task(), ...change });

      expect(await run(job)).toEqual({
        kind: "changed",
        text: expect.stringMatching(
          /^the file changed while it was loaded: expected .*, got /,
        ) as string,
      });
      expect(existsSync(artifact())).toBe(false);
    },
  );

  it("says that it has gone", async () => {
    const modulePath = "/nowhere/m.wasm";
    const job = await jobOn("(module)", { task: task(), modulePath });

    expect(await run(job)).toEqual({
      kind: "io",
      text: expect.stringMatching(/^cannot open the module file: /) as string,
    });
  });
});

describe("engine/compiler-process artifact", () => {
  it.each([
    { name: "its directory is missing", path: "missing/artifact" },
    { name: "it is there already", path: "m.wasm" },
  ])("says that it cannot be written when $name", async ({ path }) => {
    const job = await jobOn("(module)", {
      task: compileTask("core", join(dir, path)),
    });

    expect(await run(job)).toEqual({
      kind: "unwritable",
      text: expect.stringMatching(/^cannot write the artifact: /) as string,
    });
  });
});

describe("engine/compiler-process limits", () => {
  it.each([
    {
      name: "CPU time",
      change: { cpuLimitSeconds: 1, addressSpaceBytes: 4096 * MiB },
      // The soft limit is the hard one, at which the kernel asks no more.
      want: /^it needs more than 1 CPU seconds or 4096 MiB \(SIGKILL\)$/,
    },
    {
      name: "address space",
      change: { cpuLimitSeconds: 20, addressSpaceBytes: 200 * MiB },
      want: /^it needs more than 20 CPU seconds or 200 MiB \(SIGABRT: memory allocation of \d+ bytes failed\)$/,
    },
  ])("ends a real compile at its $name", async ({ change, want }) => {
    const job = await jobOn(compileBomb(6_000, 6_000), change);

    expect(await run(job)).toEqual({
      kind: "exhausted",
      text: expect.stringMatching(want) as string,
    });
    expect(existsSync(artifact())).toBe(false);
  });

  const more = "it needs more than 23 CPU seconds or 256 MiB";
  it.each([
    { name: "SIGXCPU", script: "kill -XCPU $$", want: `${more} (SIGXCPU)` },
    { name: "SIGKILL", script: "kill -KILL $$", want: `${more} (SIGKILL)` },
    {
      name: "a failed allocation",
      script: "echo 'memory allocation failed' >&2; kill -ABRT $$",
      want: `${more} (SIGABRT: memory allocation failed)`,
    },
    { name: "silence", script: "exit 1", want: `${more} ()` },
    {
      name: "an answer that is none",
      script: "echo null; exit 1",
      want: `${more} ()`,
    },
    {
      name: "an answer without a message",
      script: `echo '{"ok":false,"code":"invalid"}'; exit 2`,
      want: `${more} ()`,
    },
    {
      name: "an answer of an unknown kind",
      script: `echo '{"ok":true,"kind":"other"}'`,
      want: `${more} ()`,
    },
    {
      name: "an answer without end",
      script: "head -c 1000000 /dev/zero | tr '\\0' '{'; exit 2",
      want: `${more} ()`,
    },
  ])(
    "takes $name for a module that asks too much",
    async ({ script, want }) => {
      standIn(script);

      expect(await run(jobOf())).toEqual({ kind: "exhausted", text: want });
    },
  );

  const crashed = "it crashed the compiler";
  it.each([
    { name: "SIGSEGV", script: "kill -SEGV $$", want: `${crashed} (SIGSEGV)` },
    { name: "SIGBUS", script: "kill -BUS $$", want: `${crashed} (SIGBUS)` },
    { name: "SIGILL", script: "kill -ILL $$", want: `${crashed} (SIGILL)` },
    {
      name: "a stack overflow",
      script:
        "printf \"\\nthread 'main' (42) has overflowed its stack\\nfatal\" >&2; kill -ABRT $$",
      want: `${crashed} (SIGABRT: thread 'main' has overflowed its stack)`,
    },
    {
      name: "a panic",
      script:
        "echo \"thread 'main' (42) panicked at /src/crates/parser/types.rs:247:9:\" >&2; exit 101",
      want: `${crashed} (thread 'main' panicked at types.rs:247:9:)`,
    },
    {
      name: "a panic, whose text is the module's in part",
      script:
        "printf 'panicked at \\033[31m\\r\"x\"\\nnote: more' >&2; exit 101",
      want: String.raw`it crashed the compiler (panicked at \u001b[31m\u000d\"x\")`,
    },
  ])("takes $name for a module that crashed it", async ({ script, want }) => {
    standIn(script);

    expect(await run(jobOf())).toEqual({ kind: "exhausted", text: want });
  });

  it("bounds a long reason", async () => {
    standIn(`printf '{"code":"invalid","message":"%010000d"}' 0; exit 2`);

    const outcome = await run(jobOf());

    expect(outcome.kind).toBe("refused");
    expect(outcome.kind === "done" ? "" : outcome.text.length).toBeLessThan(
      1_100,
    );
  });

  it("kills a child that takes too long by the clock", async () => {
    standIn(scriptThatWaits());
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const running = run(jobOf(), 67_000);
    await vi.waitUntil(() => hasStarted(artifact()), { timeout: 20_000 });

    vi.advanceTimersByTime(66_999);
    expect(isAlive(pidOf(artifact()))).toBe(true);
    vi.advanceTimersByTime(1);

    expect(await running).toEqual({
      kind: "exhausted",
      text: "it took longer than 67 s",
    });
    expect(isAlive(pidOf(artifact()))).toBe(false);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("engine/compiler-process start", () => {
  it.each([
    { cpus: 1, want: "RAYON_NUM_THREADS=1" },
    { cpus: 4, want: "RAYON_NUM_THREADS=4" },
    { cpus: 64, want: "RAYON_NUM_THREADS=4" },
  ])(
    "gives the child nothing of the server's environment, and threads for $cpus CPUs",
    async ({ cpus, want }) => {
      vi.stubEnv("REGISTRY_PASSWORD", "hunter2");
      started.cpus = cpus;
      standIn('tr "\\0" "\\n" < /proc/$$/environ > "${0%/*}/environment"');

      await run(jobOf());

      const environment = readFileSync(join(dir, "environment"), "utf8");
      expect(environment.trimEnd().split("\n").sort()).toEqual([
        "MALLOC_ARENA_MAX=2",
        want,
      ]);
    },
  );

  it("gives the child the job and no input", async () => {
    standIn(
      'printf %s "$1" > "${0%/*}/job"; echo $# > "${0%/*}/count"; cat > "${0%/*}/input"',
    );
    const job = jobOf({ task: checkTask(12345) });

    await run(job);

    const read = (name: string) => readFileSync(join(dir, name), "utf8");
    expect(JSON.parse(read("job"))).toEqual(job);
    expect(read("count")).toBe("1\n");
    expect(read("input")).toBe("");
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

    expect(await run(jobOf())).toEqual({
      kind: "unavailable",
      text: expect.stringMatching(want) as string,
    });
  });
});

describe("engine/compiler-process closing", () => {
  it("kills the child", async () => {
    standIn(scriptThatWaits());
    const running = run(jobOf());
    await until(() => hasStarted(artifact()));

    closing.abort();

    expect(await running).toEqual({
      kind: "unavailable",
      text: "the runtime is shutting down",
    });
    expect(isAlive(pidOf(artifact()))).toBe(false);
  });

  it("is not listened to once the child has ended", async () => {
    standIn("exit 0");
    const running = run(jobOf());
    expect(getEventListeners(closing.signal, "abort")).toHaveLength(1);

    await running;

    expect(getEventListeners(closing.signal, "abort")).toHaveLength(0);
  });
});
