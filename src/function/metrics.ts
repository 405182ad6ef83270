import { Counter, Registry, type OpenMetricsContentType } from "prom-client";

import type { Metrics, RequestOutcome } from "../ports.js";
import { chooseMetricsFormat } from "./metrics-format.js";

/** All metrics as they are now, in one format. */
export interface MetricsPage {
  /** With version and charset. */
  readonly contentType: string;
  readonly body: string;
}

/** Writes the page in the format that suits an Accept header. */
export type Exposition = (accept: string | undefined) => Promise<MetricsPage>;

/** Counts from zero; `exposition` has every series from the start. */
export function createMetrics(): {
  readonly metrics: Metrics;
  readonly exposition: Exposition;
} {
  const registries = {
    openmetrics: createOpenMetricsRegistry(),
    text: new Registry(),
  };
  const counter = counterMaker(Object.values(registries));
  return {
    metrics: {
      requestEnded: counter<RequestOutcome>(
        "function_wasm_module_requests_total",
        "Requests answered, by how they ended.",
        "outcome",
        { ok: 0, refused: 0, error: 0, skipped: 0 },
      ),
      policyReloaded: counter<"ok" | "error">(
        "function_wasm_policy_reloads_total",
        "Times the operator policy was read again, by result.",
        "result",
        { ok: 0, error: 0 },
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

type AnyRegistry = Registry | Registry<OpenMetricsContentType>;

/**
 * Returns what makes a counter with one label, whose values are the keys of `start`.
 *
 * A registry that writes OpenMetrics takes `_total` off the names of its counters for good, so a
 * counter in two registries would lose it in the classic text as well: each registry has its own,
 * fed by the same calls.
 */
function counterMaker(registries: readonly AnyRegistry[]) {
  return <V extends string>(
    name: string,
    help: string,
    label: string,
    start: Readonly<Record<V, number>>,
  ): ((value: V) => void) => {
    const counters = registries.map(
      (registry) =>
        new Counter({ name, help, labelNames: [label], registers: [registry] }),
    );
    const add = (value: string, count: number): void => {
      for (const counter of counters) counter.inc({ [label]: value }, count);
    };
    for (const [value, count] of Object.entries<number>(start)) {
      add(value, count);
    }
    return (value) => add(value, 1);
  };
}
