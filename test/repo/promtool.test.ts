/** What Prometheus' own tool says of the alert rules, the dashboard's queries and the metrics page. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parse } from "yaml";

import { createMetrics } from "../../src/function/metrics.js";
import { missingTool } from "../support/tools.js";

const rulesFile = fileURLToPath(
  new URL("../../docs/observability/prometheus-alerts.yaml", import.meta.url),
);
const dashboardFile = new URL(
  "../../docs/observability/grafana-dashboard.json",
  import.meta.url,
);

interface Rules {
  readonly groups: readonly {
    readonly rules: readonly { readonly alert: string }[];
  }[];
}

interface Dashboard {
  readonly panels: readonly {
    readonly targets?: readonly { readonly expr: string }[];
  }[];
}

/** Samples a minute apart, in promtool's notation: `first+step x times`. */
type Series = Readonly<Record<string, string>>;

interface Firing {
  readonly alert: string;
  readonly series: Series;
  /** It must not have come before. */
  readonly at: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly summary: string;
  readonly description: string;
}

const RUN_SECONDS = "function_wasm_module_run_duration_seconds_count";
const QUEUE_SECONDS = "function_wasm_module_queue_duration_seconds_bucket";
const MINUTES = 120;

/** A server that has runs, none of which fails. */
const healthy: Series = {
  'function_wasm_module_runs_in_flight{job="fn",instance="a"}': `1x${MINUTES}`,
  'function_wasm_module_requests_total{job="fn",outcome="ok"}': `0+600x${MINUTES}`,
  'function_wasm_module_requests_total{job="fn",outcome="error"}': `0+6x${MINUTES}`,
  'function_wasm_module_requests_total{job="fn",outcome="refused"}': `0+60x${MINUTES}`,
  [`${RUN_SECONDS}{job="fn",outcome="ok"}`]: `0+600x${MINUTES}`,
  [`${RUN_SECONDS}{job="fn",outcome="timeout"}`]: `0+6x${MINUTES}`,
  [`${QUEUE_SECONDS}{job="fn",le="1"}`]: `0+600x${MINUTES}`,
  [`${QUEUE_SECONDS}{job="fn",le="5"}`]: `0+600x${MINUTES}`,
  [`${QUEUE_SECONDS}{job="fn",le="+Inf"}`]: `0+600x${MINUTES}`,
  'function_wasm_module_memory_denials_total{job="fn",reason="limit"}': `0+5x${MINUTES}`,
  'function_wasm_module_memory_denials_total{job="fn",reason="pool"}': `3x${MINUTES}`,
  'function_wasm_module_tag_resolutions_total{job="fn",source="registry"}': `0+5x${MINUTES}`,
  'function_wasm_module_tag_resolutions_total{job="fn",source="pointer"}': `3x${MINUTES}`,
  'function_wasm_module_cache_events_total{job="fn",cache="blob",event="hit"}': `0+5x${MINUTES}`,
  'function_wasm_module_cache_events_total{job="fn",cache="blob",event="stale"}': `3x${MINUTES}`,
  'function_wasm_policy_last_reload_successful{job="fn",instance="a"}': `1x${MINUTES}`,
  'function_wasm_certificate_last_reload_successful{job="fn",instance="a"}': `1x${MINUTES}`,
  'function_wasm_clients_refused_total{job="fn",reason="no-certificate"}': `0+5x${MINUTES}`,
  'function_wasm_clients_refused_total{job="fn",reason="untrusted"}': `3x${MINUTES}`,
  'nodejs_eventloop_lag_p99_seconds{job="fn",instance="a"}': `0.05x${MINUTES}`,
  'process_open_fds{job="fn",instance="a"}': `500x${MINUTES}`,
  'process_max_fds{job="fn",instance="a"}': `1000x${MINUTES}`,
};

const firings: readonly Firing[] = [
  {
    alert: "FunctionWasmAbsent",
    series: {},
    at: "10m",
    labels: { severity: "critical" },
    summary: "No metrics of function-wasm",
    description:
      "Prometheus has scraped no function-wasm for ten minutes. Composite resources whose Compositions use it are not reconciled.",
  },
  {
    alert: "FunctionWasmRequestsFail",
    series: {
      'function_wasm_module_requests_total{job="fn",outcome="ok"}': `0+90x${MINUTES}`,
      'function_wasm_module_requests_total{job="fn",outcome="error"}': `0+10x${MINUTES}`,
    },
    at: "11m",
    labels: { severity: "warning", job: "fn" },
    summary: "Requests of fn fail",
    description:
      "10% of the requests got no answer from their module: it could not be had, or its run failed.",
  },
  {
    alert: "FunctionWasmRequestsRefused",
    series: {
      'function_wasm_module_requests_total{job="fn",outcome="ok"}': `0+75x${MINUTES}`,
      'function_wasm_module_requests_total{job="fn",outcome="refused"}': `0+25x${MINUTES}`,
    },
    at: "31m",
    labels: { severity: "info", job: "fn" },
    summary: "fn refuses requests",
    description:
      "25% of the requests are refused: by their Input, a policy or a limit.",
  },
  {
    alert: "FunctionWasmRunsTimeOut",
    series: {
      [`${RUN_SECONDS}{job="fn",outcome="ok"}`]: `0+90x${MINUTES}`,
      [`${RUN_SECONDS}{job="fn",outcome="timeout"}`]: `0+10x${MINUTES}`,
    },
    at: "11m",
    labels: { severity: "warning", job: "fn" },
    summary: "Runs of fn are cut",
    description: "10% of the runs did not end in time.",
  },
  {
    alert: "FunctionWasmRunsWait",
    series: {
      [`${QUEUE_SECONDS}{job="fn",le="1"}`]: `0+90x${MINUTES}`,
      [`${QUEUE_SECONDS}{job="fn",le="5"}`]: `0+99x${MINUTES}`,
      [`${QUEUE_SECONDS}{job="fn",le="+Inf"}`]: `0+100x${MINUTES}`,
    },
    at: "11m",
    labels: { severity: "warning", job: "fn" },
    summary: "Runs of fn wait for a slot",
    description: "One run in a hundred waits longer than 5s before it starts.",
  },
  {
    alert: "FunctionWasmRunMemoryExhausted",
    series: {
      'function_wasm_module_memory_denials_total{job="fn",reason="pool"}': `0+2x${MINUTES}`,
    },
    at: "16m",
    labels: { severity: "warning", job: "fn" },
    summary: "Runs of fn get no memory",
    description:
      "30 runs in 15 minutes waited for --max-total-run-memory until their deadlines.",
  },
  {
    alert: "FunctionWasmTagsUnanswered",
    series: {
      'function_wasm_module_tag_resolutions_total{job="fn",source="pointer"}': `0+1x${MINUTES}`,
    },
    at: "31m",
    labels: { severity: "warning", job: "fn" },
    summary: "fn asks for tags in vain",
    description:
      "A registry has not answered for half an hour. Its tags lead to the digests they last had.",
  },
  {
    alert: "FunctionWasmCacheTampered",
    series: {
      'function_wasm_module_cache_events_total{job="fn",cache="blob",event="stale"}': `0x60 1x${MINUTES}`,
    },
    at: "62m",
    labels: { severity: "warning", job: "fn" },
    summary: "The cache of fn was damaged",
    description:
      "Files that were not what their names say: 1 in an hour. None of them was used.",
  },
  {
    alert: "FunctionWasmPolicyNotReloaded",
    series: {
      'function_wasm_policy_last_reload_successful{job="fn",instance="a"}': `1x${MINUTES}`,
      'function_wasm_policy_last_reload_successful{job="fn",instance="b"}': `0x${MINUTES}`,
    },
    at: "5m",
    labels: { severity: "critical", job: "fn" },
    summary: "fn cannot read its operator policy",
    description:
      "The operator policy was changed to something that cannot be used. The last good one is still in force.",
  },
  {
    alert: "FunctionWasmCertificatesNotReloaded",
    series: {
      'function_wasm_certificate_last_reload_successful{job="fn",instance="a"}': `0x${MINUTES}`,
    },
    at: "5m",
    labels: { severity: "critical", job: "fn" },
    summary: "fn cannot read its certificates",
    description:
      "The certificates were changed to a set that cannot be used. The last good one is still in use, until it expires.",
  },
  {
    alert: "FunctionWasmClientsRefused",
    series: {
      'function_wasm_clients_refused_total{job="fn",reason="expired"}': `0+3x${MINUTES}`,
    },
    at: "11m",
    labels: { severity: "warning", job: "fn", reason: "expired" },
    summary: "fn refuses clients",
    description:
      "30 connections in ten minutes failed over certificates (expired). Where they are Crossplane's, no call gets here.",
  },
  {
    alert: "FunctionWasmEventLoopBlocked",
    series: {
      'function_wasm_module_runs_in_flight{job="fn",instance="a"}': `1x${MINUTES}`,
      'nodejs_eventloop_lag_p99_seconds{job="fn",instance="a"}': `0.5x${MINUTES}`,
      // Another program on Node.
      'nodejs_eventloop_lag_p99_seconds{job="other",instance="a"}': `0.5x${MINUTES}`,
    },
    at: "10m",
    labels: { severity: "warning", job: "fn", instance: "a" },
    summary: "a is slow to read and answer",
    description:
      "The event loop is 500ms late, or more, once in a hundred times.",
  },
  {
    alert: "FunctionWasmFileDescriptorsExhausted",
    series: {
      'function_wasm_module_runs_in_flight{job="fn",instance="a"}': `1x${MINUTES}`,
      'process_open_fds{job="fn",instance="a"}': `900x${MINUTES}`,
      'process_max_fds{job="fn",instance="a"}': `1000x${MINUTES}`,
      'process_open_fds{job="other",instance="a"}': `900x${MINUTES}`,
      'process_max_fds{job="other",instance="a"}': `1000x${MINUTES}`,
    },
    at: "10m",
    labels: { severity: "warning", job: "fn", instance: "a" },
    summary: "a runs out of file descriptors",
    description: "90% of the file descriptors it may have are open.",
  },
];

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "promtool-"));
});
afterEach(() => {
  rmSync(dir, { recursive: true, force: true });
});

describe.skipIf(missingTool("promtool"))("promtool", () => {
  it("finds nothing wrong with the alert rules", () => {
    expect(promtool("check", "rules", "--lint-fatal", rulesFile)).toMatchObject(
      { code: 0, output: expect.stringContaining("SUCCESS") as string },
    );
  });

  it("finds nothing wrong with the dashboard's queries", () => {
    const { panels } = JSON.parse(
      readFileSync(dashboardFile, "utf8"),
    ) as Dashboard;
    const queries = panels.flatMap(({ targets = [] }) => targets);
    const rules = queries.map(({ expr }, index) => ({
      record: `query_${index}`,
      expr: expr.replaceAll("$__rate_interval", "5m"),
    }));

    expect(queries.length).toBeGreaterThan(0);
    expect(
      promtool("check", "rules", written({ groups: [{ name: "all", rules }] })),
    ).toMatchObject({ code: 0 });
  });

  it("finds nothing wrong with the metrics page", async () => {
    const { exposition } = createMetrics();
    const { body } = await exposition("text/plain");

    expect(promtoolReading(body, "check", "metrics")).toEqual({
      code: 0,
      output: "",
    });
  });

  it("sees no alert where all is well", () => {
    const test = {
      ...inputOf(healthy),
      alert_rule_test: alertNames().flatMap((alertname) =>
        ["20m", "70m", "110m"].map((eval_time) => ({ alertname, eval_time })),
      ),
    };

    expect(testing(test)).toMatchObject({ code: 0 });
  });

  it.each(firings)("sees $alert where it should", (firing) => {
    const { alert, series, at, labels, summary, description } = firing;
    const runbook = `docs/metrics.md#${alert.toLowerCase()}`;
    const test = {
      ...inputOf(series),
      alert_rule_test: [
        { alertname: alert, eval_time: minuteBefore(at) },
        {
          alertname: alert,
          eval_time: at,
          exp_alerts: [
            {
              exp_labels: labels,
              exp_annotations: { summary, description, runbook },
            },
          ],
        },
      ],
    };

    expect(testing(test)).toMatchObject({ code: 0 });
  });

  it("has seen every alert", () => {
    expect(firings.map(({ alert }) => alert)).toEqual(alertNames());
  });
});

function alertNames(): readonly string[] {
  const { groups } = parse(readFileSync(rulesFile, "utf8")) as Rules;
  return groups.flatMap(({ rules }) => rules).map(({ alert }) => alert);
}

function inputOf(series: Series) {
  return {
    interval: "1m",
    input_series: Object.entries(series).map(([name, values]) => ({
      series: name,
      values,
    })),
  };
}

function minuteBefore(at: string): string {
  return `${Number.parseInt(at, 10) - 1}m`;
}

function testing(test: unknown) {
  return promtool(
    ...["test", "rules"],
    written({
      rule_files: [rulesFile],
      evaluation_interval: "1m",
      tests: [test],
    }),
  );
}

/** The path of a file with it: JSON is YAML. */
function written(value: unknown): string {
  const path = join(dir, "file.yaml");
  writeFileSync(path, JSON.stringify(value));
  return path;
}

function promtool(...args: readonly string[]) {
  return promtoolReading("", ...args);
}

function promtoolReading(input: string, ...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync("promtool", args, {
    input,
    encoding: "utf8",
  });
  return { code: status, output: stdout + stderr };
}
