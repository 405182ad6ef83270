import type { ServiceDefinition } from "@grpc/grpc-js";
import { register } from "prom-client";
import { describe, expect, it } from "vitest";

import { createMetrics } from "../../../src/function/metrics.js";
import {
  keyOf,
  readMetricsPage,
  sampleOf,
  type MetricFamily,
} from "../../support/metrics-page.js";

interface Listed {
  readonly type: "counter" | "gauge" | "histogram";
  readonly series: readonly Readonly<Record<string, string>>[];
}

/** Every metric, with all the series it will ever have: no label of a module, host or digest. */
const list: Readonly<Record<string, Listed>> = {
  function_wasm_module_requests_total: counter(
    by("outcome", "ok", "refused", "error", "skipped"),
  ),
  function_wasm_module_run_duration_seconds: histogram(
    by("outcome", "ok", "error", "timeout"),
  ),
  function_wasm_module_queue_duration_seconds: histogram([{}]),
  function_wasm_module_runs_in_flight: gauge([{}]),
  function_wasm_module_memory_denials_total: counter(
    by("reason", "limit", "pool"),
  ),
  function_wasm_module_compile_duration_seconds: histogram([{}]),
  function_wasm_module_loads_total: counter(by("abi", "1", "2")),
  function_wasm_module_fetch_duration_seconds: histogram(
    by("source", "oci", "http", "path"),
  ),
  function_wasm_module_tag_resolutions_total: counter(
    by("source", "registry", "pointer", "cache"),
  ),
  function_wasm_module_cache_events_total: counter([
    { cache: "compiled", event: "hit" },
    { cache: "compiled", event: "miss" },
    { cache: "compiled-disk", event: "hit" },
    { cache: "compiled-disk", event: "miss" },
    { cache: "compiled-disk", event: "stale" },
    { cache: "blob", event: "hit" },
    { cache: "blob", event: "miss" },
    { cache: "blob", event: "stale" },
  ]),
  function_wasm_module_cache_bytes: gauge(by("cache", "compiled-disk", "blob")),
  function_wasm_policy_reloads_total: counter(by("result", "ok", "error")),
  function_wasm_policy_last_reload_successful: gauge([{}]),
  function_wasm_certificate_reloads_total: counter(by("result", "ok", "error")),
  function_wasm_certificate_last_reload_successful: gauge([{}]),
  function_wasm_clients_refused_total: counter(
    by(
      "reason",
      ...["no-certificate", "untrusted", "expired", "not-for-clients"],
      ...["distrusts-us", "no-http2", "handshake"],
    ),
  ),
  grpc_server_started_total: counter([]),
  grpc_server_handled_total: counter([]),
  grpc_server_msg_received_total: counter([]),
  grpc_server_msg_sent_total: counter([]),
  process_cpu_seconds_total: counter([{}]),
  process_start_time_seconds: gauge([{}]),
  process_resident_memory_bytes: gauge([{}]),
  process_open_fds: gauge([{}]),
  process_max_fds: gauge([{}]),
  nodejs_heap_size_used_bytes: gauge([{}]),
  nodejs_eventloop_lag_p50_seconds: gauge([{}]),
  nodejs_eventloop_lag_p90_seconds: gauge([{}]),
  nodejs_eventloop_lag_p99_seconds: gauge([{}]),
  nodejs_eventloop_lag_max_seconds: gauge([{}]),
};

/** Those that do not start at zero: no reload has failed yet. */
const reloadGauges = [
  "policy_last_reload_successful",
  "certificate_last_reload_successful",
];

const grpcCodes = [
  ...["OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded"],
  ...["NotFound", "AlreadyExists", "PermissionDenied", "ResourceExhausted"],
  ...["FailedPrecondition", "Aborted", "OutOfRange", "Unimplemented"],
  ...["Internal", "Unavailable", "DataLoss", "Unauthenticated"],
];

const formats = [
  {
    name: "OpenMetrics",
    accept: undefined,
    contentType: "application/openmetrics-text; version=1.0.0; charset=utf-8",
  },
  {
    name: "classic text",
    accept: "text/plain",
    contentType: "text/plain; version=0.0.4; charset=utf-8",
  },
];

describe("function/metrics", () => {
  it.each(formats)(
    "has every series of the list from the start, and no other, as $name",
    async ({ accept, contentType }) => {
      const { exposition } = createMetrics();

      const page = await exposition(accept);

      expect(page.contentType).toBe(contentType);
      expect(listOf(readMetricsPage(page.body))).toEqual(sorted(list));
    },
  );

  it("describes every metric in one sentence", async () => {
    const { exposition } = createMetrics();

    for (const { help } of readMetricsPage((await exposition("")).body))
      expect(help).toMatch(/^[A-Z].*\.$/);
  });

  it("starts at zero, and with nothing that failed", async () => {
    const { exposition } = createMetrics();

    const ours = (await readPage(exposition)).filter(({ name }) =>
      name.startsWith("function_wasm_"),
    );

    const counts = ours.flatMap(({ samples }) =>
      samples.filter(({ value }) => value !== 0),
    );
    expect(counts.map(({ name, value }) => ({ name, value }))).toEqual(
      reloadGauges.map((name) => ({ name: `function_wasm_${name}`, value: 1 })),
    );
  });

  it("counts each thing in its own series", async () => {
    const { metrics, exposition } = createMetrics();

    metrics.requestEnded("ok");
    metrics.requestEnded("ok");
    metrics.requestEnded("refused");
    metrics.runEnded("timeout", 0.25);
    metrics.runEnded("ok", 0.002);
    metrics.runQueued(0);
    metrics.runsInFlight(3);
    metrics.runsInFlight(2);
    metrics.memoryDenied("limit", 5);
    metrics.memoryDenied("pool", 1);
    metrics.compileEnded(20);
    metrics.moduleLoaded(1);
    metrics.moduleLoaded(2);
    metrics.moduleLoaded(2);
    metrics.moduleFetched("http", 0.2);
    metrics.moduleFetched("path", 0.5);
    metrics.tagResolved("pointer");
    metrics.compiledLookedUp("hit");
    metrics.artifactLookedUp("miss");
    metrics.blobLookedUp("stale");
    metrics.cacheSwept("blob", 10);
    metrics.cacheSwept("blob", 7);
    metrics.policyReloaded("error");
    metrics.certificatesReloaded("ok");
    metrics.clientRefused("expired");
    metrics.clientRefused("handshake");
    metrics.clientRefused("handshake");

    expect(countedOf(await readPage(exposition))).toEqual([
      'module_requests_total{outcome="ok"} 2',
      'module_requests_total{outcome="refused"} 1',
      'module_run_duration_seconds_sum{outcome="ok"} 0.002',
      'module_run_duration_seconds_count{outcome="ok"} 1',
      'module_run_duration_seconds_sum{outcome="timeout"} 0.25',
      'module_run_duration_seconds_count{outcome="timeout"} 1',
      "module_queue_duration_seconds_count{} 1",
      "module_runs_in_flight{} 2",
      'module_memory_denials_total{reason="limit"} 5',
      'module_memory_denials_total{reason="pool"} 1',
      "module_compile_duration_seconds_sum{} 20",
      "module_compile_duration_seconds_count{} 1",
      'module_loads_total{abi="1"} 1',
      'module_loads_total{abi="2"} 2',
      'module_fetch_duration_seconds_sum{source="http"} 0.2',
      'module_fetch_duration_seconds_count{source="http"} 1',
      'module_fetch_duration_seconds_sum{source="path"} 0.5',
      'module_fetch_duration_seconds_count{source="path"} 1',
      'module_tag_resolutions_total{source="pointer"} 1',
      'module_cache_events_total{cache="compiled",event="hit"} 1',
      'module_cache_events_total{cache="compiled-disk",event="miss"} 1',
      'module_cache_events_total{cache="blob",event="stale"} 1',
      'module_cache_bytes{cache="blob"} 7',
      'policy_reloads_total{result="error"} 1',
      'certificate_reloads_total{result="ok"} 1',
      "certificate_last_reload_successful{} 1",
      'clients_refused_total{reason="expired"} 1',
      'clients_refused_total{reason="handshake"} 2',
    ]);
  });

  it("says whether the last reload succeeded", async () => {
    const { metrics, exposition } = createMetrics();
    const successes = async () =>
      countedOf(await readPage(exposition)).filter((line) =>
        line.includes("last_reload"),
      );

    metrics.policyReloaded("error");
    metrics.certificatesReloaded("error");
    expect(await successes()).toEqual([]);

    metrics.policyReloaded("ok");
    expect(await successes()).toEqual(["policy_last_reload_successful{} 1"]);

    metrics.certificatesReloaded("ok");
    expect(await successes()).toEqual(
      reloadGauges.map((name) => `${name}{} 1`),
    );
  });

  it.each([
    { name: "function_wasm_module_run_duration_seconds", from: 0.0005, to: 60 },
    {
      name: "function_wasm_module_queue_duration_seconds",
      from: 0.0005,
      to: 60,
    },
    {
      name: "function_wasm_module_compile_duration_seconds",
      from: 0.05,
      to: 600,
    },
    {
      name: "function_wasm_module_fetch_duration_seconds",
      from: 0.05,
      to: 300,
    },
  ])(
    "has buckets of $name from $from s to $to s",
    async ({ name, from, to }) => {
      const { exposition } = createMetrics();

      const families = await readPage(exposition);

      const bounds = (
        families.find((family) => family.name === name)?.samples ?? []
      )
        .map(({ labels }) => Number(labels["le"]))
        .filter(Number.isFinite);
      expect([Math.min(...bounds), Math.max(...bounds)]).toEqual([from, to]);
    },
  );

  it("has every method of a service and every code at zero before the first call", async () => {
    const { grpc, exposition } = createMetrics();

    grpc.addService(serviceOf("a.v1.Service", "Unary", false, false));
    grpc.addService(serviceOf("b.Service", "Up", true, false));
    grpc.addService(serviceOf("b.Service", "Down", false, true));
    grpc.addService(serviceOf("b.Service", "Both", true, true));

    const methods = [
      {
        grpc_type: "unary",
        grpc_service: "a.v1.Service",
        grpc_method: "Unary",
      },
      {
        grpc_type: "client_stream",
        grpc_service: "b.Service",
        grpc_method: "Up",
      },
      {
        grpc_type: "server_stream",
        grpc_service: "b.Service",
        grpc_method: "Down",
      },
      {
        grpc_type: "bidi_stream",
        grpc_service: "b.Service",
        grpc_method: "Both",
      },
    ];
    const listed = listOf(await readPage(exposition));
    const handled = methods.flatMap((method) =>
      grpcCodes.map((grpc_code) => ({ ...method, grpc_code })),
    );
    expect(listed).toMatchObject(
      sorted({
        grpc_server_started_total: counter(methods),
        grpc_server_handled_total: counter(handled),
        grpc_server_msg_received_total: counter(methods),
        grpc_server_msg_sent_total: counter(methods),
      }),
    );
  });

  it("says the same in both formats, however often and mixed they are read", async () => {
    const { metrics, exposition } = createMetrics();
    metrics.requestEnded("refused");
    metrics.runEnded("ok", 1);

    const accepts = [undefined, "text/plain", undefined, "text/plain"];
    const pages = await Promise.all(accepts.map(exposition));

    const [first, ...others] = pages.map((page) =>
      readMetricsPage(page.body).filter(
        // What the process itself does goes on between two pages.
        ({ name }) => !/^(process|nodejs)_/.test(name),
      ),
    );
    expect(
      sampleOf(first ?? [], "function_wasm_module_requests_total", {
        outcome: "refused",
      }),
    ).toBe(1);
    for (const other of others) expect(other).toEqual(first);
    expect(pages.map((page) => page.body.endsWith("\n# EOF\n"))).toEqual([
      true,
      false,
      true,
      false,
    ]);
  });

  it("shares nothing: neither with another one nor with the global registry", async () => {
    const one = createMetrics();
    const other = createMetrics();

    one.metrics.requestEnded("ok");

    expect(countedOf(await readPage(other.exposition))).toEqual(
      reloadGauges.map((name) => `${name}{} 1`),
    );
    expect(register.getMetricsAsArray()).toEqual([]);
  });
});

function counter(series: Listed["series"]): Listed {
  return { type: "counter", series };
}

function gauge(series: Listed["series"]): Listed {
  return { type: "gauge", series };
}

function histogram(series: Listed["series"]): Listed {
  return { type: "histogram", series };
}

function by(label: string, ...values: string[]): Listed["series"] {
  return values.map((value) => ({ [label]: value }));
}

function serviceOf(
  service: string,
  name: string,
  requestStream: boolean,
  responseStream: boolean,
): ServiceDefinition {
  const same = (bytes: Buffer) => bytes;
  return {
    [name]: {
      path: `/${service}/${name}`,
      requestStream,
      responseStream,
      requestSerialize: same,
      requestDeserialize: same,
      responseSerialize: same,
      responseDeserialize: same,
    },
  };
}

async function readPage(
  exposition: ReturnType<typeof createMetrics>["exposition"],
): Promise<readonly MetricFamily[]> {
  return readMetricsPage((await exposition(undefined)).body);
}

/** Series by metric; those of a histogram without their buckets. */
function listOf(
  families: readonly MetricFamily[],
): Record<string, { type: string; series: string[] }> {
  return Object.fromEntries(
    families.map(({ name, type, samples }) => [
      name,
      {
        type,
        series: samples
          .filter((sample) => !/_(bucket|sum)$/.test(sample.name))
          .map(({ labels }) => keyOf(labels))
          .sort(),
      },
    ]),
  );
}

function sorted(
  metrics: Readonly<Record<string, Listed>>,
): Record<string, { type: string; series: string[] }> {
  return Object.fromEntries(
    Object.entries(metrics).map(([name, { type, series }]) => [
      name,
      { type, series: series.map(keyOf).sort() },
    ]),
  );
}

/** What of our own is not zero, without buckets, in the order of the page. */
function countedOf(families: readonly MetricFamily[]): readonly string[] {
  return families
    .flatMap(({ samples }) => samples)
    .filter(
      ({ name, value }) =>
        name.startsWith("function_wasm_") &&
        !name.endsWith("_bucket") &&
        value !== 0,
    )
    .map(
      ({ name, labels, value }) =>
        `${name.replace("function_wasm_", "")}${keyOf(labels)} ${value}`,
    );
}
