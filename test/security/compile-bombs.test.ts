import { afterAll, beforeAll, describe, expect, it } from "vitest";

import {
  messages,
  MiB,
  residentBytes,
  scope,
  startEngine,
  timed,
  type TestEngine,
} from "../support/engine.js";
import {
  compileBomb,
  hugeFunction,
  largeCustomSection,
  longExportName,
  manyDataSegments,
  manyFunctions,
  manyLocals,
  nestedBlocks,
} from "../support/hostile-modules.js";

/** Modules that cost their reader or compiler out of all proportion. */
describe("security/compile-bombs", () => {
  let engine: TestEngine;
  beforeAll(async () => {
    engine = await startEngine();
  });
  afterAll(() => engine.close());

  it("ends a compile that outgrows its limits, remembers it, and serves others meanwhile", async () => {
    const module = await engine.write(compileBomb(6_000, 6_000));
    expect(module.sizeBytes).toBeLessThan(MiB);
    const good = await engine.load("v1/hello");
    const before = residentBytes();

    const bomb = timed(engine.engine.load(module, scope()));
    const beside = await timed(engine.run(good));
    const { outcome } = await bomb;

    expect(beside.outcome.status).toBe("fulfilled");
    expect(beside.ms).toBeLessThan(500);
    expect(outcome).toMatchObject({ reason: { code: "compile-failed" } });
    const { message } = (outcome as PromiseRejectedResult).reason as Error;
    expect(message).toContain(module.description);
    expect(message).toMatch(/CPU|memory|MiB| s\b/);
    expect(residentBytes() - before).toBeLessThan(100 * MiB);

    const again = await timed(engine.engine.load(module, scope()));
    expect(again.outcome).toMatchObject({ reason: { code: "compile-failed" } });
    expect(again.ms).toBeLessThan(100);
    good.release();
  });

  it.each([
    { name: "1,000,000 functions", make: () => manyFunctions(1_000_000) },
    { name: "50,000 locals", make: () => manyLocals(50_000) },
    { name: "150,000 data segments", make: () => manyDataSegments(150_000) },
    { name: "an export name of 10 MB", make: () => longExportName(10_000_000) },
    { name: "one function of 7 MB", make: () => hugeFunction(7_000_000) },
  ])("refuses $name in under two seconds", async ({ make }) => {
    const module = await engine.write(make());
    const compiled = engine.compiles();

    const { outcome, ms } = await timed(engine.engine.load(module, scope()));

    expect(outcome).toMatchObject({ reason: { code: "module-invalid" } });
    expect(ms).toBeLessThan(2_000);
    expect(engine.compiles()).toBe(compiled);
  });

  // The compiler may make something of these, or not; either way in bounded time, and once.
  it.each([
    { name: "15,000 nested blocks", make: () => nestedBlocks(15_000) },
    { name: "500,000 nested blocks", make: () => nestedBlocks(500_000) },
    { name: "100,000 data segments", make: () => manyDataSegments(100_000) },
    { name: "20,000 locals", make: () => manyLocals(20_000) },
    { name: "one function of 1 MB", make: () => hugeFunction(1_000_000) },
  ])("bounds the compile of $name", async ({ make }) => {
    const module = await engine.write(make());

    const first = await timed(engine.engine.load(module, scope()));
    const second = await timed(engine.engine.load(module, scope()));

    expect(first.ms).toBeLessThan(60_000);
    expect(second.ms).toBeLessThan(200);
    if (first.outcome.status === "rejected") {
      const { code } = first.outcome.reason as { code: string };
      expect(["module-invalid", "compile-failed"]).toContain(code);
    }
    expect(messages(await engine.call("v1/hello"))).toEqual(["hello world"]);
  });

  it("does not mind a custom section of 100 MB", async () => {
    const before = residentBytes();
    const module = await engine.write(largeCustomSection(100_000_000));

    const { outcome, ms } = await timed(engine.engine.load(module, scope()));

    expect(outcome.status).toBe("fulfilled");
    expect(ms).toBeLessThan(10_000);
    // The bytes are here once for the test and once while they are checked.
    expect(residentBytes() - before).toBeLessThan(400 * MiB);
  });
});
