import { Registry, type OpenMetricsContentType } from "prom-client";

import type { Metrics } from "../ports.js";
import { metricMakers } from "./metric-makers.js";
import { chooseMetricsFormat } from "./metrics-format.js";

/** All metrics as they are now, in one format. */
export interface MetricsPage {
  /** With version and charset. */
  readonly contentType: string;
  readonly body: string;
}

/** Writes the page in the format that suits an Accept header. */
export type Exposition = (accept: string | undefined) => Promise<MetricsPage>;

/** Upper bounds in seconds: from a small module beside us to a large one from far away. */
const fetchBuckets = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

/** Counts from zero; `exposition` has every series from the start. */
export function createMetrics(): {
  readonly metrics: Metrics;
  readonly exposition: Exposition;
} {
  const registries = {
    openmetrics: createOpenMetricsRegistry(),
    text: new Registry(),
  };
  const make = metricMakers(Object.values(registries));
  return {
    metrics: {
      requestEnded: make.counter(
        {
          name: "function_wasm_module_requests_total",
          help: "Requests answered, by how they ended.",
        },
        "outcome",
        ["ok", "refused", "error", "skipped"],
      ),
      moduleFetched: make.histogram(
        {
          name: "function_wasm_module_fetch_duration_seconds",
          help: "How long it took to fetch a module, by kind of source.",
        },
        "source",
        ["oci", "http"],
        fetchBuckets,
      ),
      tagResolved: make.counter(
        {
          name: "function_wasm_module_tag_resolutions_total",
          help: "Tags resolved, by what said where they lead.",
        },
        "source",
        ["registry", "pointer", "cache"],
      ),
      blobLookedUp: make.counter(
        {
          name: "function_wasm_module_cache_events_total",
          help: "Looks into the caches, by how they ended.",
        },
        "event",
        ["hit", "miss", "stale"],
        { cache: "blob" },
      ),
      cacheSwept: make.gauge(
        {
          name: "function_wasm_module_cache_bytes",
          help: "Bytes in the caches on disk, as of the last sweep.",
        },
        "cache",
        ["blob", "compiled-disk"],
      ),
      policyReloaded: make.counter(
        {
          name: "function_wasm_policy_reloads_total",
          help: "Times the operator policy was read again, by result.",
        },
        "result",
        ["ok", "error"],
      ),
    },
    async exposition(accept) {
      const registry = registries[chooseMetricsFormat(accept)];
      return {
        contentType: registry.contentType,
        body: await registry.metrics(),
      };
    },
  };
}

function createOpenMetricsRegistry(): Registry<OpenMetricsContentType> {
  const registry = new Registry<OpenMetricsContentType>();
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  return registry;
}
