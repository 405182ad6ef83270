import { getEventListeners } from "node:events";

import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { EngineError } from "../../../src/engine/error.js";
import {
  createSlots,
  type SlotOptions,
  type SlotRequest,
  type Slots,
} from "../../../src/engine/slots.js";
import type { RequestScope } from "../../../src/ports.js";
import { clock, scope } from "../../support/engine.js";
import { recordingMetrics } from "../function/fixtures.js";
import { digestOf, settle, useFakeTime } from "./fixtures.js";

beforeEach(useFakeTime);
afterEach(() => {
  vi.useRealTimers();
});

/** Somebody who asked for a slot, and what has come of it. */
interface Asker {
  readonly name: string;
  outcome: "waits" | "runs" | EngineError;
  release: () => void;
}

/** Slots whose askers are written down in the order in which they start. */
function open(options: Partial<SlotOptions> = {}) {
  const metrics = recordingMetrics();
  const slots = createSlots(
    { maxConcurrentRuns: 0, maxTotalRunMemoryBytes: 0, ...options },
    clock,
    metrics,
  );
  const order: string[] = [];
  const ask = (
    name: string,
    request: Partial<SlotRequest> = {},
    within: RequestScope = scope(),
  ): Asker => {
    const asker: Asker = { name, outcome: "waits", release: () => undefined };
    slots
      .acquire(
        {
          module: digestOf(0),
          stepKey: name,
          stepConcurrency: null,
          memoryBytes: 1,
          ...request,
        },
        within,
      )
      .then(
        (release) => {
          asker.outcome = "runs";
          asker.release = release;
          order.push(name);
        },
        (thrown: unknown) => {
          asker.outcome = thrown as EngineError;
        },
      );
    return asker;
  };
  return { slots, order, ask, counted: metrics.counted };
}

/** What each has come to; errors by their sentence. */
function outcomes(...askers: Asker[]): string[] {
  return askers.map(({ outcome }) =>
    outcome instanceof EngineError
      ? `${outcome.code}: ${outcome.message}`
      : outcome,
  );
}

/** Everybody in turn gives back a slot, until nobody holds one. */
async function drain(slots: Slots, askers: readonly Asker[]): Promise<void> {
  for (let turn = 0; slots.running > 0 && turn <= askers.length; turn++) {
    for (const asker of askers) asker.release();
    await settle();
  }
}

describe("engine/slots fairness", () => {
  it("lets run at once what fits", async () => {
    const { slots, ask } = open({ maxConcurrentRuns: 2 });

    const askers = [ask("a"), ask("b"), ask("c")];
    await settle();

    expect(outcomes(...askers)).toEqual(["runs", "runs", "waits"]);
    expect(slots.running).toBe(2);
  });

  it("has no bound where none was set", async () => {
    const { slots, ask } = open();

    for (let n = 0; n < 1_000; n++) ask(`${n}`, { memoryBytes: 2 ** 40 });
    await settle();

    expect(slots.running).toBe(1_000);
  });

  it("serves one module first come, first served", async () => {
    const { slots, order, ask } = open({ maxConcurrentRuns: 1 });

    const askers = ["a", "b", "c", "d"].map((name) => ask(name));
    await settle();
    await drain(slots, askers);

    expect(order).toEqual(["a", "b", "c", "d"]);
  });

  it("serves modules in turn, however many runs of one wait", async () => {
    const { slots, order, ask } = open({ maxConcurrentRuns: 1 });
    const askers = [ask("held", { module: digestOf(9) })];
    for (const name of ["a1", "a2", "a3", "a4", "b1", "b2", "c1"]) {
      const module = digestOf(name.charCodeAt(0));
      askers.push(ask(name, { module }));
    }
    await settle();

    await drain(slots, askers);

    expect(order.slice(1)).toEqual(["a1", "b1", "c1", "a2", "b2", "a3", "a4"]);
  });

  it("lets a module that comes late wait for one run of each other at most", async () => {
    const { slots, order, ask } = open({ maxConcurrentRuns: 1 });
    const askers = ["a1", "a2", "a3"].map((name) => ask(name));
    await settle();

    askers.push(ask("b1", { module: digestOf(1) }), ask("a4"));
    await drain(slots, askers);

    expect(order).toEqual(["a1", "a2", "b1", "a3", "a4"]);
  });

  it("gives one slot back however often it is released", async () => {
    const { slots, ask } = open({ maxConcurrentRuns: 1 });
    const [a, b, c] = [ask("a"), ask("b"), ask("c")];
    await settle();

    a.release();
    a.release();
    await settle();
    a.release();
    await settle();

    expect(outcomes(b, c)).toEqual(["runs", "waits"]);
    expect(slots.running).toBe(1);
  });
});

describe("engine/slots limits.concurrency", () => {
  const step = { stepKey: "step", stepConcurrency: 1 };

  it("lets others pass a run that waits for its own step", async () => {
    const { ask } = open({ maxConcurrentRuns: 3 });

    const askers = [
      ask("first", step),
      ask("second", step),
      ask("other step"),
      ask("other module", { module: digestOf(1) }),
      ask("too many"),
    ];
    await settle();

    expect(outcomes(...askers)).toEqual([
      "runs",
      "waits",
      "runs",
      "runs",
      "waits",
    ]);
  });

  it("counts a step's runs whichever module they run", async () => {
    const { ask } = open();

    const askers = [
      ask("one module", { ...step, module: digestOf(1) }),
      ask("another", { ...step, module: digestOf(2) }),
    ];
    await settle();
    expect(outcomes(...askers)).toEqual(["runs", "waits"]);
    askers[0]?.release();
    await settle();

    expect(outcomes(...askers)).toEqual(["runs", "runs"]);
  });

  it("gives a step every run back that ended", async () => {
    const { ask } = open();
    const two = { stepKey: "step", stepConcurrency: 2 };
    const first = ["a", "b"].map((name) => ask(name, two));
    await settle();
    for (const asker of first) asker.release();

    const second = ["c", "d", "e"].map((name) => ask(name, two));
    await settle();

    expect(outcomes(...second)).toEqual(["runs", "runs", "waits"]);
  });

  it("keeps a step's runs in their order", async () => {
    const { slots, order, ask } = open();
    const askers = ["a", "b", "c"].map((name) => ask(name, step));
    await settle();

    await drain(slots, askers);

    expect(order).toEqual(["a", "b", "c"]);
  });

  it("lets as many run as the step allows", async () => {
    const { ask } = open();
    const three = { stepKey: "step", stepConcurrency: 3 };

    const askers = ["a", "b", "c", "d"].map((name) => ask(name, three));
    await settle();

    expect(outcomes(...askers)).toEqual(["runs", "runs", "runs", "waits"]);
  });

  it("gives a run whose step is free again its turn before those that passed it", async () => {
    const { order, ask } = open({ maxConcurrentRuns: 2 });
    const first = ask("first", { ...step, module: digestOf(1) });
    const passing = ask("passing", { module: digestOf(2) });
    ask("second", { ...step, module: digestOf(1) });
    ask("later", { module: digestOf(2) });
    await settle();

    first.release();
    passing.release();
    await settle();

    expect(order).toEqual(["first", "passing", "second", "later"]);
  });
});

describe("engine/slots run memory", () => {
  it("lets nobody overtake a run that waits for memory, or it would starve", async () => {
    const { order, ask } = open({ maxTotalRunMemoryBytes: 10 });
    const half = ask("half", { memoryBytes: 5 });
    const large = ask("large", { memoryBytes: 8, module: digestOf(1) });
    const small = ask("small", { memoryBytes: 1, module: digestOf(2) });
    await settle();
    expect(outcomes(half, large, small)).toEqual(["runs", "waits", "waits"]);

    half.release();
    await settle();

    expect(order).toEqual(["half", "large", "small"]);
  });

  it("lets runs fill the memory exactly", async () => {
    const { ask } = open({ maxTotalRunMemoryBytes: 10 });

    const askers = [4, 6, 1].map((memoryBytes) =>
      ask(`${memoryBytes}`, { memoryBytes }),
    );
    await settle();

    expect(outcomes(...askers)).toEqual(["runs", "runs", "waits"]);
  });

  it("gives a run that wants more than there is all of it, alone", async () => {
    const { ask } = open({ maxTotalRunMemoryBytes: 10 });
    const small = ask("small", { memoryBytes: 1 });
    const huge = ask("huge", { memoryBytes: 1_000 });
    const after = ask("after", { memoryBytes: 1 });
    await settle();
    expect(outcomes(small, huge, after)).toEqual(["runs", "waits", "waits"]);

    small.release();
    await settle();
    expect(outcomes(huge, after)).toEqual(["runs", "waits"]);
    huge.release();
    await settle();

    expect(outcomes(after)).toEqual(["runs"]);
  });

  it("lets a run that waits for its step pass on its turn, not its memory", async () => {
    const { ask } = open({ maxTotalRunMemoryBytes: 10 });
    const step = { stepKey: "step", stepConcurrency: 1, memoryBytes: 6 };
    ask("first", step);
    const second = ask("second", step);
    const other = ask("other", { memoryBytes: 4 });
    await settle();

    expect(outcomes(second, other)).toEqual(["waits", "runs"]);
  });
});

describe("engine/slots giving up", () => {
  it.each([
    {
      name: "a slot",
      options: { maxConcurrentRuns: 1 },
      request: {},
      want: "slot-wait: waiting for a run slot: deadline exceeded",
    },
    {
      name: "its step",
      options: {},
      request: { stepKey: "step", stepConcurrency: 1 },
      want: "slot-wait: waiting for the step's own runs (limits.concurrency): deadline exceeded",
    },
    {
      name: "memory",
      options: { maxTotalRunMemoryBytes: 10 },
      request: { memoryBytes: 6 },
      want: "slot-wait: waiting for run memory: deadline exceeded",
    },
    {
      name: "those before it",
      options: { maxTotalRunMemoryBytes: 20 },
      request: { memoryBytes: 11 },
      waiter: { memoryBytes: 1 },
      between: { memoryBytes: 15 },
      want: "slot-wait: waiting for a run slot: deadline exceeded",
    },
  ])(
    "says that it waited for $name until its deadline",
    async ({ options, request, waiter, between, want }) => {
      const { slots, ask } = open(options);
      ask("held", request);
      if (between !== undefined) ask("between", between);
      const waiting = ask("waiting", waiter ?? request, scope(500));

      await vi.advanceTimersByTimeAsync(499);
      expect(outcomes(waiting)).toEqual(["waits"]);
      await vi.advanceTimersByTimeAsync(1);

      expect(outcomes(waiting)).toEqual([want]);
      expect(slots.running).toBe(1);
    },
  );

  it.each([
    {
      name: "goes while it waits",
      make: () => {
        const caller = new AbortController();
        setTimeout(() => caller.abort(), 10);
        return scope(500, caller.signal);
      },
      want: "run-cancelled: waiting for a run slot: cancelled",
    },
    {
      name: "had gone before",
      make: () => scope(500, AbortSignal.abort()),
      want: "run-cancelled: waiting for a run slot: cancelled",
    },
    {
      name: "had no time left",
      make: () => scope(-1),
      want: "slot-wait: waiting for a run slot: deadline exceeded",
    },
  ])("ends the wait of a caller that $name", async ({ make, want }) => {
    const { slots, ask } = open({ maxConcurrentRuns: 1 });
    const held = ask("held");
    const waiting = ask("waiting", {}, make());

    await vi.advanceTimersByTimeAsync(20);

    expect(outcomes(waiting)).toEqual([want]);
    held.release();
    expect(slots.running).toBe(0);
  });

  it("frees those behind a run that gives up its wait for memory", async () => {
    const { ask } = open({ maxTotalRunMemoryBytes: 10 });
    ask("held", { memoryBytes: 5 });
    const large = ask("large", { memoryBytes: 8 }, scope(100));
    const small = ask("small", { memoryBytes: 2, module: digestOf(1) });
    const same = ask("same module", { memoryBytes: 2 });
    await settle();
    expect(outcomes(small, same)).toEqual(["waits", "waits"]);

    await vi.advanceTimersByTimeAsync(100);

    expect(outcomes(small, same)).toEqual(["runs", "runs"]);
    expect((large.outcome as EngineError).code).toBe("slot-wait");
  });

  it("leaves those that wait in their order when one gives up", async () => {
    const { slots, order, ask } = open({ maxConcurrentRuns: 1 });
    const caller = new AbortController();
    const askers = [
      ask("a"),
      ask("b"),
      ask("gone", {}, scope(Infinity, caller.signal)),
      ask("c"),
    ];

    caller.abort();
    await settle();
    await drain(slots, askers);

    expect(order).toEqual(["a", "b", "c"]);
  });

  it("does not take back a slot when the deadline passes later", async () => {
    const { slots, ask } = open({ maxConcurrentRuns: 1 });
    const caller = new AbortController();
    const held = ask("held");
    const waiting = ask("waiting", {}, scope(100, caller.signal));
    await settle();
    held.release();
    await settle();

    caller.abort();
    await vi.advanceTimersByTimeAsync(1_000);

    expect(outcomes(waiting)).toEqual(["runs"]);
    expect(slots.running).toBe(1);
  });

  it.each([
    { name: "it runs", end: (held: Asker) => held.release() },
    { name: "it gave up", end: () => vi.advanceTimersByTime(100) },
  ])("watches no caller once $name", async ({ end }) => {
    const { ask } = open({ maxConcurrentRuns: 1 });
    const { signal } = new AbortController();
    const held = ask("held");
    ask("waiting", {}, scope(100, signal));
    await settle();
    expect(getEventListeners(signal, "abort")).toHaveLength(1);

    end(held);
    await settle();

    expect(getEventListeners(signal, "abort")).toHaveLength(0);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("engine/slots metrics", () => {
  it("counts no wait where there is none, and who runs", async () => {
    const { ask, counted } = open();

    const askers = [ask("a"), ask("b")];
    await settle();
    askers[1]?.release();
    askers[1]?.release();

    expect(counted).toEqual([
      ...["queued 0", "running 1", "queued 0", "running 2", "running 1"],
    ]);
  });

  it("counts how long who had to wait has waited", async () => {
    const { ask, counted } = open({ maxConcurrentRuns: 1 });
    const first = ask("first");
    ask("second");
    await settle();

    await vi.advanceTimersByTimeAsync(1_500);
    first.release();

    expect(counted).toEqual([
      ...["queued 0", "running 1", "running 0", "running 1", "queued 1.5"],
    ]);
  });

  it.each([
    {
      name: "run memory",
      bounds: { maxTotalRunMemoryBytes: 1 },
      end: "deadline",
      want: ["denied pool 1", "queued 0.25"],
    },
    {
      name: "run memory",
      bounds: { maxTotalRunMemoryBytes: 1 },
      end: "cancelled",
      want: ["queued 0.25"],
    },
    {
      name: "a slot",
      bounds: { maxConcurrentRuns: 1 },
      end: "deadline",
      want: ["queued 0.25"],
    },
  ])(
    "counts the wait of who gives up on $name: $end",
    async ({ bounds, end, want }) => {
      const { ask, counted } = open(bounds);
      ask("first");
      await settle();
      const before = counted.length;
      const gone = new AbortController();

      ask(
        "second",
        {},
        end === "deadline" ? scope(250) : scope(1_000, gone.signal),
      );
      await vi.advanceTimersByTimeAsync(250);
      gone.abort();
      await settle();

      expect(counted.slice(before)).toEqual(want);
    },
  );
});

describe("engine/slots close", () => {
  const want = "run-cancelled: waiting for a run slot: shutting down";

  it("ends every wait and starts nothing in their place", async () => {
    const { slots, ask } = open({ maxTotalRunMemoryBytes: 10 });
    const held = ask("held", { memoryBytes: 5 });
    // When this one goes, the next would fit.
    const waiting = [ask("large", { memoryBytes: 8 }), ask("small")];
    await settle();

    slots.close();
    await settle();

    expect(outcomes(...waiting)).toEqual([want, want]);
    expect(outcomes(held)).toEqual(["runs"]);
    held.release();
    expect(slots.running).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("refuses whoever comes later", async () => {
    const { slots, ask } = open();

    slots.close();
    const late = ask("late");
    await settle();

    expect(outcomes(late)).toEqual([want]);
    expect(slots.running).toBe(0);
  });
});

describe("engine/slots any schedule", () => {
  /** `null` = no bound. */
  const STEP_CONCURRENCY = [null, 1, 2, 3] as const;

  const acquire = fc.record({
    do: fc.constant("acquire" as const),
    module: fc.nat(3),
    step: fc.nat(STEP_CONCURRENCY.length - 1),
    memoryBytes: fc.integer({ min: 1, max: 15 }),
  });
  const release = fc.record({
    do: fc.constant("release" as const),
    pick: fc.nat(),
  });
  const cancel = fc.record({
    do: fc.constant("cancel" as const),
    pick: fc.nat(),
  });
  const schedule = fc.array(
    fc.oneof(
      { weight: 4, arbitrary: acquire },
      { weight: 3, arbitrary: release },
      { weight: 1, arbitrary: cancel },
    ),
    { minLength: 1, maxLength: 60, size: "max" },
  );
  const bounds = fc.record({
    maxConcurrentRuns: fc.integer({ min: 1, max: 4 }),
    maxTotalRunMemoryBytes: fc.integer({ min: 1, max: 20 }),
  });

  interface Job extends Asker {
    readonly module: number;
    readonly step: number;
    readonly memoryBytes: number;
    readonly caller: AbortController;
    released: boolean;
  }

  it("never exceeds a bound, serves everybody in order, and ends at zero", async () => {
    await fc.assert(
      fc.asyncProperty(bounds, schedule, async (options, actions) => {
        const { slots, order, ask } = open(options);
        const jobs: Job[] = [];
        const holding = () =>
          jobs.filter(
            ({ outcome, released }) => outcome === "runs" && !released,
          );
        const waiting = () => jobs.filter(({ outcome }) => outcome === "waits");
        const giveBack = (job: Job | undefined) => {
          if (job === undefined) return;
          job.released = true;
          job.release();
        };
        const check = () => {
          const running = holding();
          expect(slots.running).toBe(running.length);
          expect(running.length).toBeLessThanOrEqual(options.maxConcurrentRuns);
          const memory = running.reduce((sum, job) => sum + job.memoryBytes, 0);
          expect(memory).toBeLessThanOrEqual(options.maxTotalRunMemoryBytes);
          for (const [step, concurrency] of STEP_CONCURRENCY.entries()) {
            expect(
              running.filter((job) => job.step === step).length,
            ).toBeLessThanOrEqual(concurrency ?? Infinity);
          }
          if (running.length === 0) expect(waiting()).toEqual([]);
        };

        for (const action of actions) {
          if (action.do === "acquire") {
            const caller = new AbortController();
            const asker = ask(
              String(jobs.length),
              {
                module: digestOf(action.module),
                stepKey: `step ${action.step}`,
                stepConcurrency: STEP_CONCURRENCY[action.step] ?? null,
                memoryBytes: action.memoryBytes,
              },
              scope(Infinity, caller.signal),
            );
            const job = Object.assign(asker, {
              ...action,
              memoryBytes: Math.min(
                action.memoryBytes,
                options.maxTotalRunMemoryBytes,
              ),
              caller,
              released: false,
            });
            jobs.push(job);
          } else if (action.do === "release") {
            const running = holding();
            giveBack(running[action.pick % running.length]);
          } else {
            const queue = waiting();
            queue[action.pick % queue.length]?.caller.abort();
          }
          await settle();
          check();
        }
        while (holding().length > 0) {
          giveBack(holding()[0]);
          await settle();
          check();
        }

        for (const job of jobs) {
          const gone = job.caller.signal.aborted;
          expect(job.outcome === "runs").toBe(!gone);
        }
        const started = order.map((name) => jobs[Number(name)]);
        for (const [at, job] of started.entries()) {
          const overtaken = started
            .slice(at + 1)
            .find(
              (later) =>
                later?.module === job?.module &&
                later?.step === job?.step &&
                Number(later?.name) < Number(job?.name),
            );
          expect(overtaken).toBeUndefined();
        }
        // Nothing leaked: one run gets all there is, at once.
        const all = ask("all", {
          memoryBytes: options.maxTotalRunMemoryBytes,
          stepKey: "step 1",
          stepConcurrency: 1,
        });
        await settle();
        expect(all.outcome).toBe("runs");
      }),
      { numRuns: 100 },
    );
  });
});
