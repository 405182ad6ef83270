import { open } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";

import { Registry } from "prom-client";
import { describe, expect, it } from "vitest";

import { addProcessMetrics } from "../../../src/function/process-metrics.js";
import { readMetricsPage, sampleOf } from "../../support/metrics-page.js";

const MEGABYTE = 1_000_000;

function setUp() {
  const registry = new Registry();
  addProcessMetrics(registry);
  const page = async () => readMetricsPage(await registry.metrics());
  return async (name: string) => sampleOf(await page(), name) ?? NaN;
}

function work(ms: number): void {
  const endMs = performance.now() + ms;
  while (performance.now() < endMs);
}

describe("function/process-metrics", () => {
  it("tells how much CPU time was used since the start, however often it is asked", async () => {
    const read = setUp();

    const before = await read("process_cpu_seconds_total");
    await read("process_cpu_seconds_total");
    const used = process.cpuUsage();
    while (process.cpuUsage(used).user < 50_000);
    const after = await read("process_cpu_seconds_total");

    const { user, system } = process.cpuUsage();
    expect(after - before).toBeGreaterThan(0.05);
    expect(after).toBeLessThanOrEqual((user + system) / 1e6);
  });

  it("tells when the process started", async () => {
    const startedAt = Date.now() / 1000 - process.uptime();

    const said = await setUp()("process_start_time_seconds");

    expect(Math.abs(said - startedAt)).toBeLessThan(1);
  });

  it("tells its memory", async () => {
    const read = setUp();

    const resident = await read("process_resident_memory_bytes");
    const heap = await read("nodejs_heap_size_used_bytes");

    expect(heap).toBeGreaterThan(MEGABYTE);
    expect(resident).toBeGreaterThan(heap);
  });

  it.runIf(process.platform === "linux")(
    "tells how many files are open, and how many may be",
    async () => {
      const read = setUp();
      const before = await read("process_open_fds");
      const max = await read("process_max_fds");

      const opened = await open("/dev/null");

      expect(await read("process_open_fds")).toBe(before + 1);
      expect(max).toBeGreaterThan(before);
      await opened.close();
    },
  );

  it("tells how late the event loop was since it was last asked", async () => {
    const read = setUp();
    await read("nodejs_eventloop_lag_max_seconds");
    // What is measured begins with the first sign of life.
    await delay(50);

    work(300);
    await delay(50);

    const late = await read("nodejs_eventloop_lag_max_seconds");
    expect(late).toBeGreaterThan(0.2);
    await delay(50);
    expect(await read("nodejs_eventloop_lag_max_seconds")).toBeLessThan(late);
  });

  it("tells quantiles of it in their order", async () => {
    const registry = new Registry();
    addProcessMetrics(registry);
    await delay(50);
    work(300);
    await delay(50);

    const page = readMetricsPage(await registry.metrics());

    const values = ["p50", "p90", "p99", "max"].map(
      (quantile) =>
        sampleOf(page, `nodejs_eventloop_lag_${quantile}_seconds`) ?? NaN,
    );
    expect(values).toEqual([...values].sort((a, b) => a - b));
    expect(values[0]).toBeLessThan(0.2);
    expect(values[2]).toBeGreaterThan(0.2);
  });
});
