import { getEventListeners } from "node:events";

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import type { EngineErrorCode } from "../../../src/engine/error.js";
import type {
  NativeAddon,
  NativeDeadline,
  NativeEngine,
  RunFailure,
  RunReport,
} from "../../../src/engine/native.js";
import { startRun } from "../../../src/engine/run.js";
import type { Logger, RequestScope } from "../../../src/ports.js";
import {
  clock,
  createLogCollector,
  refusal,
  scope,
} from "../../support/engine.js";
import { deferred, fakeModule, settle, useFakeTime } from "./fixtures.js";

const TIMEOUT_MS = 1_000;
const MEMORY_BYTES = 64 * 1024 * 1024;
/** How late the sandbox may be. */
const OVERDUE_MS = 15;

beforeEach(useFakeTime);
afterEach(() => {
  vi.useRealTimers();
});

/** A run over doubles of the addon; its report comes when the test says so. */
function setUp(within: RequestScope = scope(), logger?: Logger) {
  const report = deferred<RunReport>();
  const collected = createLogCollector();
  const made: [timeoutMs: number, deadlineInMs: number | null][] = [];
  const cancel = vi.fn<() => void>();
  const startedAtMs = clock.monotonicMs();
  // As the addon counts: the nearer bound, and what a test adds for waits or takes for the end.
  let extraMs = 0;
  const run = vi.fn<NativeEngine["run"]>(() => report.promise);
  class FakeDeadline implements NativeDeadline {
    readonly #boundMs: number;
    readonly cancel = cancel;
    constructor(timeoutMs: number, deadlineInMs: number | null) {
      made.push([timeoutMs, deadlineInMs]);
      this.#boundMs = Math.min(timeoutMs, deadlineInMs ?? Infinity);
    }
    remainingMs(): number {
      return this.#boundMs + extraMs - (clock.monotonicMs() - startedAtMs);
    }
  }
  class FakeEngine implements NativeEngine {
    readonly compatibilityHash = "hash";
    readonly pooled = true;
    readonly run = run;
    precheck = () => Promise.reject(new Error("not here"));
    seal = () => Promise.reject(new Error("not here"));
    load = () => Promise.reject(new Error("not here"));
    close = () => undefined;
  }
  const addon: NativeAddon = {
    NativeEngine: FakeEngine,
    NativeDeadline: FakeDeadline,
  };
  const module = fakeModule();
  const request = {
    bytes: new Uint8Array([1, 2, 3]),
    limits: {
      timeoutMs: TIMEOUT_MS,
      memoryBytes: MEMORY_BYTES,
      concurrency: null,
    },
    stepKey: "step",
    logger: logger ?? collected.logger,
  };
  const start = () => {
    const started = startRun(
      { addon, native: new FakeEngine(), clock, maxResponseBytes: 4096 },
      module,
      "Path m.wasm",
      request,
      within,
    );
    let ended = false;
    void started.ended.then(() => {
      ended = true;
    });
    return { ...started, hasEnded: () => ended };
  };
  return {
    start,
    run,
    report,
    made,
    cancel,
    module,
    request,
    lines: collected.lines,
    credit: (ms: number) => {
      extraMs += ms;
    },
  };
}

function reportOf(part: Partial<RunReport> = {}): RunReport {
  return {
    lines: [],
    droppedLines: 0,
    computeMs: 1,
    peakMemoryBytes: 65536,
    memoryDenials: 0,
    ...part,
  };
}

function failed(
  kind: RunFailure["kind"],
  detail = "what happened",
  backtrace = "",
): RunReport {
  return reportOf({ failure: { kind, detail, backtrace } });
}

describe("engine/run", () => {
  it("hands the addon the request and its bounds, and back the response's bytes", async () => {
    const parts = setUp();
    const response = Buffer.from([9, 8, 7]);

    const run = parts.start();
    parts.report.resolve(reportOf({ response }));

    expect(await run.response).toBe(response);
    await run.ended;
    expect(parts.run).toHaveBeenCalledTimes(1);
    const [module, bytes, settings] = parts.run.mock.lastCall ?? [];
    expect(module).toBe(parts.module);
    expect(bytes).toBe(parts.request.bytes);
    expect(settings).toEqual({
      memoryLimitBytes: MEMORY_BYTES,
      maxResponseBytes: 4096,
    });
  });

  it("takes a report without response or failure for an empty response", async () => {
    const parts = setUp();

    const run = parts.start();
    parts.report.resolve(reportOf());

    expect(await run.response).toHaveLength(0);
  });

  it.each([
    { name: "none", within: () => scope(), want: null },
    { name: "one to come", within: () => scope(250), want: 250 },
    { name: "one in the past", within: () => scope(-250), want: 0 },
    { name: "one long past", within: () => scope(-1e12), want: 0 },
  ])(
    "tells the addon the caller's deadline: $name",
    async ({ within, want }) => {
      const parts = setUp(within());

      const run = parts.start();
      parts.report.resolve(reportOf());
      await run.response;

      expect(parts.made).toEqual([[TIMEOUT_MS, want]]);
    },
  );
});

describe("engine/run failures", () => {
  it.each<{ kind: RunFailure["kind"]; code: EngineErrorCode; want: string }>([
    {
      kind: "timeout",
      code: "run-timeout",
      want: "it ran longer than limits.timeout allows: 1000 ms of compute",
    },
    {
      kind: "deadline",
      code: "run-deadline",
      want: "the request's deadline passed during the run: deadline exceeded",
    },
    {
      kind: "cancelled",
      code: "run-cancelled",
      want: "the caller cancelled the request",
    },
    {
      kind: "memory",
      code: "run-memory",
      want: "it ran out of memory, limits.memory is 67108864 bytes: what happened",
    },
    { kind: "trap", code: "run-trap", want: "what happened" },
    {
      kind: "exit",
      code: "run-trap",
      want: "it exited with status what happened instead of answering",
    },
    {
      kind: "guest",
      code: "run-error",
      want: "run returned an error: what happened",
    },
    { kind: "response", code: "response-invalid", want: "what happened" },
    { kind: "internal", code: "engine-fault", want: "the sandbox failed" },
  ])("says $code for $kind", async ({ kind, code, want }) => {
    const parts = setUp();

    const run = parts.start();
    parts.report.resolve(failed(kind));

    const error = await refusal(run.response);
    expect(error.code).toBe(code);
    expect(error.message).toBe(`module Path m.wasm failed: ${want}`);
    expect(error.detail).toBeUndefined();
    await run.ended;
  });

  it("keeps the guest's frames for the operator", async () => {
    const parts = setUp();

    const run = parts.start();
    parts.report.resolve(failed("trap", "unreachable", "a <- b <- run"));

    const error = await refusal(run.response);
    expect(error.message).toBe("module Path m.wasm failed: unreachable");
    expect(error.detail).toBe("guest frames: a <- b <- run");
  });

  it.each([
    {
      name: "rejects",
      arrange: ({ report }: ReturnType<typeof setUp>) =>
        report.reject(new Error("[internal] the sandbox panicked")),
    },
    {
      name: "throws",
      arrange: ({ run }: ReturnType<typeof setUp>) =>
        run.mockImplementationOnce(() => {
          throw new Error("the module was disposed of");
        }),
    },
  ])("is a fault of the sandbox when the addon $name", async ({ arrange }) => {
    const { signal } = new AbortController();
    const parts = setUp(scope(Infinity, signal));
    arrange(parts);

    const run = parts.start();

    const error = await refusal(run.response);
    expect(error.code).toBe("engine-fault");
    expect(error.message).toBe("module Path m.wasm failed: the sandbox failed");
    await run.ended;
    expect(vi.getTimerCount()).toBe(0);
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });
});

describe("engine/run guest's lines", () => {
  const said = {
    lines: [{ source: "info", message: "hello", pairs: [] }],
    droppedLines: 2,
  } satisfies Partial<RunReport>;

  it.each([
    { name: "it answered", report: reportOf(said) },
    { name: "it failed", report: { ...failed("trap"), ...said } },
  ])("are logged when $name", async ({ report }) => {
    const parts = setUp();

    const run = parts.start();
    parts.report.resolve(report);
    await Promise.allSettled([run.response]);
    await run.ended;

    expect(parts.lines.map(({ message }) => message)).toEqual([
      "guest log",
      "guest output truncated",
    ]);
  });

  it("are logged though its caller was answered long ago", async () => {
    const parts = setUp();
    const run = parts.start();
    const refused = refusal(run.response);
    await vi.advanceTimersByTimeAsync(5_000);
    await refused;

    parts.report.resolve(reportOf(said));
    await run.ended;

    expect(parts.lines).toHaveLength(2);
  });

  it("cannot keep a run from ending when they cannot be logged", async () => {
    const broken = () => {
      throw new Error("the log is full");
    };
    const logger: Logger = {
      ...createLogCollector().logger,
      info: broken,
      warn: broken,
    };
    const parts = setUp(scope(), logger);

    const run = parts.start();
    parts.report.resolve(reportOf({ ...said, response: Buffer.from("ok") }));

    expect(await run.response).toEqual(Buffer.from("ok"));
    await run.ended;
  });
});

describe("engine/run overdue", () => {
  it.each([
    {
      name: "limits.timeout",
      within: () => scope(TIMEOUT_MS + 1),
      boundMs: TIMEOUT_MS,
      code: "run-timeout",
    },
    {
      name: "the caller's deadline",
      within: () => scope(300),
      boundMs: 300,
      code: "run-deadline",
    },
    {
      name: "both at once",
      within: () => scope(TIMEOUT_MS),
      boundMs: TIMEOUT_MS,
      code: "run-deadline",
    },
    {
      name: "a deadline in the past",
      within: () => scope(-50),
      boundMs: 0,
      code: "run-deadline",
    },
  ])(
    "answers the caller without the sandbox once it is late for $name",
    async ({ within, boundMs, code }) => {
      const parts = setUp(within());
      const run = parts.start();
      let answered = false;
      const refused = refusal(run.response).finally(() => {
        answered = true;
      });

      await vi.advanceTimersByTimeAsync(boundMs + OVERDUE_MS - 1);
      expect(answered).toBe(false);
      await vi.advanceTimersByTimeAsync(3);

      expect(answered).toBe(true);
      expect((await refused).code).toBe(code);
      // The sandbox is not done: whoever waits for the slot has to wait on.
      expect(run.hasEnded()).toBe(false);
      parts.report.resolve(failed("timeout"));
      await settle();
      expect(run.hasEnded()).toBe(true);
    },
  );

  it("does not take credited waits for lateness", async () => {
    const parts = setUp();
    const run = parts.start();
    await vi.advanceTimersByTimeAsync(900);
    parts.credit(5_000);

    await vi.advanceTimersByTimeAsync(5_000);
    parts.report.resolve(reportOf({ response: Buffer.from("late") }));

    expect(await run.response).toEqual(Buffer.from("late"));
  });

  it("is late once the credited waits are used up, too", async () => {
    const parts = setUp();
    const run = parts.start();
    const refused = refusal(run.response);
    parts.credit(5_000);

    await vi.advanceTimersByTimeAsync(TIMEOUT_MS + 5_000 + OVERDUE_MS + 1);

    expect((await refused).code).toBe("run-timeout");
  });

  it("does not take a run that has ended for late when its report is", async () => {
    const parts = setUp();
    const run = parts.start();
    await vi.advanceTimersByTimeAsync(500);
    parts.credit(Infinity);

    await vi.advanceTimersByTimeAsync(60_000);
    parts.report.resolve(reportOf({ response: Buffer.from("done") }));

    expect(await run.response).toEqual(Buffer.from("done"));
  });

  it("does not fail twice when the sandbox fails after that", async () => {
    const parts = setUp();
    const run = parts.start();
    const refused = refusal(run.response);
    await vi.advanceTimersByTimeAsync(5_000);

    parts.report.reject(new Error("[internal] the sandbox panicked"));

    expect((await refused).code).toBe("run-timeout");
    await run.ended;
  });

  it("keeps no timer once the report is there", async () => {
    const parts = setUp();
    const run = parts.start();
    expect(vi.getTimerCount()).toBe(1);

    parts.report.resolve(reportOf());
    await run.response;

    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("engine/run cancel", () => {
  it("cancels the sandbox when the caller goes", () => {
    const caller = new AbortController();
    const parts = setUp(scope(Infinity, caller.signal));
    const run = parts.start();
    run.response.catch(() => undefined);
    expect(parts.cancel).not.toHaveBeenCalled();

    caller.abort();

    expect(parts.cancel).toHaveBeenCalledTimes(1);
    parts.report.resolve(failed("cancelled"));
  });

  it("cancels before it starts when the caller had gone", () => {
    const parts = setUp(scope(Infinity, AbortSignal.abort()));

    const run = parts.start();
    run.response.catch(() => undefined);

    const [cancelled] = parts.cancel.mock.invocationCallOrder;
    const [started] = parts.run.mock.invocationCallOrder;
    expect(cancelled).toBeLessThan(started ?? 0);
    parts.report.resolve(failed("cancelled"));
  });

  it("can be cancelled by who started it", () => {
    const parts = setUp();
    const run = parts.start();
    run.response.catch(() => undefined);

    run.cancel();

    expect(parts.cancel).toHaveBeenCalledTimes(1);
    parts.report.resolve(failed("cancelled"));
  });

  it.each([
    { name: "answered", report: reportOf() },
    { name: "failed", report: failed("trap") },
  ])(
    "listens to the caller no longer once the run $name",
    async ({ report }) => {
      const caller = new AbortController();
      const parts = setUp(scope(Infinity, caller.signal));
      const run = parts.start();
      expect(getEventListeners(caller.signal, "abort")).toHaveLength(1);

      parts.report.resolve(report);
      await Promise.allSettled([run.response]);

      expect(getEventListeners(caller.signal, "abort")).toHaveLength(0);
      caller.abort();
      expect(parts.cancel).not.toHaveBeenCalled();
    },
  );
});
