import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import {
  createEngine,
  type Engine,
  type EngineOptions,
} from "../../../src/engine/engine.js";
import type * as Native from "../../../src/engine/native.js";
import type {
  EngineSettings,
  NativeAddon,
  NativeEngine,
  RunDone,
  RunReport,
} from "../../../src/engine/native.js";
import type { RunRequest } from "../../../src/engine/run.js";
import type { Logger } from "../../../src/ports.js";
import {
  clock,
  createLogCollector,
  MiB,
  refusal,
  scope,
} from "../../support/engine.js";
import { recordingMetrics } from "../function/fixtures.js";
import {
  failed,
  fakeModule,
  moduleFile,
  reportOf,
  settle as turn,
  useFakeTime,
  type FakeModule,
} from "./fixtures.js";

const loaded = vi.hoisted(() => ({ addon: null as NativeAddon | null }));
vi.mock("../../../src/engine/native.js", async (original) => ({
  ...(await original<typeof Native>()),
  loadAddon: () => loaded.addon,
}));

let cacheDir: string;
beforeEach(() => {
  cacheDir = mkdtempSync(join(tmpdir(), "engine-unit-test-"));
  useFakeTime();
});
afterEach(() => {
  vi.useRealTimers();
  rmSync(cacheDir, { recursive: true, force: true });
});

/** A run in the double of the addon. */
interface FakeRun {
  readonly id: number;
  readonly memoryLimitBytes: number;
  /** What `remainingMs` says; a test makes it overdue. */
  leftMs: number;
  cancels: number;
  /** Ends it, as the addon does: from its one callback. */
  done(response: Buffer | null, report?: RunReport): void;
}

/** Lets everything happen that needs no time: a run starts at the end of its turn. */
async function settle(): Promise<void> {
  await turn();
  await turn();
}

/** An engine over a double of the addon, whose artifacts are all there and whose runs wait. */
function setUp(
  options: Partial<EngineOptions> = {},
  pooled = true,
  failure: Error | null = null,
) {
  const settings: EngineSettings[] = [];
  const modules: FakeModule[] = [];
  const runs: FakeRun[] = [];
  const closeNative = vi.fn<() => void>();
  let abi = 1;

  class FakeEngine implements NativeEngine {
    readonly compatibilityHash = "cafe";
    readonly pooled = pooled;
    readonly close = closeNative;
    readonly #done: RunDone;
    constructor(given: EngineSettings, done: RunDone) {
      if (failure !== null) throw failure;
      settings.push(given);
      this.#done = done;
    }
    seal: NativeEngine["seal"] = () => Promise.resolve(null);
    load: NativeEngine["load"] = () => {
      const module = fakeModule(abi);
      modules.push(module);
      return Promise.resolve(module);
    };
    run: NativeEngine["run"] = (id, module, _bytes, timeoutMs, _in, memory) => {
      if ((module as FakeModule).dispose.mock.calls.length > 0)
        throw new Error("the module was disposed of");
      runs.push({
        id,
        memoryLimitBytes: memory,
        leftMs: timeoutMs,
        cancels: 0,
        done: (response, report) => {
          this.#done(id, response, report ?? null);
        },
      });
    };
    cancel: NativeEngine["cancel"] = (id) => {
      this.#find(id).cancels += 1;
    };
    remainingMs: NativeEngine["remainingMs"] = (id) => this.#find(id).leftMs;

    #find(id: number): FakeRun {
      const run = runs.find((one) => one.id === id);
      if (run === undefined) throw new Error(`no run has the number ${id}`);
      return run;
    }
  }
  loaded.addon = { NativeEngine: FakeEngine };
  const { logger, lines } = createLogCollector();
  const metrics = recordingMetrics();
  const engine: Engine = createEngine(
    {
      cacheDir,
      artifactKey: null,
      trustCacheDir: false,
      engineWorkers: 3,
      memoryLimitBytes: 512 * MiB,
      stackLimitBytes: 4096,
      maxResponseBytes: 16 * MiB,
      maxConcurrentRuns: 0,
      maxTotalRunMemoryBytes: 0,
      keepsIdleModules: true,
      maxCachedModules: 0,
      maxConcurrentCompiles: 1,
      ...options,
    },
    clock,
    logger,
    metrics,
  );
  const request: RunRequest = {
    bytes: new Uint8Array(),
    limits: { timeoutMs: 1_000, memoryBytes: MiB, concurrency: null },
    env: [],
    stepKey: "step",
    logger,
  };
  return {
    engine,
    request,
    lines,
    counted: metrics.counted,
    settings,
    modules,
    runs,
    closeNative,
    setAbi: (value: number) => {
      abi = value;
    },
  };
}

describe("engine/engine start", () => {
  it("hands the addon what the operator set", () => {
    const artifactKey = new Uint8Array([1, 2, 3]);

    const { settings, lines } = setUp({
      artifactKey,
      trustCacheDir: true,
      maxConcurrentRuns: 17,
    });

    expect(settings).toEqual([
      {
        engineWorkers: 3,
        stackLimitBytes: 4096,
        memoryLimitBytes: 512 * MiB,
        poolSlots: 17,
        artifactKey,
        trustCacheDir: true,
        maxResponseBytes: 16 * MiB,
      },
    ]);
    expect(lines).toEqual([]);
    expect(existsSync(join(cacheDir, "compiled", "cafe"))).toBe(true);
  });

  it("makes a key of its own for each process, and a pool of 256", () => {
    const [first] = setUp().settings;
    const [second] = setUp().settings;

    expect(first?.artifactKey).toHaveLength(32);
    expect(first?.artifactKey).not.toEqual(second?.artifactKey);
    expect(first?.poolSlots).toBe(256);
  });

  it("says when it has no pool", () => {
    const { lines } = setUp({}, false);

    expect(lines).toEqual([
      {
        level: "warn",
        message: "cannot reserve the memory pool, every run is on-demand",
        fields: {},
      },
    ]);
  });
});

describe("engine/engine load", () => {
  it.each([1, 2] as const)("leases a module of ABI %d", async (abi) => {
    const { engine, setAbi } = setUp();
    setAbi(abi);

    const lease = await engine.load(moduleFile(1), scope());

    expect(lease).toMatchObject({
      digest: moduleFile(1).digest,
      description: "Path m1.wasm",
      abi,
    });
  });

  it("frees a module that is released and one too many", async () => {
    const { engine, modules } = setUp({ maxCachedModules: 1 });
    const held = await engine.load(moduleFile(1), scope());
    const other = await engine.load(moduleFile(2), scope());
    await settle();

    other.release();
    other.release();

    expect(modules[1]?.dispose).toHaveBeenCalledTimes(1);
    expect(modules[0]?.dispose).not.toHaveBeenCalled();
    held.release();
  });
});

describe("engine/engine start", () => {
  it("passes on why the sandbox does not start", () => {
    const cause = new Error("cannot start the sandbox: 200 worker threads");

    expect(() => setUp({}, true, cause)).toThrow(
      expect.objectContaining({
        name: "EngineError",
        code: "engine-fault",
        message: "cannot start the sandbox: 200 worker threads",
        cause,
      }) as Error,
    );
  });
});

describe("engine/engine run", () => {
  it("answers with the guest's bytes", async () => {
    const { engine, request, runs } = setUp();
    const lease = await engine.load(moduleFile(1), scope());

    const running = engine.run(lease, request, scope());
    await settle();
    runs[0]?.done(Buffer.from("answer"));

    expect(await running).toEqual(Buffer.from("answer"));
  });

  it("tells the metrics of all its parts", async () => {
    const { engine, request, runs, counted } = setUp();
    const lease = await engine.load(moduleFile(1), scope());

    const running = engine.run(lease, request, scope());
    await settle();
    await vi.advanceTimersByTimeAsync(30);
    runs[0]?.done(Buffer.from("answer"));
    await running;

    expect(counted).toEqual([
      ...["compiled miss", "loaded 1", "artifact hit"],
      ...["queued 0", "running 1", "run ok 0.03", "running 0"],
    ]);
  });

  it("starts no run whose turn ends after the engine's own end", async () => {
    const { engine, request, runs } = setUp();
    const lease = await engine.load(moduleFile(1), scope());

    const running = refusal(engine.run(lease, request, scope()));
    await engine.close();

    expect((await running).code).toBe("run-cancelled");
    expect(runs).toHaveLength(0);
  });

  it("runs no lease of another engine", async () => {
    const one = setUp();
    const other = setUp();
    const lease = await other.engine.load(moduleFile(1), scope());

    const error = await refusal(one.engine.run(lease, one.request, scope()));

    expect(error.code).toBe("engine-fault");
    expect(one.runs).toHaveLength(0);
  });

  it("keeps the slot until the sandbox is done, though the caller has its answer", async () => {
    const { engine, request, runs } = setUp({ maxConcurrentRuns: 1 });
    const lease = await engine.load(moduleFile(1), scope());
    const first = refusal(engine.run(lease, request, scope()));
    await settle();
    const second = engine.run(lease, request, scope());
    for (const run of runs) run.leftMs = -100;
    await vi.advanceTimersByTimeAsync(2_000);
    expect((await first).code).toBe("run-timeout");
    await settle();
    expect(runs).toHaveLength(1);

    runs[0]?.done(null, failed("timeout"));
    await settle();
    expect(runs).toHaveLength(2);
    runs[1]?.done(Buffer.from("second"));

    expect(await second).toEqual(Buffer.from("second"));
  });

  it.each([
    { name: "fails", report: failed("trap") },
    { name: "ends in a fault of the sandbox", report: failed("internal") },
  ])("gives the slot back when a run $name", async ({ report }) => {
    const { engine, request, runs } = setUp({ maxConcurrentRuns: 1 });
    const lease = await engine.load(moduleFile(1), scope());
    const first = refusal(engine.run(lease, request, scope()));
    const second = engine.run(lease, request, scope());
    await settle();

    runs[0]?.done(null, report);
    await first;
    await settle();
    runs[1]?.done(Buffer.from("second"));

    expect(await second).toEqual(Buffer.from("second"));
  });

  it("gives the slot back when the guest's lines cannot be logged, and says so", async () => {
    const { engine, request, runs, lines } = setUp({ maxConcurrentRuns: 1 });
    const lease = await engine.load(moduleFile(1), scope());
    const full = new Error("the log is full");
    const logger: Logger = {
      ...request.logger,
      info: () => {
        throw full;
      },
    };
    const first = engine.run(lease, { ...request, logger }, scope());
    const second = engine.run(lease, request, scope());
    await settle();

    const line = { source: "info" as const, message: "hello", pairs: [] };
    runs[0]?.done(Buffer.from("first"), reportOf({ lines: [line] }));
    await settle();
    runs[1]?.done(Buffer.from("second"));

    expect(await first).toEqual(Buffer.from("first"));
    expect(await second).toEqual(Buffer.from("second"));
    expect(lines).toContainEqual({
      level: "error",
      message: "cannot settle a run",
      fields: { err: full },
    });
  });

  it("gives the slot back when the addon will not even start", async () => {
    const { engine, request, runs, modules } = setUp({ maxConcurrentRuns: 1 });
    const disposed = await engine.load(moduleFile(1), scope());
    modules[0]?.dispose();
    const good = await engine.load(moduleFile(2), scope());

    const error = await refusal(engine.run(disposed, request, scope()));

    expect(error.code).toBe("engine-fault");
    const running = engine.run(good, request, scope());
    await settle();
    runs[0]?.done(null);
    expect(await running).toHaveLength(0);
  });

  it("takes turns by digest and bounds a step and the memory of all", async () => {
    const { engine, request, runs } = setUp({
      maxTotalRunMemoryBytes: 4 * MiB,
    });
    const lease = await engine.load(moduleFile(1), scope());
    const step = {
      ...request,
      limits: { ...request.limits, concurrency: 1 },
    };
    const large = {
      ...request,
      stepKey: "large",
      limits: { ...request.limits, memoryBytes: 4 * MiB },
    };
    void engine.run(lease, step, scope());

    const waits = [step, large].map((one) =>
      refusal(engine.run(lease, one, scope(10))),
    );
    await vi.advanceTimersByTimeAsync(10);

    const messages = (await Promise.all(waits)).map(({ message }) => message);
    expect(messages).toEqual([
      "waiting for the step's own runs (limits.concurrency): deadline exceeded",
      "waiting for run memory: deadline exceeded",
    ]);
    expect(runs).toHaveLength(1);
  });

  it.each([
    {
      name: "less",
      maxTotalRunMemoryBytes: 3 * MiB,
      boundBy: "--max-total-run-memory",
      want: 3 * MiB,
    },
    {
      name: "as much",
      maxTotalRunMemoryBytes: 4 * MiB,
      boundBy: "limits.memory",
      want: 4 * MiB,
    },
    {
      name: "more",
      maxTotalRunMemoryBytes: 5 * MiB,
      boundBy: "limits.memory",
      want: 4 * MiB,
    },
    {
      name: "no bound",
      maxTotalRunMemoryBytes: 0,
      boundBy: "limits.memory",
      want: 4 * MiB,
    },
  ])(
    "gives no run more memory than all may hold, and says what bounds it: $name",
    async ({ maxTotalRunMemoryBytes, boundBy, want }) => {
      const { engine, request, runs } = setUp({ maxTotalRunMemoryBytes });
      const lease = await engine.load(moduleFile(1), scope());
      const limits = { ...request.limits, memoryBytes: 4 * MiB };

      const refused = refusal(
        engine.run(lease, { ...request, limits }, scope()),
      );
      await settle();

      expect(runs[0]?.memoryLimitBytes).toBe(want);
      runs[0]?.done(null, failed("memory"));
      expect((await refused).message).toContain(
        `it ran out of memory, ${boundBy} is ${want} bytes: `,
      );
    },
  );
});

describe("engine/engine close", () => {
  it("cancels what runs, waits for its end, then frees everything", async () => {
    const { engine, request, runs, modules, closeNative } = setUp({
      maxConcurrentRuns: 1,
    });
    const lease = await engine.load(moduleFile(1), scope());
    const running = refusal(engine.run(lease, request, scope()));
    const waiting = refusal(engine.run(lease, request, scope()));
    await settle();

    const closing = engine.close();
    await settle();

    expect(runs.map(({ cancels }) => cancels)).toEqual([1]);
    expect((await waiting).message).toBe(
      "waiting for a run slot: shutting down",
    );
    expect(closeNative).not.toHaveBeenCalled();
    runs[0]?.done(null, failed("cancelled"));
    await closing;
    expect((await running).code).toBe("run-cancelled");
    expect(modules[0]?.dispose).toHaveBeenCalledTimes(1);
    expect(closeNative).toHaveBeenCalledTimes(1);
    expect(runs).toHaveLength(1);
  });

  it("waits two seconds at most for a run that does not end, whose caller has its answer then", async () => {
    const { engine, request, closeNative } = setUp();
    const lease = await engine.load(moduleFile(1), scope());
    const limits = { ...request.limits, timeoutMs: 60_000 };
    const running = refusal(engine.run(lease, { ...request, limits }, scope()));
    await settle();

    const closing = engine.close();
    await vi.advanceTimersByTimeAsync(1_999);
    expect(closeNative).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    await closing;

    expect(closeNative).toHaveBeenCalledTimes(1);
    expect((await running).code).toBe("run-cancelled");
  });

  it("runs nothing afterwards", async () => {
    const { engine, request, runs } = setUp();
    const lease = await engine.load(moduleFile(1), scope());

    await engine.close();

    const error = await refusal(engine.run(lease, request, scope()));
    expect(error.code).toBe("run-cancelled");
    expect(runs).toHaveLength(0);
  });
});
