import { register } from "prom-client";
import { describe, expect, it } from "vitest";

import { createMetrics } from "../../../src/function/metrics.js";

const openMetricsAtZero = `# HELP function_wasm_module_requests Requests answered, by how they ended.
# TYPE function_wasm_module_requests counter
function_wasm_module_requests_total{outcome="ok"} 0
function_wasm_module_requests_total{outcome="refused"} 0
function_wasm_module_requests_total{outcome="error"} 0
function_wasm_module_requests_total{outcome="skipped"} 0
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

    expect(series((await exposition(undefined)).body)).toEqual([
      'function_wasm_module_requests_total{outcome="ok"} 4',
      'function_wasm_module_requests_total{outcome="refused"} 3',
      'function_wasm_module_requests_total{outcome="error"} 2',
      'function_wasm_module_requests_total{outcome="skipped"} 1',
      'function_wasm_policy_reloads_total{result="ok"} 1',
      'function_wasm_policy_reloads_total{result="error"} 2',
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
