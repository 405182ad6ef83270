import { afterAll, beforeAll, describe, expect, it } from "vitest";

import {
  clock,
  messages,
  startEngine,
  timed,
  type TestEngine,
} from "../support/engine.js";

const RUNS = 20;
/** Generous: the benchmarks look at what it really takes. */
const FREE_AFTER_MS = 250;

/** A caller that goes away frees the only slot there is, whatever its guest does. */
describe("security/cancellation", () => {
  let engine: TestEngine;
  beforeAll(async () => {
    engine = await startEngine({ maxConcurrentRuns: 1 });
  });
  afterAll(() => engine.close());

  it.each([
    "hostile/loop-run",
    "hostile/loop-start",
    "hostile/log-loop",
    "hostile/http-loop",
    "hostile/grow-for-ever",
    "wasi/poll-hour",
    "wasi/clock-loop",
    "v2/loop",
    "v2/async-spin",
    "v2/async-wait-for-ever",
    "v2/async-yield-loop",
    "p2/sleep-hour",
  ])("frees the slot of %s at once", async (guest) => {
    const lease = await engine.load(guest);
    const quick = await engine.load("v1/hello");
    const latenessesMs: number[] = [];

    for (let round = 0; round < RUNS; round++) {
      const caller = new AbortController();
      const { signal } = caller;
      const holding = timed(engine.run(lease, { timeoutMs: 60_000, signal }));
      await new Promise((resolve) => setTimeout(resolve, 15));
      const waiting = engine.run(quick);
      const cancelledAtMs = clock.monotonicMs();
      caller.abort();
      expect(messages(await waiting)).toEqual(["hello world"]);
      latenessesMs.push(clock.monotonicMs() - cancelledAtMs);
      expect((await holding).outcome).toMatchObject({
        reason: { code: "run-cancelled" },
      });
    }

    const median = latenessesMs.sort((a, b) => a - b)[RUNS / 2];
    expect(median).toBeLessThan(FREE_AFTER_MS);
    lease.release();
    quick.release();
  });
});
