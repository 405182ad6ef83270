import { readdirSync, truncateSync } from "node:fs";
import { join } from "node:path";

import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { createMetrics } from "../../../src/function/metrics.js";
import { keyOf, readMetricsPage } from "../../support/metrics-page.js";
import {
  MiB,
  refusal,
  startEngine,
  type TestEngine,
} from "../../support/engine.js";

let engines: TestEngine[];
let exposition: ReturnType<typeof createMetrics>["exposition"];
beforeEach(() => {
  engines = [];
});
afterEach(async () => {
  for (const engine of engines.reverse()) await engine.close();
});

async function start(
  options: Parameters<typeof startEngine>[0] = {},
): Promise<TestEngine> {
  const created = createMetrics();
  ({ exposition } = created);
  const engine = await startEngine({ metrics: created.metrics, ...options });
  engines.push(engine);
  return engine;
}

/** What is not zero; of histograms, how often. */
async function counted(): Promise<Record<string, number>> {
  const families = readMetricsPage((await exposition(undefined)).body);
  const samples = families
    .flatMap((family) => family.samples)
    .filter(
      ({ name, value }) =>
        name.startsWith("function_wasm_module_") &&
        !/_(bucket|sum)$/.test(name) &&
        value !== 0,
    );
  return Object.fromEntries(
    samples.map(({ name, labels, value }) => [
      `${name.replace("function_wasm_module_", "")}${keyOf(labels)}`,
      value,
    ]),
  );
}

describe("integration/engine/metrics", () => {
  it("counts a module that is compiled, loaded and run, and then only run", async () => {
    const engine = await start();

    const lease = await engine.load("v1/hello");
    await engine.run(lease);
    lease.release();
    await engine.call("v1/hello");

    expect(await counted()).toEqual({
      'run_duration_seconds_count{outcome="ok"}': 2,
      "queue_duration_seconds_count{}": 2,
      "compile_duration_seconds_count{}": 1,
      'loads_total{abi="1"}': 1,
      'cache_events_total{cache="compiled",event="miss"}': 1,
      'cache_events_total{cache="compiled",event="hit"}': 1,
      'cache_events_total{cache="compiled-disk",event="miss"}': 1,
    });
  });

  it("counts what another process compiled, and what it cannot use", async () => {
    const artifactKey = new Uint8Array(32);
    const first = await start({ artifactKey });
    await first.call("v2/hello");
    await first.call("v1/hello");
    const { cacheDir, engine } = first;
    const [smallest = ""] = readdirSync(engine.compiledDir);
    truncateSync(join(engine.compiledDir, smallest), 10);

    const second = await start({ artifactKey, cacheDir });
    await second.call("v2/hello");
    await second.call("v1/hello");

    expect(await counted()).toMatchObject({
      "compile_duration_seconds_count{}": 1,
      'loads_total{abi="1"}': 1,
      'loads_total{abi="2"}': 1,
      'cache_events_total{cache="compiled",event="miss"}': 2,
      'cache_events_total{cache="compiled-disk",event="hit"}': 1,
      'cache_events_total{cache="compiled-disk",event="stale"}': 1,
    });
  });

  it("counts how runs end, and the memory they are refused", async () => {
    const engine = await start();

    await refusal(engine.call("hostile/loop-run", { timeoutMs: 50 }));
    await refusal(engine.call("hostile/trap-alloc"));
    await engine
      .call("hostile/grow-loop", { memoryBytes: 8 * MiB })
      .catch(() => undefined);

    const all = await counted();
    expect(all).toMatchObject({
      'run_duration_seconds_count{outcome="timeout"}': 1,
      'run_duration_seconds_count{outcome="error"}': expect.any(
        Number,
      ) as number,
    });
    expect(all['memory_denials_total{reason="limit"}']).toBeGreaterThan(0);
    expect(all).not.toHaveProperty("runs_in_flight{}");
  });

  it("counts runs that hold a slot, and those that get no memory in time", async () => {
    const engine = await start({ maxTotalRunMemoryBytes: 64 * MiB });
    const lease = await engine.load("hostile/loop-run");
    const large = { timeoutMs: 400, memoryBytes: 64 * MiB };

    const running = refusal(engine.run(lease, large));
    const waiting = refusal(engine.run(lease, { ...large, deadlineMs: 100 }));

    expect((await waiting).code).toBe("slot-wait");
    expect(await counted()).toMatchObject({
      "runs_in_flight{}": 1,
      "queue_duration_seconds_count{}": 2,
      'memory_denials_total{reason="pool"}': 1,
    });
    await running;
    lease.release();
  });
});
