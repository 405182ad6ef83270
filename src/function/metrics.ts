import { Registry } from "prom-client";

import type { Metrics } from "../ports.js";
import { addGrpcMetrics, type GrpcMetrics } from "./grpc-metrics.js";
import { metricMakers, seriesOf } from "./metric-makers.js";
import { chooseMetricsFormat } from "./metrics-format.js";
import { openMetricsFrom } from "./open-metrics.js";
import { addProcessMetrics } from "./process-metrics.js";

/** All metrics as they are now, in one format. */
export interface MetricsPage {
  /** With version and charset. */
  readonly contentType: string;
  readonly body: string;
}

/** Writes the page in the format that suits an Accept header. */
export type Exposition = (accept: string | undefined) => Promise<MetricsPage>;

/**
 * Upper bounds in seconds: of runs, from a tiny guest to the longest deadline Crossplane sets; of
 * compiles and fetches, from a small module to what their time budgets allow.
 */
const runBuckets = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5,
  10, 30, 60,
];
const compileBuckets = [
  0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600,
];
const fetchBuckets = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

const results = ["ok", "error"] as const;

/**
 * Counts from zero; `exposition` has every series of ours from the start, and those of a gRPC
 * method once `grpc` knows it.
 */
export function createMetrics(): {
  readonly metrics: Metrics;
  readonly grpc: GrpcMetrics;
  readonly exposition: Exposition;
} {
  const registry = new Registry();
  const metrics = addOwnMetrics(registry);
  const grpc = addGrpcMetrics(registry);
  addProcessMetrics(registry);
  return {
    metrics,
    grpc,
    async exposition(accept) {
      const text = await registry.metrics();
      return chooseMetricsFormat(accept) === "text"
        ? { contentType: Registry.PROMETHEUS_CONTENT_TYPE, body: text }
        : {
            contentType: Registry.OPENMETRICS_CONTENT_TYPE,
            body: openMetricsFrom(text),
          };
    },
  };
}

function addOwnMetrics(registry: Registry): Metrics {
  const make = metricMakers(registry);
  const requests = make.counter({
    name: "function_wasm_module_requests_total",
    help: "Requests answered, by how they ended.",
    labels: ["outcome"],
  });
  const runs = make.histogram(
    {
      name: "function_wasm_module_run_duration_seconds",
      help: "How long runs took in the sandbox, by how they ended.",
      labels: ["outcome"],
    },
    runBuckets,
  );
  const queue = make.histogram(
    {
      name: "function_wasm_module_queue_duration_seconds",
      help: "How long runs waited for their slot, or until they gave up.",
      labels: [],
    },
    runBuckets,
  );
  const inFlight = make.gauge({
    name: "function_wasm_module_runs_in_flight",
    help: "Runs that hold a slot now.",
    labels: [],
  });
  const denials = make.counter({
    name: "function_wasm_module_memory_denials_total",
    help: "Memory that runs were refused, by the limit: their own, or the one of all runs together.",
    labels: ["reason"],
  });
  const compiles = make.histogram(
    {
      name: "function_wasm_module_compile_duration_seconds",
      help: "How long compiles took, those that failed as well.",
      labels: [],
    },
    compileBuckets,
  );
  const loads = make.counter({
    name: "function_wasm_module_loads_total",
    help: "Compiled modules brought into memory, by ABI.",
    labels: ["abi"],
  });
  const fetches = make.histogram(
    {
      name: "function_wasm_module_fetch_duration_seconds",
      help: "How long it took to fetch a module, by kind of source.",
      labels: ["source"],
    },
    fetchBuckets,
  );
  const tags = make.counter({
    name: "function_wasm_module_tag_resolutions_total",
    help: "Tags resolved, by what said where they lead.",
    labels: ["source"],
  });
  const cacheEvents = make.counter({
    name: "function_wasm_module_cache_events_total",
    help: "Looks into the caches, by how they ended.",
    labels: ["cache", "event"],
  });
  const cacheBytes = make.gauge({
    name: "function_wasm_module_cache_bytes",
    help: "Bytes in the caches on disk, as of the last sweep.",
    labels: ["cache"],
  });
  const policyReloaded = addReloads(make, {
    prefix: "function_wasm_policy",
    subject: "operator policy",
  });
  const certificatesReloaded = addReloads(make, {
    prefix: "function_wasm_certificate",
    subject: "server's certificates",
  });
  const refusedClients = make.counter({
    name: "function_wasm_clients_refused_total",
    help: "Connections that were closed before they came to a call, by what was wrong.",
    labels: ["reason"],
  });
  return {
    requestEnded: seriesOf(["ok", "refused", "error", "skipped"], (outcome) =>
      requests({ outcome }),
    ),
    runEnded: seriesOf(["ok", "error", "timeout"], (outcome) =>
      runs({ outcome }),
    ),
    runQueued: queue({}),
    runsInFlight: inFlight({}),
    memoryDenied: seriesOf(["limit", "pool"], (reason) => denials({ reason })),
    compileEnded: compiles({}),
    moduleLoaded: seriesOf([1, 2], (abi) => loads({ abi: String(abi) })),
    moduleFetched: seriesOf(["oci", "http", "path"], (source) =>
      fetches({ source }),
    ),
    tagResolved: seriesOf(["registry", "pointer", "cache"], (source) =>
      tags({ source }),
    ),
    compiledLookedUp: seriesOf(["hit", "miss"], (event) =>
      cacheEvents({ cache: "compiled", event }),
    ),
    artifactLookedUp: seriesOf(["hit", "miss", "stale"], (event) =>
      cacheEvents({ cache: "compiled-disk", event }),
    ),
    blobLookedUp: seriesOf(["hit", "miss", "stale"], (event) =>
      cacheEvents({ cache: "blob", event }),
    ),
    cacheSwept: seriesOf(["blob", "compiled-disk"], (cache) =>
      cacheBytes({ cache }),
    ),
    policyReloaded,
    certificatesReloaded,
    clientRefused: seriesOf(
      [
        "no-certificate",
        "untrusted",
        "expired",
        "not-for-clients",
        "distrusts-us",
        "no-http2",
        "handshake",
      ],
      (reason) => refusedClients({ reason }),
    ),
  };
}

/** What is read again while the process runs: how often, and whether what lies there is in use. */
function addReloads(
  make: ReturnType<typeof metricMakers>,
  { prefix, subject }: { readonly prefix: string; readonly subject: string },
): (result: "ok" | "error") => void {
  const reloads = make.counter({
    name: `${prefix}_reloads_total`,
    help: `Reloads of the ${subject}, by result.`,
    labels: ["result"],
  });
  const count = seriesOf(results, (result) => reloads({ result }));
  const setSuccessful = make.gauge({
    name: `${prefix}_last_reload_successful`,
    help: `Whether the last reload of the ${subject} succeeded, as 1 or 0; 1 before the first.`,
    labels: [],
  })({});
  setSuccessful(1);
  return (result) => {
    count(result);
    setSuccessful(result === "ok" ? 1 : 0);
  };
}
