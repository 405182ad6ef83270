import { afterEach, beforeEach, describe, expect, it } from "vitest";

import {
  messages,
  MiB,
  refusal,
  residentBytes,
  startEngine,
  timed,
  type TestEngine,
} from "../support/engine.js";
import { assembleText } from "../support/guests.js";
import { watchResident } from "../support/resident.js";

const pageBytes = 65536;

describe("security/memory", () => {
  let engine: TestEngine;
  beforeEach(async () => {
    engine = await startEngine();
  });
  afterEach(() => engine.close());

  it.each([{ memoryBytes: 1 * MiB }, { memoryBytes: 64 * MiB }])(
    "lets memory grow to $memoryBytes bytes and no further",
    async ({ memoryBytes }) => {
      const response = await engine.call("hostile/grow-loop", { memoryBytes });

      expect(Number.parseInt(messages(response)[0] ?? "", 16)).toBe(
        memoryBytes / pageBytes,
      );
    },
  );

  it("counts tables against the same limit", async () => {
    const memoryBytes = 4 * MiB;

    const response = await engine.call("hostile/table-grow-loop", {
      memoryBytes,
    });

    const slots = Number.parseInt(messages(response)[0] ?? "", 16);
    // Eight bytes a slot, beside two pages of memory; a pool may have fewer to give.
    expect(slots).toBeGreaterThanOrEqual(1);
    expect(slots * 8).toBeLessThanOrEqual(memoryBytes - 2 * pageBytes);
  });

  it.each([
    { guest: "hostile/memory-too-large", want: /initial memory.*4294967296/ },
    { guest: "hostile/table-bomb", want: /initial table/ },
  ])("refuses $guest at load", async ({ guest, want }) => {
    const error = await refusal(engine.load(guest));

    expect(error.code).toBe("module-invalid");
    expect(error.message).toMatch(/^module Path module-\d+\.wasm /);
    expect(error.message).toMatch(want);
    expect(error.message).toContain("--module-memory-limit");
    expect(engine.compiles()).toBe(0);
  });

  it("fails a run whose initial memory is above the step's own limit", async () => {
    const lease = await engine.load("hostile/marker");

    const error = await refusal(engine.run(lease, { memoryBytes: pageBytes }));

    expect(error.code).toBe("run-memory");
    expect(error.message).toMatch(/limits\.memory/);
    expect(error.message).toContain("65536");
    lease.release();
  });

  it("names the limit when a guest fails for want of memory", async () => {
    const lease = await engine.load("v1/echo");

    const error = await refusal(
      engine.run(lease, {
        request: Buffer.alloc(8 * MiB),
        memoryBytes: 2 * MiB,
      }),
    );

    expect(error.code).toBe("run-memory");
    expect(error.message).toMatch(/limits\.memory is 2097152 bytes/);
    lease.release();
  });

  it("bounds a hundred tables in one module", async () => {
    const tables = "(table 100000 funcref)".repeat(100);
    const module = await assembleText(`(module
      (memory (export "memory") 1)
      ${tables}
      (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
      (func (export "wasmfn_run") (param i32 i32) (result i64) (i64.const 0)))`);

    const error = await refusal(engine.call(module, { memoryBytes: 64 * MiB }));

    // 100 tables of 800 kB.
    expect(["run-memory", "module-invalid"]).toContain(error.code);
  });

  it("keeps eight bombs at once within the stated total", async () => {
    const bounded = await startEngine({
      maxTotalRunMemoryBytes: 256 * MiB,
      engineWorkers: 2,
    });
    const lease = await bounded.load("hostile/memory-bomb");
    await timed(bounded.run(lease, { timeoutMs: 100, memoryBytes: 64 * MiB }));
    const peak = watchResident();

    const runs = await Promise.all(
      Array.from({ length: 8 }, () =>
        timed(bounded.run(lease, { timeoutMs: 700, memoryBytes: 64 * MiB })),
      ),
    );

    // Each fills all it gets; unbounded, the eight of them take 512 MiB.
    expect(peak.stop()).toBeLessThan((256 + 96) * MiB);
    for (const { outcome } of runs) {
      expect(outcome).toMatchObject({ reason: { code: "run-timeout" } });
    }
    expect(messages(await bounded.call("v1/hello"))).toEqual(["hello world"]);
    lease.release();
    await bounded.close();
  });

  it("gives the memory of a bomb back", async () => {
    const lease = await engine.load("hostile/memory-bomb");
    const bomb = () =>
      timed(engine.run(lease, { timeoutMs: 150, memoryBytes: 128 * MiB }));
    await bomb();
    const before = residentBytes();

    for (let round = 0; round < 8; round++) await bomb();

    expect(residentBytes() - before).toBeLessThan(64 * MiB);
    lease.release();
  });
});
