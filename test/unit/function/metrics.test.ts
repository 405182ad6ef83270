import { register } from "prom-client";
import { describe, expect, it } from "vitest";

import { createMetrics } from "../../../src/function/metrics.js";

const openMetricsAtZero = `# HELP function_wasm_module_requests Requests answered, by how they ended.
# TYPE function_wasm_module_requests counter
function_wasm_module_requests_total{outcome="ok"} 0
function_wasm_module_requests_total{outcome="refused"} 0
function_wasm_module_requests_total{outcome="error"} 0
function_wasm_module_requests_total{outcome="skipped"} 0
# HELP function_wasm_module_fetch_duration_seconds How long it took to fetch a module, by kind of source.
# TYPE function_wasm_module_fetch_duration_seconds histogram
function_wasm_module_fetch_duration_seconds_bucket{le="0.05",source="oci"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="0.1",source="oci"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="0.25",source="oci"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="0.5",source="oci"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="1",source="oci"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="2.5",source="oci"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="5",source="oci"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="10",source="oci"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="30",source="oci"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="60",source="oci"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="120",source="oci"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="300",source="oci"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="+Inf",source="oci"} 0
function_wasm_module_fetch_duration_seconds_sum{source="oci"} 0
function_wasm_module_fetch_duration_seconds_count{source="oci"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="0.05",source="http"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="0.1",source="http"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="0.25",source="http"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="0.5",source="http"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="1",source="http"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="2.5",source="http"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="5",source="http"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="10",source="http"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="30",source="http"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="60",source="http"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="120",source="http"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="300",source="http"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="+Inf",source="http"} 0
function_wasm_module_fetch_duration_seconds_sum{source="http"} 0
function_wasm_module_fetch_duration_seconds_count{source="http"} 0
# HELP function_wasm_module_tag_resolutions Tags resolved, by what said where they lead.
# TYPE function_wasm_module_tag_resolutions counter
function_wasm_module_tag_resolutions_total{source="registry"} 0
function_wasm_module_tag_resolutions_total{source="pointer"} 0
function_wasm_module_tag_resolutions_total{source="cache"} 0
# HELP function_wasm_module_cache_events Looks into the caches, by how they ended.
# TYPE function_wasm_module_cache_events counter
function_wasm_module_cache_events_total{cache="blob",event="hit"} 0
function_wasm_module_cache_events_total{cache="blob",event="miss"} 0
function_wasm_module_cache_events_total{cache="blob",event="stale"} 0
# HELP function_wasm_module_cache_bytes Bytes in the caches on disk, as of the last sweep.
# TYPE function_wasm_module_cache_bytes gauge
function_wasm_module_cache_bytes{cache="blob"} 0
function_wasm_module_cache_bytes{cache="compiled-disk"} 0
# HELP function_wasm_policy_reloads Times the operator policy was read again, by result.
# TYPE function_wasm_policy_reloads counter
function_wasm_policy_reloads_total{result="ok"} 0
function_wasm_policy_reloads_total{result="error"} 0
# EOF
`;

const textAtZero = `# HELP function_wasm_module_requests_total Requests answered, by how they ended.
# TYPE function_wasm_module_requests_total counter
function_wasm_module_requests_total{outcome="ok"} 0
function_wasm_module_requests_total{outcome="refused"} 0
function_wasm_module_requests_total{outcome="error"} 0
function_wasm_module_requests_total{outcome="skipped"} 0

# HELP function_wasm_module_fetch_duration_seconds How long it took to fetch a module, by kind of source.
# TYPE function_wasm_module_fetch_duration_seconds histogram
function_wasm_module_fetch_duration_seconds_bucket{le="0.05",source="oci"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="0.1",source="oci"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="0.25",source="oci"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="0.5",source="oci"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="1",source="oci"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="2.5",source="oci"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="5",source="oci"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="10",source="oci"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="30",source="oci"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="60",source="oci"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="120",source="oci"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="300",source="oci"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="+Inf",source="oci"} 0
function_wasm_module_fetch_duration_seconds_sum{source="oci"} 0
function_wasm_module_fetch_duration_seconds_count{source="oci"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="0.05",source="http"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="0.1",source="http"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="0.25",source="http"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="0.5",source="http"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="1",source="http"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="2.5",source="http"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="5",source="http"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="10",source="http"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="30",source="http"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="60",source="http"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="120",source="http"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="300",source="http"} 0
function_wasm_module_fetch_duration_seconds_bucket{le="+Inf",source="http"} 0
function_wasm_module_fetch_duration_seconds_sum{source="http"} 0
function_wasm_module_fetch_duration_seconds_count{source="http"} 0

# HELP function_wasm_module_tag_resolutions_total Tags resolved, by what said where they lead.
# TYPE function_wasm_module_tag_resolutions_total counter
function_wasm_module_tag_resolutions_total{source="registry"} 0
function_wasm_module_tag_resolutions_total{source="pointer"} 0
function_wasm_module_tag_resolutions_total{source="cache"} 0

# HELP function_wasm_module_cache_events_total Looks into the caches, by how they ended.
# TYPE function_wasm_module_cache_events_total counter
function_wasm_module_cache_events_total{cache="blob",event="hit"} 0
function_wasm_module_cache_events_total{cache="blob",event="miss"} 0
function_wasm_module_cache_events_total{cache="blob",event="stale"} 0

# HELP function_wasm_module_cache_bytes Bytes in the caches on disk, as of the last sweep.
# TYPE function_wasm_module_cache_bytes gauge
function_wasm_module_cache_bytes{cache="blob"} 0
function_wasm_module_cache_bytes{cache="compiled-disk"} 0

# HELP function_wasm_policy_reloads_total Times the operator policy was read again, by result.
# TYPE function_wasm_policy_reloads_total counter
function_wasm_policy_reloads_total{result="ok"} 0
function_wasm_policy_reloads_total{result="error"} 0
`;

describe("function/metrics", () => {
  it("has every series from the start, as OpenMetrics", async () => {
    const { exposition } = createMetrics();

    expect(await exposition(undefined)).toEqual({
      contentType: "application/openmetrics-text; version=1.0.0; charset=utf-8",
      body: openMetricsAtZero,
    });
  });

  it("has every series from the start, as classic text", async () => {
    const { exposition } = createMetrics();

    expect(await exposition("text/plain")).toEqual({
      contentType: "text/plain; version=0.0.4; charset=utf-8",
      body: textAtZero,
    });
  });

  it("counts each outcome and result on its own", async () => {
    const { metrics, exposition } = createMetrics();

    for (const outcome of [
      ...["ok", "ok", "ok", "ok"],
      ...["refused", "refused", "refused"],
      ...["error", "error"],
      "skipped",
    ] as const) {
      metrics.requestEnded(outcome);
    }
    metrics.policyReloaded("ok");
    metrics.policyReloaded("error");
    metrics.policyReloaded("error");

    const counted = series((await exposition(undefined)).body);
    expect(counted.filter((line) => !line.endsWith(" 0"))).toEqual([
      'function_wasm_module_requests_total{outcome="ok"} 4',
      'function_wasm_module_requests_total{outcome="refused"} 3',
      'function_wasm_module_requests_total{outcome="error"} 2',
      'function_wasm_module_requests_total{outcome="skipped"} 1',
      'function_wasm_policy_reloads_total{result="ok"} 1',
      'function_wasm_policy_reloads_total{result="error"} 2',
    ]);
  });

  it("tells what the loader did", async () => {
    const { metrics, exposition } = createMetrics();

    metrics.moduleFetched("http", 0.2);
    metrics.tagResolved("pointer");
    metrics.blobLookedUp("stale");
    metrics.cacheSwept("blob", 10);
    metrics.cacheSwept("blob", 7);

    const counted = series((await exposition(undefined)).body);
    expect(counted.filter((line) => !line.endsWith(" 0"))).toEqual([
      ...["0.25", "0.5", "1", "2.5", "5", "10"].map(fetchesWithin),
      ...["30", "60", "120", "300", "+Inf"].map(fetchesWithin),
      'function_wasm_module_fetch_duration_seconds_sum{source="http"} 0.2',
      'function_wasm_module_fetch_duration_seconds_count{source="http"} 1',
      'function_wasm_module_tag_resolutions_total{source="pointer"} 1',
      'function_wasm_module_cache_events_total{cache="blob",event="stale"} 1',
      'function_wasm_module_cache_bytes{cache="blob"} 7',
    ]);
  });

  it("has the same series in both formats, however often and mixed they are read", async () => {
    const { metrics, exposition } = createMetrics();
    metrics.requestEnded("refused");
    metrics.policyReloaded("ok");

    const accepts = [undefined, "text/plain", undefined, "text/plain"];
    const pages = await Promise.all(accepts.map(exposition));

    const [first, ...others] = pages.map((page) => series(page.body));
    expect(first).toContain(
      'function_wasm_module_requests_total{outcome="refused"} 1',
    );
    for (const other of others) expect(other).toEqual(first);
    expect(pages.map((page) => page.contentType.split(";")[0])).toEqual([
      "application/openmetrics-text",
      "text/plain",
      "application/openmetrics-text",
      "text/plain",
    ]);
  });

  it("shares nothing: neither with another one nor with the global registry", async () => {
    const one = createMetrics();
    const other = createMetrics();

    one.metrics.requestEnded("ok");

    expect((await other.exposition(undefined)).body).toBe(openMetricsAtZero);
    expect(register.getMetricsAsArray()).toEqual([]);
  });
});

function series(body: string): readonly string[] {
  return body.split("\n").filter((line) => /^[^#]/.test(line));
}

function fetchesWithin(seconds: string): string {
  return `function_wasm_module_fetch_duration_seconds_bucket{le="${seconds}",source="http"} 1`;
}
