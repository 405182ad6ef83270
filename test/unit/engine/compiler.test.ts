import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
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
import { assembleText, guest } from "../../support/guests.js";
import { recordingMetrics } from "../function/fixtures.js";
import {
  hasStarted,
  isAlive,
  pidOf,
  scriptThatWaits,
  until,
  writeStandIn,
} from "./stand-in-compiler.js";

/** What is started in the compiler's place; `null` = the compiler, which these tests need built. */
const started = vi.hoisted(() => ({ program: null as string | null }));
vi.mock("../../../src/engine/native.js", async (original) => {
  const native = await original<typeof Native>();
  return {
    ...native,
    get compilerPath() {
      return started.program ?? native.compilerPath;
    },
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
  vi.useRealTimers();
  rmSync(dir, { recursive: true, force: true });
});

function open(options: Partial<CompilerOptions> = {}): {
  compiler: Compiler;
  lines: LogLine[];
  counted: readonly string[];
} {
  const { logger, lines } = createLogCollector();
  const metrics = recordingMetrics();
  const compiler = createCompiler(
    {
      stackLimitBytes: 512 * 1024,
      memoryLimitBytes: 512 * MiB,
      maxConcurrentCompiles: 1,
      ...options,
    },
    clock,
    logger,
    metrics,
  );
  compilers.push(compiler);
  return { compiler, lines, counted: metrics.counted };
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

function standIn(script: string): void {
  started.program = writeStandIn(dir, script);
}

describe("engine/compiler with the real compiler", () => {
  it("writes an artifact, counts, and says so in the log", async () => {
    const { compiler, lines, counted } = open();
    const file = await module('(module (func (export "f")))');

    const failure = await compiler.compile(file, "core", artifact());

    expect(failure).toBeNull();
    expect(existsSync(artifact())).toBe(true);
    expect(counted).toEqual([expect.stringMatching(/^compile 0\.\d+$/)]);
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

  it("refuses what does not validate, counts, and says so in the log", async () => {
    const { compiler, lines, counted } = open();
    const file = await module("(module (func (result i32) i64.const 1))");

    const failure = await compiler.compile(file, "core", artifact());

    expect(failure).toEqual({
      kind: "refused",
      text: expect.stringMatching(
        /type mismatch: expected i32, found i64/,
      ) as string,
    });
    expect(existsSync(artifact())).toBe(false);
    expect(counted).toHaveLength(1);
    expect(lines).toMatchObject([
      { level: "warn", message: "compile failed", fields: { failure } },
    ]);
  });

  it("checks without a line in the log, or a count", async () => {
    const { compiler, lines, counted } = open();
    const good = await writeModule(dir, "Path good", await guest("v2/hello"));
    const bad = await writeModule(dir, "Path bad", Buffer.from("(module)"));

    expect(await compiler.check(good)).toEqual({
      kind: "done",
      moduleKind: "component",
    });
    expect(await compiler.check(bad)).toMatchObject({ kind: "refused" });

    expect(lines).toEqual([]);
    expect(counted).toEqual([]);
  });

  it("checks by the operator's memory limit", async () => {
    const file = await writeModule(dir, "Path m", await guest("v1/hello"));
    const pages = (count: number) => open({ memoryLimitBytes: count * 65536 });

    expect((await pages(2).compiler.check(file)).kind).toBe("done");
    expect((await pages(1).compiler.check(file)).kind).toBe("refused");
  });
});

describe("engine/compiler jobs", () => {
  it.each([
    {
      name: "check",
      start: (compiler: Compiler, file: ModuleFile) => compiler.check(file),
      task: { check: { memoryLimitBytes: 54321 } },
    },
    {
      name: "compile",
      start: (compiler: Compiler, file: ModuleFile) =>
        compiler.compile(file, "component", "/cache/artifact"),
      task: { compile: { kind: "component", artifactPath: "/cache/artifact" } },
    },
  ])(
    "limits CPU and address space of a $name by the module's size",
    async ({ start, task }) => {
      standIn('printf %s "$1" > "${0%/*}/job"');
      const { compiler } = open({
        stackLimitBytes: 12345,
        memoryLimitBytes: 54321,
      });
      const job = async (sizeBytes: number) => {
        await start(compiler, moduleOfSize("m", sizeBytes));
        return JSON.parse(readFileSync(join(dir, "job"), "utf8")) as unknown;
      };

      expect(await job(1)).toEqual({
        task,
        modulePath: join(dir, "m"),
        digest: "sha256:m",
        sizeBytes: 1,
        stackLimitBytes: 12345,
        cpuLimitSeconds: 23,
        addressSpaceBytes: 256 * MiB + 20,
      });
      expect(await job(77 * MiB)).toMatchObject({
        cpuLimitSeconds: 20 + 3 * 77,
        addressSpaceBytes: 256 * MiB + 20 * 77 * MiB,
      });
    },
  );

  it.each([
    { name: "a byte", sizeBytes: 1, wallSeconds: 67 },
    { name: "20 MiB", sizeBytes: 20 * MiB, wallSeconds: 200 },
    { name: "a gibibyte", sizeBytes: 1024 * MiB, wallSeconds: 600 },
  ])(
    "gives a module of $name $wallSeconds s by the clock",
    async ({ sizeBytes, wallSeconds }) => {
      standIn(scriptThatWaits());
      const { compiler } = open();
      vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
      const file = moduleOfSize("m", sizeBytes);
      const compiling = compiler.compile(file, "core", artifact());
      await vi.waitUntil(() => hasStarted(artifact()), { timeout: 20_000 });

      vi.advanceTimersByTime(wallSeconds * 1000);

      expect(await compiling).toEqual({
        kind: "exhausted",
        text: `it took longer than ${wallSeconds} s`,
      });
    },
  );

  it("logs every five seconds that it is still compiling", async () => {
    standIn(scriptThatWaits());
    const { compiler, lines } = open();
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    const file = moduleOfSize("m", 1);
    const compiling = compiler.compile(file, "core", artifact());
    await vi.waitUntil(() => hasStarted(artifact()), { timeout: 20_000 });

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
    standIn(scriptThatWaits());
    const { compiler } = open();
    const large = moduleOfSize("large", SMALL_BYTES + 1);
    void compiler.compile(large, "core", artifact("large"));
    await until(() => hasStarted(artifact("large")));
    void compiler.compile(large, "core", artifact("large-2"));

    started.program = null;
    const small = await module("(module)");
    const failure = await compiler.compile(small, "core", artifact("small"));

    expect(failure).toBeNull();
    expect(isAlive(pidOf(artifact("large")))).toBe(true);
    expect(hasStarted(artifact("large-2"))).toBe(false);
  });

  it("does not let a large module wait behind a small one", async () => {
    standIn(scriptThatWaits());
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

    await until(
      () => hasStarted(artifact("small")) && hasStarted(artifact("large")),
    );
  });

  it("compiles as many large modules at once as it may, one small one", async () => {
    standIn(scriptThatWaits());
    const { compiler } = open({ maxConcurrentCompiles: 2 });
    for (const name of ["large-1", "large-2", "large-3"]) {
      const file = moduleOfSize(name, SMALL_BYTES + 1);
      void compiler.compile(file, "core", artifact(name));
    }
    for (const name of ["small-1", "small-2"])
      void compiler.compile(moduleOfSize(name, 1), "core", artifact(name));
    await until(() =>
      ["large-1", "large-2", "small-1"].every((name) =>
        hasStarted(artifact(name)),
      ),
    );
    expect([
      hasStarted(artifact("large-3")),
      hasStarted(artifact("small-2")),
    ]).toEqual([false, false]);

    process.kill(pidOf(artifact("small-1")), "SIGKILL");
    process.kill(pidOf(artifact("large-2")), "SIGKILL");

    await until(
      () => hasStarted(artifact("large-3")) && hasStarted(artifact("small-2")),
    );
  });

  it("refuses more than 256 that wait", async () => {
    standIn(scriptThatWaits());
    const { compiler } = open();
    const file = moduleOfSize("m", 1);
    const waiting = Array.from({ length: 257 }, (_, n) =>
      compiler.compile(file, "core", artifact(`${n}`)),
    );
    await until(() => hasStarted(artifact("0")));

    const failure = await compiler.compile(file, "core", artifact());

    expect(failure).toEqual({
      kind: "unavailable",
      text: "too many modules wait to be compiled",
    });
    compiler.close();
    await Promise.all(waiting);
  });
});

describe("engine/compiler checks", () => {
  const modulePath = (name: string) => join(dir, name);

  it("wait for no compile", async () => {
    standIn(scriptThatWaits());
    const { compiler } = open();
    const small = moduleOfSize("small", SMALL_BYTES);
    const large = moduleOfSize("large", SMALL_BYTES + 1);
    for (const name of ["1", "2", "3"]) {
      void compiler.compile(small, "core", artifact(`small-${name}`));
      void compiler.compile(large, "core", artifact(`large-${name}`));
    }
    await until(() =>
      ["small-1", "large-1"].every((name) => hasStarted(artifact(name))),
    );

    started.program = null;
    const file = await writeModule(dir, "Path m", await guest("v1/hello"));
    const outcome = await compiler.check(file);

    expect(outcome).toEqual({ kind: "done", moduleKind: "core" });
    expect(isAlive(pidOf(artifact("small-1")))).toBe(true);
    expect(isAlive(pidOf(artifact("large-1")))).toBe(true);
  });

  it("hold up no compile", async () => {
    standIn(scriptThatWaits("modulePath"));
    const { compiler } = open();
    for (const name of ["a", "b", "c"])
      void compiler.check(moduleOfSize(name, 1));
    await until(() => ["a", "b"].every((name) => hasStarted(modulePath(name))));

    started.program = null;
    const file = await module("(module)");

    expect(await compiler.compile(file, "core", artifact())).toBeNull();
    expect(isAlive(pidOf(modulePath("a")))).toBe(true);
  });

  it.each([
    { name: "small", sizeBytes: 1 },
    { name: "large", sizeBytes: SMALL_BYTES + 1 },
  ])("of $name modules run two at once", async ({ sizeBytes }) => {
    standIn(scriptThatWaits("modulePath"));
    const { compiler } = open({ maxConcurrentCompiles: 8 });
    for (const name of ["a", "b", "c"])
      void compiler.check(moduleOfSize(name, sizeBytes));
    await until(() => ["a", "b"].every((name) => hasStarted(modulePath(name))));
    expect(hasStarted(modulePath("c"))).toBe(false);

    process.kill(pidOf(modulePath("a")), "SIGKILL");

    await until(() => hasStarted(modulePath("c")));
    expect(isAlive(pidOf(modulePath("b")))).toBe(true);
  });

  it("are refused when more than 256 wait", async () => {
    standIn(scriptThatWaits("modulePath"));
    const { compiler } = open();
    const waiting = Array.from({ length: 258 }, () =>
      compiler.check(moduleOfSize("m", 1)),
    );
    await until(() => hasStarted(modulePath("m")));

    expect(await compiler.check(moduleOfSize("m", 1))).toEqual({
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
    standIn(scriptThatWaits());
    const { compiler } = open();
    const file = moduleOfSize("m", 1);
    const running = compiler.compile(file, "core", artifact("running"));
    const waiting = compiler.compile(file, "core", artifact("waiting"));
    await until(() => hasStarted(artifact("running")));

    compiler.close();

    expect(await running).toEqual(shuttingDown);
    expect(await waiting).toEqual(shuttingDown);
    expect(isAlive(pidOf(artifact("running")))).toBe(false);
    expect(hasStarted(artifact("waiting"))).toBe(false);
  });

  it("starts nothing afterwards", async () => {
    const { compiler } = open();
    const file = await module("(module)");

    compiler.close();
    compiler.close();

    expect(await compiler.check(file)).toEqual(shuttingDown);
    expect(await compiler.compile(file, "core", artifact())).toEqual(
      shuttingDown,
    );
    expect(existsSync(artifact())).toBe(false);
  });
});
