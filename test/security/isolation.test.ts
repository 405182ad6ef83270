import { afterAll, beforeAll, describe, expect, it } from "vitest";

import {
  createLogCollector,
  messages,
  MiB,
  residentBytes,
  startEngine,
  type TestEngine,
} from "../support/engine.js";

/** Nothing of a run is there for the next one to find. */
describe("security/isolation", () => {
  let engine: TestEngine;
  beforeAll(async () => {
    engine = await startEngine({ maxConcurrentRuns: 4 });
  });
  afterAll(() => engine.close());

  it.each([
    { scanner: "hostile/scanner", where: "memory, tables and globals" },
    { scanner: "hostile/scanner-grown", where: "memory it grows into" },
  ])("leaves nothing in $where", async ({ scanner }) => {
    const marker = await engine.load("hostile/marker");
    const scanning = await engine.load(scanner);

    // One after the other in the same slots, and then all at once.
    for (let round = 0; round < 10; round++) {
      await engine.run(marker);
      expect(messages(await engine.run(scanning))).toEqual(["00000000"]);
    }
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, index) =>
        engine.run(index % 2 === 0 ? marker : scanning),
      ),
    );

    expect(answers.flatMap(messages)).toEqual(new Array(30).fill("00000000"));
    marker.release();
    scanning.release();
  });

  it("leaves nothing of a run that was cut", async () => {
    const bomb = await engine.load("hostile/memory-bomb");
    const scanning = await engine.load("hostile/scanner");

    for (let round = 0; round < 5; round++) {
      await Promise.allSettled([
        engine.run(bomb, { timeoutMs: 50, memoryBytes: 32 * MiB }),
        engine.run(bomb, { timeoutMs: 50, memoryBytes: 32 * MiB }),
      ]);
      expect(messages(await engine.run(scanning))).toEqual(["00000000"]);
    }
    bomb.release();
    scanning.release();
  });

  it("writes each run's output to its own step's log", async () => {
    const talking = await engine.load("v1/log");
    const collectors = Array.from({ length: 16 }, createLogCollector);

    await Promise.all(
      collectors.map(({ logger }) => engine.run(talking, { logger })),
    );

    expect(collectors.map(({ lines }) => lines.length)).toEqual(
      new Array(16).fill(2),
    );
    talking.release();
  });

  it("shows a guest nothing of the process's environment", async () => {
    process.env["SECRET_OF_THE_HOST"] = "hunter2";
    try {
      const response = await engine.call("wasi/environ");

      expect(messages(response)).toEqual(["00000000"]);
    } finally {
      delete process.env["SECRET_OF_THE_HOST"];
    }
  });

  it("does not grow with the number of runs", async () => {
    const leases = await Promise.all(
      ["v1/hello", "v2/hello", "hostile/unreachable"].map((guest) =>
        engine.load(guest),
      ),
    );
    const runAll = async (rounds: number) => {
      for (let round = 0; round < rounds; round++) {
        await Promise.allSettled(
          leases.flatMap((lease) => [engine.run(lease), engine.run(lease)]),
        );
      }
    };
    await runAll(300);
    const before = residentBytes();

    await runAll(1_500);

    expect(residentBytes() - before).toBeLessThan(32 * MiB);
    for (const lease of leases) lease.release();
  });
});
