import { afterAll, beforeAll, describe, expect, it } from "vitest";

import type { ModuleLease } from "../../../src/engine/index.js";
import {
  clock,
  messages,
  MiB,
  refusal,
  startEngine,
  timed,
  type TestEngine,
} from "../../support/engine.js";

/** What a busy machine may add; how late a quiet one is, the benchmarks measure. */
const SLACK_MS = 250;

/** Guests that never answer, each for another reason. */
const endless = [
  { guest: "hostile/loop-run" },
  { guest: "hostile/loop-start" },
  { guest: "hostile/loop-initialize" },
  { guest: "hostile/loop-alloc" },
  { guest: "hostile/log-loop" },
  { guest: "hostile/http-loop" },
  { guest: "hostile/grow-for-ever" },
  { guest: "hostile/fill-loop" },
  { guest: "hostile/copy-loop" },
  { guest: "hostile/table-fill-loop" },
  { guest: "wasi/poll-hour" },
  { guest: "wasi/yield-loop" },
  { guest: "wasi/clock-loop" },
  { guest: "wasi/write-loop" },
  { guest: "v2/loop" },
  { guest: "v2/loop-start" },
  { guest: "v2/loop-realloc" },
  { guest: "v2/log-loop" },
  { guest: "v2/async-yield-loop" },
  { guest: "v2/async-spin" },
  { guest: "p2/sleep-hour" },
];

describe("integration/engine/deadline", () => {
  let engine: TestEngine;
  beforeAll(async () => {
    engine = await startEngine();
  });
  afterAll(() => engine.close());

  async function withLease<T>(
    guest: string,
    use: (lease: ModuleLease) => Promise<T>,
  ): Promise<T> {
    const lease = await engine.load(guest);
    try {
      return await use(lease);
    } finally {
      lease.release();
    }
  }

  it("ends the very first run of an idle runtime in its time", async () => {
    const fresh = await startEngine();
    const lease = await fresh.load("hostile/loop-run");

    const { outcome, ms } = await timed(fresh.run(lease, { timeoutMs: 200 }));

    expect(outcome).toMatchObject({ reason: { code: "run-timeout" } });
    expect(ms).toBeGreaterThanOrEqual(199);
    expect(ms).toBeLessThan(200 + SLACK_MS);
    lease.release();
    await fresh.close();
  });

  it.each(endless)("ends $guest at limits.timeout", async ({ guest }) => {
    await withLease(guest, async (lease) => {
      const { outcome, ms } = await timed(
        engine.run(lease, { timeoutMs: 200 }),
      );

      expect(outcome).toMatchObject({ reason: { code: "run-timeout" } });
      expect(ms).toBeGreaterThanOrEqual(199);
      expect(ms).toBeLessThan(200 + SLACK_MS);
    });
  });

  it.each(endless)(
    "ends $guest at its caller's deadline",
    async ({ guest }) => {
      await withLease(guest, async (lease) => {
        const { outcome, ms } = await timed(
          engine.run(lease, { timeoutMs: 60_000, deadlineMs: 150 }),
        );

        expect(outcome).toMatchObject({ reason: { code: "run-deadline" } });
        expect(ms).toBeLessThan(150 + SLACK_MS);
      });
    },
  );

  it.each(endless)(
    "ends $guest when its caller goes away",
    async ({ guest }) => {
      await withLease(guest, async (lease) => {
        const caller = new AbortController();
        const running = timed(
          engine.run(lease, { timeoutMs: 60_000, signal: caller.signal }),
        );
        await sleep(100);

        const abortedAtMs = clock.monotonicMs();
        caller.abort();
        const { outcome } = await running;

        expect(outcome).toMatchObject({ reason: { code: "run-cancelled" } });
        expect(clock.monotonicMs() - abortedAtMs).toBeLessThan(SLACK_MS);
      });
    },
  );

  it("ends a task that returned and then spins, or takes its answer", async () => {
    await withLease("v2/async-return-then-spin", async (lease) => {
      const { outcome, ms } = await timed(
        engine.run(lease, { timeoutMs: 200 }),
      );

      if (outcome.status === "fulfilled") {
        expect(messages(outcome.value)).toEqual(["hello world"]);
      } else {
        expect(outcome.reason).toMatchObject({ code: "run-timeout" });
      }
      expect(ms).toBeLessThan(200 + SLACK_MS);
    });
  });

  it("never waits for a task that nothing can wake", async () => {
    const { outcome, ms } = await timed(
      engine.call("v2/async-wait-for-ever", { timeoutMs: 200 }),
    );

    // A deadlock may be noticed before the time is up.
    expect(outcome).toMatchObject({ status: "rejected" });
    expect(ms).toBeLessThan(1_500);
  });

  it("names the limit and the module", async () => {
    const error = await refusal(
      engine.call("hostile/loop-run", { timeoutMs: 50 }),
    );

    expect(error.message).toMatch(/^module Path module-\d+\.wasm failed: /);
    expect(error.message).toMatch(/limits\.timeout/);
    expect(error.message).toMatch(/50 ?ms/);
  });

  it("says whose deadline passed", async () => {
    const error = await refusal(
      engine.call("wasi/poll-hour", { timeoutMs: 60_000, deadlineMs: 300 }),
    );

    expect(error.code).toBe("run-deadline");
    expect(error.message).toMatch(/deadline exceeded/);
  });

  it("runs nothing for a caller whose deadline has passed", async () => {
    await withLease("v1/compute", async (lease) => {
      const { outcome, ms } = await timed(
        engine.run(lease, { deadlineMs: -1 }),
      );

      expect(outcome).toMatchObject({ status: "rejected" });
      expect(ms).toBeLessThan(100);
    });
  });

  it("runs nothing for a caller that has gone", async () => {
    await withLease("v1/compute", async (lease) => {
      const error = await refusal(
        engine.run(lease, { signal: AbortSignal.abort() }),
      );

      expect(error.code).toBe("run-cancelled");
    });
  });

  it("burns no CPU once cancelled runs have ended", async () => {
    await withLease("hostile/loop-run", async (lease) => {
      const caller = new AbortController();
      const { signal } = caller;
      const runs = Array.from({ length: 8 }, () =>
        timed(engine.run(lease, { timeoutMs: 60_000, signal })),
      );
      await sleep(200);
      caller.abort();
      await Promise.all(runs);

      const before = process.cpuUsage();
      await sleep(400);
      const { user, system } = process.cpuUsage(before);

      expect((user + system) / 1000).toBeLessThan(150);
    });
  });

  it("ends the run, too, when it had to answer before one instruction ended", async () => {
    // One fill of 1 GiB is not interrupted; the caller is answered on time all the same.
    const roomy = await startEngine({ memoryLimitBytes: 2048 * MiB });
    const lease = await roomy.load("hostile/fill-loop");

    const { ms } = await timed(
      roomy.run(lease, { timeoutMs: 100, memoryBytes: 2048 * MiB }),
    );

    expect(ms).toBeLessThan(100 + SLACK_MS);
    expect(messages(await roomy.call("v1/hello"))).toEqual(["hello world"]);
    lease.release();
    await roomy.close();
  });

  it("lets a quick guest answer beside eight that spin", async () => {
    const quick = await engine.load("v1/hello");
    await withLease("hostile/loop-run", async (lease) => {
      const spinners = Array.from({ length: 8 }, () =>
        timed(engine.run(lease, { timeoutMs: 1_500 })),
      );
      await sleep(100);

      const { outcome, ms } = await timed(engine.run(quick));

      expect(outcome.status).toBe("fulfilled");
      expect(ms).toBeLessThan(SLACK_MS);
      const ended = await Promise.all(spinners);
      for (const { outcome } of ended) {
        expect(outcome).toMatchObject({ reason: { code: "run-timeout" } });
      }
    });
    quick.release();
  });

  it("does not charge a guest for the time others had its thread", async () => {
    const narrow = await startEngine({ engineWorkers: 1 });
    const lease = await narrow.load("v1/compute");
    // Alone it takes some hundred milliseconds; five at once take five times that.
    const aloneMs: number[] = [];
    for (let i = 0; i < 3; i++) {
      const { ms } = await timed(narrow.run(lease));
      aloneMs.push(ms);
    }
    const timeoutMs = Math.ceil(Math.max(...aloneMs) * 4);

    const together = await Promise.all(
      Array.from({ length: 5 }, () => timed(narrow.run(lease, { timeoutMs }))),
    );

    expect(together.map(({ outcome }) => outcome.status)).toEqual(
      new Array(5).fill("fulfilled"),
    );
    lease.release();
    await narrow.close();
  });
});

async function sleep(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}
