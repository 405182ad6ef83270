import { afterEach, beforeEach, describe, expect, it } from "vitest";

import type { ModuleLease } from "../../src/engine/index.js";
import {
  messages,
  MiB,
  refusal,
  scope,
  startEngine,
  timed,
  type TestEngine,
} from "../support/engine.js";
import { assembleText } from "../support/guests.js";
import {
  componentWith,
  manyInstances,
  manyMemories,
  nestedInstances,
} from "../support/hostile-modules.js";
import { watchResident } from "../support/resident.js";

/** A component makes its instances before its first instruction runs, and before any epoch check. */
describe("security/instances", () => {
  let engine: TestEngine;
  let quick: ModuleLease;
  beforeEach(async () => {
    engine = await startEngine();
    quick = await engine.load("v1/hello");
  });
  afterEach(() => engine.close());

  /** The promise's outcome, and the slowest answer of a quick guest meanwhile. */
  async function beside<T>(work: Promise<T>) {
    const running = { over: false };
    const done = timed(work).finally(() => (running.over = true));
    let slowestMs = 0;
    do {
      const { outcome, ms } = await timed(engine.run(quick));
      expect(outcome.status).toBe("fulfilled");
      slowestMs = Math.max(slowestMs, ms);
    } while (!running.over);
    return { ...(await done), slowestMs };
  }

  it.each([
    {
      name: "1,000 instances of 10,000 globals",
      text: manyInstances(10_000, 1_000),
      want: /instances count exceeds limit of 1000/,
    },
    {
      name: "50,000 instances of nothing",
      text: manyInstances(0, 50_000),
      want: /instances count exceeds limit of 1000/,
    },
    {
      name: "10,001 globals",
      text: manyInstances(10_001, 1),
      want: /too many globals: got 10001, expected at most 10000/,
    },
  ])("refuses $name, and serves others meanwhile", async ({ text, want }) => {
    const module = await engine.write(await assembleText(text));
    const resident = watchResident();

    const { outcome, ms, slowestMs } = await beside(
      engine.engine.load(module, scope()),
    );

    expect(outcome.status).toBe("rejected");
    const error = (outcome as PromiseRejectedResult).reason as Error;
    expect(error).toMatchObject({
      code: expect.stringMatching(
        /^(?:module-invalid|compile-failed)$/,
      ) as string,
    });
    expect(error.message).toMatch(want);
    expect(ms).toBeLessThan(30_000);
    expect(slowestMs).toBeLessThan(1_000);
    expect(resident.stop()).toBeLessThan(200 * MiB);
  });

  it("ends a run of 990 instances of 10,000 globals at the hundredth", async () => {
    const lease = await engine.load(
      await assembleText(manyInstances(10_000, 990)),
    );
    const resident = watchResident();

    const { outcome, ms, slowestMs } = await beside(engine.run(lease));

    expect(outcome).toMatchObject({
      reason: {
        code: "run-trap",
        message: expect.stringMatching(
          /instance count too high at 101/,
        ) as string,
      },
    });
    expect(ms).toBeLessThan(1_000);
    expect(slowestMs).toBeLessThan(1_000);
    expect(resident.stop()).toBeLessThan(200 * MiB);
    lease.release();
  });

  it("refuses 990 instances of 990 instances, who fit in 7 KB and compile to megabytes", async () => {
    const bytes = await assembleText(nestedInstances(990));
    expect(bytes.length).toBeLessThan(7_000);
    const resident = watchResident();

    const { outcome, ms, slowestMs } = await beside(engine.call(bytes));

    expect(outcome).toMatchObject({
      reason: {
        code: "module-invalid",
        message: expect.stringMatching(
          /its compiled form has \d+ bytes, expected at most \d+$/,
        ) as string,
      },
    });
    expect(ms).toBeLessThan(30_000);
    expect(slowestMs).toBeLessThan(1_000);
    expect(resident.stop()).toBeLessThan(200 * MiB);
  });

  it("gives back what a hundred instances of 10,000 globals held", async () => {
    // The main module is the hundredth.
    const text = manyInstances(10_000, 99);
    const lease = await engine.load(await assembleText(text));
    const resident = watchResident();

    for (let round = 0; round < 20; round++) {
      const { outcome, slowestMs } = await beside(engine.run(lease));
      expect(outcome.status).toBe("fulfilled");
      expect(slowestMs).toBeLessThan(1_000);
    }

    expect(resident.stop()).toBeLessThan(200 * MiB);
    lease.release();
  });

  it("ends a guest that makes resources without end", async () => {
    const module = await assembleText(
      componentWith(
        `(type $resource (resource (rep i32)))
        (core func $new (canon resource.new $resource))
        (core instance $host (export "new" (func $new)))`,
        {
          imports: '(import "host" "new" (func $new (param i32) (result i32)))',
          run: "(loop $again (drop (call $new (i32.const 1))) (br $again))",
        },
      ),
    );
    const resident = watchResident();

    const { outcome, ms } = await timed(engine.call(module));

    expect(outcome).toMatchObject({
      reason: {
        code: "run-trap",
        message: expect.stringMatching(
          /cannot allocate another handle: store handle limit exceeded$/,
        ) as string,
      },
    });
    expect(ms).toBeLessThan(2_000);
    expect(resident.stop()).toBeLessThan(50 * MiB);
    expect(messages(await engine.run(quick))).toEqual(["hello world"]);
  });
});

describe("security/instances pool", () => {
  let engine: TestEngine;
  beforeEach(async () => {
    // A pool for one run, with room for two memories and eight core instances.
    engine = await startEngine({ maxConcurrentRuns: 1 });
  });
  afterEach(() => engine.close());

  it.each([
    {
      name: "five memories",
      text: manyMemories(4),
      // 64 MiB are 1,024 pages; one of them is the main module's.
      want: ["000003ff"],
    },
    { name: "ten instances", text: manyInstances(1, 9), want: [] },
  ])(
    "answers a component of $name, which the pool has no room for",
    async ({ text, want }) => {
      const lease = await engine.load(await assembleText(text));

      const responses = await Promise.all(
        Array.from({ length: 8 }, () => engine.run(lease)),
      );

      for (const response of responses)
        expect(messages(response)).toEqual(want);
      // It fits a pool as such: only this one is too small.
      expect(engine.lines).toContainEqual(
        expect.objectContaining({
          message: "module loaded",
          fields: expect.objectContaining({ pooled: true }) as object,
        }),
      );
      expect(messages(await engine.call("v2/hello"))).toEqual(["hello world"]);
      lease.release();
    },
  );

  it("fails such a component as any other at its limits", async () => {
    const lease = await engine.load(await assembleText(manyMemories(4)));

    const error = await refusal(engine.run(lease, { memoryBytes: 3 * 65536 }));

    expect(error.code).toBe("run-memory");
    lease.release();
  });
});
