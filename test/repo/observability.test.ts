import { readFileSync } from "node:fs";

import { beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";

import { createMetrics } from "../../src/function/metrics.js";
import {
  rawServiceDefinition,
  serviceNames,
} from "../../src/function/service.js";
import { readMetricsPage, type MetricFamily } from "../support/metrics-page.js";
import { readPromql, type Selector } from "../support/promql.js";

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly description: string;
  readonly type: "row" | "timeseries";
  readonly gridPos: Readonly<Record<"h" | "w" | "x" | "y", number>>;
  readonly datasource: { readonly uid: string };
  readonly fieldConfig: { readonly defaults: { readonly unit: string } };
  readonly targets: readonly {
    readonly refId: string;
    readonly expr: string;
    readonly legendFormat: string;
  }[];
}

interface Dashboard {
  readonly uid: string;
  readonly title: string;
  readonly schemaVersion: number;
  readonly templating: { readonly list: readonly { readonly name: string }[] };
  readonly panels: readonly Panel[];
}

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

interface Rules {
  readonly groups: readonly {
    readonly name: string;
    readonly rules: readonly Alert[];
  }[];
}

const dashboard = JSON.parse(
  textOf("docs/observability/grafana-dashboard.json"),
) as Dashboard;
const rules = parse(textOf("docs/observability/prometheus-alerts.yaml"), {
  uniqueKeys: true,
}) as Rules;
const metricsDoc = textOf("docs/metrics.md");

const charts = dashboard.panels.filter(({ type }) => type !== "row");
const alerts = rules.groups.flatMap((group) => group.rules);

/** Labels that a scraper adds. */
const targetLabels = ["job", "instance", "pod", "namespace"];

/** What a server has before its first request. */
let families: readonly MetricFamily[];
beforeAll(async () => {
  const { grpc, exposition } = createMetrics();
  for (const name of serviceNames) grpc.addService(rawServiceDefinition(name));
  families = readMetricsPage((await exposition(undefined)).body);
});

/** What is wrong with a query, in words. */
function faultsOf(expression: string): readonly string[] {
  const { selectors, labels } = readPromql(expression);
  if (selectors.length === 0) return ["it asks for nothing"];
  const found = selectors.map((selector) => ({
    selector,
    ...samplesOf(selector),
  }));
  const known = new Set([
    ...targetLabels,
    ...found.flatMap(({ samples }) =>
      samples.flatMap((sample) => Object.keys(sample.labels)),
    ),
  ]);
  return [
    ...found.flatMap(({ selector, type, samples }) => [
      ...(samples.length === 0 ? [`no series is ${selector.name}`] : []),
      ...(selector.isRate === (type === "gauge")
        ? [`${selector.name} is a ${type ?? "stranger"}`]
        : []),
    ]),
    ...labels
      .filter((label) => !known.has(label))
      .map((label) => `no series has ${label}`),
  ];
}

function samplesOf({ name, matchers }: Selector) {
  const family = families.find(({ samples }) =>
    samples.some((sample) => sample.name === name),
  );
  const samples = (family?.samples ?? []).filter(
    (sample) =>
      sample.name === name &&
      matchers.every(
        ({ label, matches }) =>
          targetLabels.includes(label) || matches(sample.labels[label] ?? ""),
      ),
  );
  return { type: family?.type, samples };
}

describe("docs/observability queries", () => {
  it.each([
    { query: "up", want: ["no series is up", "up is a stranger"] },
    {
      query: "rate(function_wasm_module_runs_total[5m])",
      want: ["no series is function_wasm_module_runs_total"],
    },
    {
      query: 'rate(function_wasm_module_requests_total{outcome="failed"}[5m])',
      want: ["no series is function_wasm_module_requests_total"],
    },
    {
      query: "rate(function_wasm_module_run_duration_seconds[5m])",
      want: ["no series is function_wasm_module_run_duration_seconds"],
    },
    {
      query: "sum(function_wasm_module_requests_total)",
      want: ["function_wasm_module_requests_total is a counter"],
    },
    {
      query: "rate(function_wasm_module_runs_in_flight[5m])",
      want: ["function_wasm_module_runs_in_flight is a gauge"],
    },
    {
      query: "sum by (digest) (function_wasm_module_runs_in_flight)",
      want: ["no series has digest"],
    },
    {
      query: "function_wasm_module_runs_in_flight > 1 and on (job) other",
      want: ["no series is other", "other is a stranger"],
    },
    { query: "vector(1)", want: ["it asks for nothing"] },
  ])("would be found out: $query", ({ query, want }) => {
    expect(faultsOf(query)).toEqual(want);
  });
});

describe("docs/observability/grafana-dashboard.json", () => {
  it("is a dashboard with a data source and a job to choose", () => {
    expect(dashboard).toMatchObject({
      uid: "function-wasm",
      title: "function-wasm",
      schemaVersion: expect.any(Number) as number,
    });
    expect(dashboard.templating.list.map(({ name }) => name)).toEqual([
      "datasource",
      "job",
    ]);
    const ids = dashboard.panels.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it.each(charts)("says what $title is, in a unit", (panel) => {
    expect(panel.title).not.toBe("");
    expect(panel.description).toMatch(/^[A-Z].*\.$/);
    expect(panel.datasource.uid).toBe("${datasource}");
    expect(["bytes", "ops", "percentunit", "reqps", "s", "short"]).toContain(
      panel.fieldConfig.defaults.unit,
    );
    expect(panel.gridPos.x + panel.gridPos.w).toBeLessThanOrEqual(24);
  });

  it.each(charts)("asks for what there is: $title", ({ targets }) => {
    expect(targets.length).toBeGreaterThan(0);
    const refIds = targets.map(({ refId }) => refId);
    expect(new Set(refIds).size).toBe(refIds.length);
    for (const { expr, legendFormat } of targets) {
      expect(faultsOf(expr)).toEqual([]);
      const { selectors, labels } = readPromql(expr);
      for (const { matchers } of selectors)
        expect(matchers.map(({ label }) => label)).toContain("job");
      // What an aggregation leaves, or what the scraper adds.
      const legend = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)];
      const named = legend.map(([, label]) => label);
      const left = /\bsum\b/.test(expr) ? labels : targetLabels;
      expect(left).toEqual(expect.arrayContaining(named));
      expect(legendFormat).not.toBe("");
    }
  });

  it("shows every metric of ours", () => {
    const shown = charts
      .flatMap(({ targets }) => targets)
      .flatMap(({ expr }) => readPromql(expr).selectors)
      .map(({ name }) => name);

    const missing = families
      .filter(({ name }) => name.startsWith("function_wasm_"))
      .filter(
        ({ samples }) => !samples.some(({ name }) => shown.includes(name)),
      )
      .map(({ name }) => name);
    expect(missing).toEqual([]);
  });
});

describe("docs/observability/prometheus-alerts.yaml", () => {
  it("has alerts, each of its own name", () => {
    const names = alerts.map(({ alert }) => alert);

    expect(names.length).toBeGreaterThan(0);
    expect(new Set(names).size).toBe(names.length);
  });

  it.each(alerts)("asks for what there is: $alert", ({ expr }) => {
    expect(faultsOf(expr)).toEqual([]);
  });

  it.each(alerts)("says what $alert is and what to do", (rule) => {
    const { alert, labels, annotations } = rule;
    expect(Object.keys(rule).sort()).toEqual(
      ["alert", "annotations", "expr", "for", "labels"].sort(),
    );
    expect(rule.for).toMatch(/^\d+[mh]$/);
    expect(Object.keys(labels)).toEqual(["severity"]);
    expect(["critical", "warning", "info"]).toContain(labels["severity"]);
    expect(annotations).toEqual({
      summary: expect.stringMatching(/\S/) as string,
      description: expect.stringMatching(/\.$/) as string,
      runbook: `docs/metrics.md#${alert.toLowerCase()}`,
    });
    expect(metricsDoc).toContain(`\n### ${alert}\n`);
  });

  it("uses only labels that its query leaves", () => {
    for (const { alert, expr, annotations } of alerts) {
      const left = /\bsum\b/.test(expr)
        ? readPromql(expr).labels
        : targetLabels;
      const used = Object.values(annotations)
        .flatMap((text) => [...text.matchAll(/\$labels\.(\w+)/g)])
        .map(([, label]) => label);
      expect({ alert, left }).toEqual({
        alert,
        left: expect.arrayContaining(used) as string[],
      });
    }
  });
});

describe("docs/metrics.md", () => {
  it("has every metric with its type and labels, and no other", () => {
    const rows = metricsDoc
      .split("\n")
      .filter((line) => line.startsWith("| `"))
      .map((line) => {
        const [, metric = "", type = "", labels = ""] = line
          .split("|")
          .map((cell) => cell.trim());
        return {
          name: metric.replaceAll("`", ""),
          type,
          labels: [...labels.matchAll(/`(\w+)`(?: = ([\w, -]+))?/g)].map(
            ([, label, values]) => [label, values?.split(", ").sort()],
          ),
        };
      });

    expect(rows.sort(byName)).toEqual(families.map(documented).sort(byName));
  });

  it("has something to do about every alert, and about no other", () => {
    const [, section = ""] = metricsDoc.split("\n## Alerts\n");

    const headings = [...section.matchAll(/^### (\w+)\n\n\S/gm)];
    expect(headings.map(([, alert]) => alert)).toEqual(
      alerts.map(({ alert }) => alert),
    );
  });
});

/** A metric as a row of the document; gRPC's methods and codes are not told one by one. */
function documented({ name, type, samples }: MetricFamily) {
  const labels = new Set(
    samples.flatMap((sample) =>
      Object.keys(sample.labels).filter((label) => label !== "le"),
    ),
  );
  const valuesOf = (label: string) => [
    ...new Set(samples.map((sample) => sample.labels[label])),
  ];
  return {
    name,
    type,
    labels: [...labels].map((label) => [
      label,
      label.startsWith("grpc_") ? undefined : valuesOf(label).sort(),
    ]),
  };
}

function byName(one: { name: string }, other: { name: string }): number {
  return one.name < other.name ? -1 : 1;
}

function textOf(path: string): string {
  return readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
}
