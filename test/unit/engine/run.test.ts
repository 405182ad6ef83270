import { getEventListeners } from "node:events";

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import type { EngineErrorCode } from "../../../src/engine/error.js";
import { createNativeRuns } from "../../../src/engine/native-runs.js";
import type {
  NativeEngine,
  RunFailure,
  RunReport,
} from "../../../src/engine/native.js";
import { run } from "../../../src/engine/run.js";
import type { Logger, RequestScope } from "../../../src/ports.js";
import { createRequestScope } from "../../../src/request-scope.js";
import {
  clock,
  createLogCollector,
  refusal,
  scope,
} from "../../support/engine.js";
import { recordingMetrics } from "../function/fixtures.js";
import {
  failed,
  fakeModule,
  fakeNative,
  reportOf,
  useFakeTime,
} from "./fixtures.js";

const TIMEOUT_MS = 1_000;
const MEMORY_BYTES = 64 * 1024 * 1024;
/** How late the sandbox may be. */
const OVERDUE_MS = 15;

beforeEach(useFakeTime);
afterEach(() => {
  vi.useRealTimers();
});

/** A run over a double of the addon, which is done with it when the test says so. */
function setUp(within: RequestScope = scope(), logger?: Logger) {
  const collected = createLogCollector();
  const onError = vi.fn<(thrown: unknown) => void>();
  const onEnded = vi.fn<() => void>();
  const metrics = recordingMetrics();
  const runs = createNativeRuns(onError);
  const startedAtMs = clock.monotonicMs();
  let started: Parameters<NativeEngine["run"]> | undefined;
  // As the addon counts: the nearer bound, and what a test adds for waits or takes for the end.
  let extraMs = 0;
  const native = fakeNative({
    run: vi.fn<NativeEngine["run"]>((...call) => {
      started = call;
    }),
    remainingMs: (id) => {
      if (id !== started?.[0]) throw new Error(`no run has the number ${id}`);
      const boundMs = Math.min(started[3], started[4]);
      return boundMs + extraMs - (clock.monotonicMs() - startedAtMs);
    },
  });
  const module = fakeModule();
  const request = {
    bytes: new Uint8Array([1, 2, 3]),
    limits: {
      timeoutMs: TIMEOUT_MS,
      memoryBytes: MEMORY_BYTES,
      concurrency: null,
    },
    env: [{ name: "TOKEN", value: "hunter2" }],
    stepKey: "step",
    memoryBoundBy: "limits.memory" as const,
    logger: logger ?? collected.logger,
  };
  return {
    start: () =>
      run(
        { native, runs, clock, metrics },
        module,
        "Path m.wasm",
        request,
        within,
        onEnded,
      ),
    /** What the addon calls when the run has ended. */
    done: (response: Buffer | null, report: RunReport | null) => {
      runs.done(started?.[0] ?? NaN, response, report);
    },
    call: () => started,
    native,
    module,
    request,
    onEnded,
    onError,
    lines: collected.lines,
    counted: metrics.counted,
    credit: (ms: number) => {
      extraMs += ms;
    },
  };
}

describe("engine/run", () => {
  it("hands the addon the request and its bounds, and back the response's bytes", async () => {
    const parts = setUp();
    const response = Buffer.from([9, 8, 7]);

    const answer = parts.start();
    expect(parts.onEnded).not.toHaveBeenCalled();
    parts.done(response, null);

    expect(await answer).toBe(response);
    expect(parts.onEnded).toHaveBeenCalledTimes(1);
    expect(parts.native.run).toHaveBeenCalledTimes(1);
    const [, module, bytes, ...bounds] = parts.call() ?? [];
    expect(module).toBe(parts.module);
    expect(bytes).toBe(parts.request.bytes);
    expect(bounds).toEqual([
      TIMEOUT_MS,
      Infinity,
      MEMORY_BYTES,
      [{ name: "TOKEN", value: "hunter2" }],
    ]);
    expect(parts.native.cancel).not.toHaveBeenCalled();
  });

  it.each([
    { name: "a report", report: reportOf() },
    { name: "nothing", report: null },
  ])(
    "takes $name without response or failure for an empty response",
    async ({ report }) => {
      const parts = setUp();

      const answer = parts.start();
      parts.done(null, report);

      expect(await answer).toEqual(new Uint8Array(0));
    },
  );

  it.each([
    { name: "none", within: () => scope(), want: Infinity },
    { name: "one to come", within: () => scope(250), want: 250 },
    { name: "one in the past", within: () => scope(-250), want: 0 },
    { name: "one long past", within: () => scope(-1e12), want: 0 },
  ])(
    "tells the addon the caller's deadline: $name",
    async ({ within, want }) => {
      const parts = setUp(within());

      const answer = parts.start();
      parts.done(null, null);
      await answer;

      expect(parts.call()?.[4]).toBe(want);
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

    const answer = parts.start();
    parts.done(null, failed(kind));

    const error = await refusal(answer);
    expect(error.code).toBe(code);
    expect(error.message).toBe(`module Path m.wasm failed: ${want}`);
    expect(error.detail).toBeUndefined();
    expect(parts.onEnded).toHaveBeenCalledTimes(1);
  });

  it("keeps the guest's frames for the operator", async () => {
    const parts = setUp();

    const answer = parts.start();
    parts.done(null, failed("trap", "unreachable", "a <- b <- run"));

    const error = await refusal(answer);
    expect(error.message).toBe("module Path m.wasm failed: unreachable");
    expect(error.detail).toBe("guest frames: a <- b <- run");
  });

  it("is a fault of the sandbox when the addon will not start it", async () => {
    const { signal } = new AbortController();
    const parts = setUp(scope(Infinity, signal));
    parts.native.run.mockImplementationOnce(() => {
      throw new Error("the module was disposed of");
    });

    const answer = parts.start();

    expect(parts.onEnded).toHaveBeenCalledTimes(1);
    const error = await refusal(answer);
    expect(error.code).toBe("engine-fault");
    expect(error.message).toBe("module Path m.wasm failed: the sandbox failed");
    expect(vi.getTimerCount()).toBe(0);
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
    expect(parts.onEnded).toHaveBeenCalledTimes(1);
  });
});

describe("engine/run metrics", () => {
  it.each([
    { name: "no report", report: null, want: ["run ok 0.2"] },
    { name: "a report", report: reportOf(), want: ["run ok 0.2"] },
    {
      name: "a time-out",
      report: failed("timeout"),
      want: ["run timeout 0.2"],
    },
    {
      name: "a deadline",
      report: failed("deadline"),
      want: ["run timeout 0.2"],
    },
    {
      name: "a caller that went away",
      report: failed("cancelled"),
      want: ["run timeout 0.2"],
    },
    { name: "a trap", report: failed("trap"), want: ["run error 0.2"] },
    { name: "an exit", report: failed("exit"), want: ["run error 0.2"] },
    {
      name: "a guest's error",
      report: failed("guest"),
      want: ["run error 0.2"],
    },
    {
      name: "no response",
      report: failed("response"),
      want: ["run error 0.2"],
    },
    { name: "a fault", report: failed("internal"), want: ["run error 0.2"] },
    {
      name: "memory that was refused in vain",
      report: { ...failed("memory"), memoryDenials: 1 },
      want: ["run error 0.2", "denied limit 1"],
    },
    {
      name: "memory it could do without",
      report: reportOf({ memoryDenials: 3 }),
      want: ["run ok 0.2", "denied limit 3"],
    },
  ])("counts a run that ended with $name", async ({ report, want }) => {
    const parts = setUp();
    const answer = parts.start().catch(() => undefined);
    await vi.advanceTimersByTimeAsync(200);
    expect(parts.counted).toEqual([]);

    parts.done(null, report);

    await answer;
    expect(parts.counted).toEqual(want);
  });

  it("counts a run that is late when the sandbox is done with it, not before", async () => {
    const parts = setUp();
    const answer = parts.start().catch(() => undefined);
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS + OVERDUE_MS);
    await answer;
    expect(parts.counted).toEqual([]);

    await vi.advanceTimersByTimeAsync(985);
    parts.done(null, failed("timeout"));

    expect(parts.counted).toEqual(["run timeout 2"]);
  });

  it("counts no run that never started", async () => {
    const parts = setUp();
    parts.native.run.mockImplementationOnce(() => {
      throw new Error("the engine is closed");
    });

    await refusal(parts.start());

    expect(parts.counted).toEqual([]);
  });
});

describe("engine/run guest's lines", () => {
  const said = {
    lines: [{ source: "info", message: "hello", pairs: [] }],
    droppedLines: 2,
  } satisfies Partial<RunReport>;

  it.each([
    {
      name: "it answered",
      response: Buffer.from("ok"),
      report: reportOf(said),
    },
    {
      name: "it failed",
      response: null,
      report: { ...failed("trap"), ...said },
    },
  ])("are logged when $name", async ({ response, report }) => {
    const parts = setUp();

    const answer = parts.start();
    parts.done(response, report);
    await Promise.allSettled([answer]);

    expect(parts.lines.map(({ message }) => message)).toEqual([
      "guest log",
      "guest output truncated",
    ]);
  });

  it("are logged though its caller was answered long ago", async () => {
    const parts = setUp();
    const refused = refusal(parts.start());
    await vi.advanceTimersByTimeAsync(5_000);
    await refused;

    parts.done(null, reportOf(said));

    expect(parts.lines).toHaveLength(2);
    expect(parts.onEnded).toHaveBeenCalledTimes(1);
  });

  it.each([
    {
      name: "an answer",
      response: Buffer.from("ok"),
      report: reportOf(said),
      want: { status: "fulfilled", value: Buffer.from("ok") },
    },
    {
      name: "a failure",
      response: null,
      report: { ...failed("trap"), ...said },
      want: { status: "rejected", reason: { code: "run-trap" } },
    },
  ])(
    "keep neither slot nor caller waiting when they cannot be logged: $name",
    async ({ response, report, want }) => {
      const full = new Error("the log is full");
      const broken = () => {
        throw full;
      };
      const logger: Logger = {
        ...createLogCollector().logger,
        info: broken,
        warn: broken,
      };
      const parts = setUp(scope(), logger);

      const answer = parts.start();
      parts.done(response, report);

      expect(parts.onEnded).toHaveBeenCalledTimes(1);
      expect(parts.onError.mock.calls).toEqual([[full]]);
      const [outcome] = await Promise.allSettled([answer]);
      expect(outcome).toMatchObject(want);
      expect(vi.getTimerCount()).toBe(0);
    },
  );
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
      let answered = false;
      const refused = refusal(parts.start()).finally(() => {
        answered = true;
      });

      await vi.advanceTimersByTimeAsync(boundMs + OVERDUE_MS - 1);
      expect(answered).toBe(false);
      await vi.advanceTimersByTimeAsync(3);

      expect(answered).toBe(true);
      expect((await refused).code).toBe(code);
      // The sandbox is not done: whoever waits for the slot has to wait on.
      expect(parts.onEnded).not.toHaveBeenCalled();
      parts.done(null, failed("timeout"));
      expect(parts.onEnded).toHaveBeenCalledTimes(1);
    },
  );

  it("does not take credited waits for lateness", async () => {
    const parts = setUp();
    const answer = parts.start();
    await vi.advanceTimersByTimeAsync(900);
    parts.credit(5_000);

    await vi.advanceTimersByTimeAsync(5_000);
    parts.done(Buffer.from("late"), null);

    expect(await answer).toEqual(Buffer.from("late"));
  });

  it.each([2, 5_000])(
    "is late once the credited waits are used up, too, and not before: %d ms",
    async (waitedMs) => {
      const parts = setUp();
      let answered = false;
      const refused = refusal(parts.start()).finally(() => {
        answered = true;
      });
      parts.credit(waitedMs);

      await vi.advanceTimersByTimeAsync(TIMEOUT_MS + waitedMs + OVERDUE_MS - 1);
      expect(answered).toBe(false);
      await vi.advanceTimersByTimeAsync(2);

      expect(answered).toBe(true);
      expect((await refused).code).toBe("run-timeout");
    },
  );

  it("does not take a run that has ended for late when its report is", async () => {
    const parts = setUp();
    const answer = parts.start();
    await vi.advanceTimersByTimeAsync(500);
    parts.credit(Infinity);

    await vi.advanceTimersByTimeAsync(60_000);
    parts.done(Buffer.from("done"), null);

    expect(await answer).toEqual(Buffer.from("done"));
  });

  it("does not fail twice when the sandbox fails after that", async () => {
    const parts = setUp();
    const refused = refusal(parts.start());
    await vi.advanceTimersByTimeAsync(5_000);

    parts.done(null, failed("internal"));

    expect((await refused).code).toBe("run-timeout");
    expect(parts.onEnded).toHaveBeenCalledTimes(1);
    expect(parts.onError).not.toHaveBeenCalled();
  });

  it.each([
    {
      name: "the run has ended",
      end: ({ done }: ReturnType<typeof setUp>) => {
        done(null, null);
      },
    },
    {
      name: "the caller is answered without the sandbox",
      end: () => {
        vi.advanceTimersByTime(TIMEOUT_MS + OVERDUE_MS + 1);
      },
    },
  ])("keeps no timer once $name", async ({ end }) => {
    const parts = setUp();
    const answer = parts.start();
    expect(vi.getTimerCount()).toBe(1);

    end(parts);
    await Promise.allSettled([answer]);

    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("engine/run cancel", () => {
  it("cancels its own run when the caller goes", async () => {
    const caller = new AbortController();
    const parts = setUp(scope(Infinity, caller.signal));
    const refused = refusal(parts.start());
    expect(parts.native.cancel).not.toHaveBeenCalled();

    caller.abort();

    expect(parts.native.cancel.mock.calls).toEqual([[parts.call()?.[0]]]);
    expect(parts.onEnded).not.toHaveBeenCalled();
    parts.done(null, failed("cancelled"));
    expect((await refused).code).toBe("run-cancelled");
  });

  it("cancels when a scope of its own kind says so", async () => {
    const caller = createRequestScope({ deadlineAtMs: Infinity });
    const parts = setUp(caller);
    const refused = refusal(parts.start());

    caller.cancel();

    expect(parts.native.cancel.mock.calls).toEqual([[parts.call()?.[0]]]);
    parts.done(null, failed("cancelled"));
    expect((await refused).code).toBe("run-cancelled");
  });

  it.each([
    { name: "signal", gone: () => scope(Infinity, AbortSignal.abort()) },
    {
      name: "scope",
      gone: () => {
        const caller = createRequestScope({ deadlineAtMs: Infinity });
        caller.cancel();
        return caller;
      },
    },
  ])("cancels at once when the caller had gone: $name", async ({ gone }) => {
    const parts = setUp(gone());

    const refused = refusal(parts.start());

    expect(parts.native.cancel.mock.calls).toEqual([[parts.call()?.[0]]]);
    parts.done(null, failed("cancelled"));
    expect((await refused).code).toBe("run-cancelled");
  });

  it.each([
    {
      name: "answered",
      end: ({ done }: ReturnType<typeof setUp>) => {
        done(Buffer.from("ok"), null);
      },
    },
    {
      name: "failed",
      end: ({ done }: ReturnType<typeof setUp>) => {
        done(null, failed("trap"));
      },
    },
    {
      name: "was too late",
      end: () => {
        vi.advanceTimersByTime(TIMEOUT_MS + OVERDUE_MS + 1);
      },
    },
  ])("listens to the caller no longer once the run $name", async ({ end }) => {
    const caller = new AbortController();
    const parts = setUp(scope(Infinity, caller.signal));
    const answer = parts.start();
    expect(getEventListeners(caller.signal, "abort")).toHaveLength(1);

    end(parts);
    await Promise.allSettled([answer]);

    expect(getEventListeners(caller.signal, "abort")).toHaveLength(0);
    caller.abort();
    expect(parts.native.cancel).not.toHaveBeenCalled();
  });
});
