import { afterEach, describe, expect, it } from "vitest";

import {
  clock,
  messages,
  MiB,
  refusal,
  startEngine,
  timed,
  type TestEngine,
  type TestEngineOptions,
} from "../../support/engine.js";

const SLACK_MS = 250;

describe("integration/engine/slots", () => {
  let engine: TestEngine;
  async function start(options: TestEngineOptions): Promise<void> {
    engine = await startEngine(options);
  }
  afterEach(() => engine.close());

  it("says what it waited for, on time, when a deadline passes in the queue", async () => {
    await start({ maxConcurrentRuns: 1 });
    const holder = await engine.load("hostile/loop-run");
    const quick = await engine.load("v1/log");
    const holding = timed(engine.run(holder, { timeoutMs: 1_000 }));
    const before = engine.lines.length;

    const { outcome, ms } = await timed(engine.run(quick, { deadlineMs: 200 }));

    expect(outcome).toMatchObject({
      reason: {
        code: "slot-wait",
        message: "waiting for a run slot: deadline exceeded",
      },
    });
    expect(ms).toBeGreaterThanOrEqual(199);
    expect(ms).toBeLessThan(200 + SLACK_MS);
    // Nothing ran: the guest would have logged.
    expect(engine.lines).toHaveLength(before);
    await holding;
    expect(messages(await engine.run(quick))).toEqual([]);
  });

  it("gives a slot back when its caller goes away", async () => {
    await start({ maxConcurrentRuns: 1 });
    const holder = await engine.load("hostile/loop-run");
    const quick = await engine.load("v1/hello");
    const caller = new AbortController();
    const { signal } = caller;
    const holding = timed(engine.run(holder, { timeoutMs: 60_000, signal }));
    const waiting = timed(engine.run(quick));
    await sleep(100);

    const abortedAtMs = clock.monotonicMs();
    caller.abort();

    expect((await holding).outcome).toMatchObject({
      reason: { code: "run-cancelled" },
    });
    expect((await waiting).outcome.status).toBe("fulfilled");
    expect(clock.monotonicMs() - abortedAtMs).toBeLessThan(SLACK_MS);
  });

  it("lets a caller leave the queue", async () => {
    await start({ maxConcurrentRuns: 1 });
    const holder = await engine.load("hostile/loop-run");
    const holding = timed(engine.run(holder, { timeoutMs: 500 }));
    const caller = new AbortController();
    const { signal } = caller;
    const waiting = timed(engine.run(holder, { timeoutMs: 500, signal }));
    await sleep(50);

    caller.abort();

    const { outcome, ms } = await waiting;
    expect(outcome).toMatchObject({ reason: { code: "run-cancelled" } });
    expect(ms).toBeLessThan(50 + SLACK_MS);
    await holding;
  });

  it("gives each module its turn, whoever queued first", async () => {
    await start({ maxConcurrentRuns: 1 });
    const greedy = await engine.load("hostile/loop-run");
    const modest = await engine.load("v1/hello");
    const order: string[] = [];
    const done = async (name: string, run: Promise<unknown>) => {
      await Promise.allSettled([run]);
      order.push(name);
    };

    const runs = Array.from({ length: 10 }, () =>
      done("greedy", engine.run(greedy, { timeoutMs: 50 })),
    );
    runs.push(done("modest", engine.run(modest)));
    await Promise.all(runs);

    // One greedy run has the slot already, another may have the first turn.
    expect(order.indexOf("modest")).toBeLessThanOrEqual(2);
  });

  it("serves one module first come, first served", async () => {
    await start({ maxConcurrentRuns: 1 });
    const lease = await engine.load("hostile/loop-run");
    const order: number[] = [];

    await Promise.all(
      Array.from({ length: 5 }, async (_, index) => {
        await timed(engine.run(lease, { timeoutMs: 30 }));
        order.push(index);
      }),
    );

    expect(order).toEqual([0, 1, 2, 3, 4]);
  });

  it("bounds the runs of one step, and no other step's", async () => {
    await start({});
    const lease = await engine.load("hostile/loop-run");
    const narrow = { timeoutMs: 400, concurrency: 1, stepKey: "narrow" };
    const startedAtMs = clock.monotonicMs();
    const endOf = async (run: Promise<unknown>) => {
      await Promise.allSettled([run]);
      return clock.monotonicMs() - startedAtMs;
    };

    const [first, second, other] = await Promise.all([
      endOf(engine.run(lease, narrow)),
      endOf(engine.run(lease, narrow)),
      endOf(engine.run(lease, { ...narrow, stepKey: "other" })),
    ]);

    const [earlier, later] = [first, second].sort((a, b) => a - b);
    expect(later).toBeGreaterThanOrEqual(799);
    expect(earlier).toBeLessThan(400 + SLACK_MS);
    expect(other).toBeLessThan(400 + SLACK_MS);
  });

  it("says that the step's own bound was in the way", async () => {
    await start({});
    const lease = await engine.load("hostile/loop-run");
    const step = { timeoutMs: 600, concurrency: 1, stepKey: "narrow" };
    const holding = timed(engine.run(lease, step));

    const error = await refusal(
      engine.run(lease, { ...step, deadlineMs: 100 }),
    );

    expect(error.code).toBe("slot-wait");
    expect(error.message).toMatch(
      /^waiting for .*limits\.concurrency.*: deadline exceeded$/,
    );
    await holding;
  });

  it("reserves run memory before a run", async () => {
    await start({ maxTotalRunMemoryBytes: 128 * MiB });
    const lease = await engine.load("hostile/loop-run");
    const large = { timeoutMs: 400, memoryBytes: 96 * MiB };
    const holding = timed(engine.run(lease, large));

    const error = await refusal(
      engine.run(lease, { ...large, deadlineMs: 100 }),
    );

    expect(error.code).toBe("slot-wait");
    expect(error.message).toMatch(
      /^waiting for .*memory.*: deadline exceeded$/,
    );
    await holding;
    const after = await timed(engine.run(lease, { ...large, timeoutMs: 50 }));
    expect(after.outcome).toMatchObject({ reason: { code: "run-timeout" } });
  });

  it("never lets one run hold more than all runs may", async () => {
    await start({ maxTotalRunMemoryBytes: 16 * MiB });

    const { outcome } = await timed(
      engine.call("hostile/grow-loop", { memoryBytes: 64 * MiB }),
    );

    if (outcome.status === "fulfilled") {
      const pages = Number.parseInt(messages(outcome.value)[0] ?? "", 16);
      expect(pages * 65536).toBeLessThanOrEqual(16 * MiB);
    } else {
      expect(outcome.reason).toMatchObject({ name: "EngineError" });
    }
  });

  it("runs no more at once than it may", async () => {
    await start({ maxConcurrentRuns: 2 });
    const lease = await engine.load("wasi/poll-hour");

    const { ms } = await timed(
      Promise.allSettled(
        Array.from({ length: 6 }, () => engine.run(lease, { timeoutMs: 200 })),
      ),
    );

    // Six runs of 200 ms in pairs.
    expect(ms).toBeGreaterThanOrEqual(599);
    expect(ms).toBeLessThan(600 + 3 * SLACK_MS);
  });

  it("keeps its slots through 2,000 short runs that fail in every way", async () => {
    await start({ maxConcurrentRuns: 2 });
    const leases = await Promise.all(
      ["v1/hello", "hostile/unreachable", "hostile/response-garbage"].map(
        (guest) => engine.load(guest),
      ),
    );

    await Promise.allSettled(
      Array.from({ length: 2_000 }, (_, index) => {
        const lease = leases[index % 3];
        if (lease === undefined) throw new Error("no lease");
        return engine.run(
          lease,
          index % 7 === 0 ? { signal: AbortSignal.abort() } : {},
        );
      }),
    );

    const { outcome, ms } = await timed(engine.call("v1/hello"));
    expect(outcome.status).toBe("fulfilled");
    expect(ms).toBeLessThan(1_000);
  });
});

async function sleep(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}
