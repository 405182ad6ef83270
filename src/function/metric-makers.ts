import {
  Counter,
  Gauge,
  Histogram,
  type OpenMetricsContentType,
  type Registry,
} from "prom-client";

/** A registry of either format. */
export type AnyRegistry = Registry | Registry<OpenMetricsContentType>;

/** What every metric has: its name, what it tells, and its labels, whose values are constants. */
export interface MetricText {
  readonly name: string;
  readonly help: string;
}

/**
 * Returns what makes metrics with one varying label, whose values are known from the start. Labels
 * in `fixed` are the same for all series.
 *
 * A registry that writes OpenMetrics takes `_total` off the names of its counters for good, so a
 * counter in two registries would lose it in the classic text as well: each registry has its own,
 * fed by the same calls.
 */
export function metricMakers(registries: readonly AnyRegistry[]) {
  return {
    counter<V extends string>(
      { name, help }: MetricText,
      label: string,
      values: readonly V[],
      fixed: Readonly<Record<string, string>> = {},
    ): (value: V) => void {
      const labelNames = [...Object.keys(fixed), label];
      const counters = registries.map(
        (registry) =>
          new Counter({ name, help, labelNames, registers: [registry] }),
      );
      const add = (value: V, count: number): void => {
        for (const counter of counters)
          counter.inc({ ...fixed, [label]: value }, count);
      };
      for (const value of values) add(value, 0);
      return (value) => {
        add(value, 1);
      };
    },

    /** `buckets` are upper bounds in seconds. */
    histogram<V extends string>(
      { name, help }: MetricText,
      label: string,
      values: readonly V[],
      buckets: readonly number[],
    ): (value: V, seconds: number) => void {
      const histograms = registries.map(
        (registry) =>
          new Histogram({
            name,
            help,
            labelNames: [label],
            buckets: [...buckets],
            registers: [registry],
          }),
      );
      for (const histogram of histograms)
        for (const value of values) histogram.zero({ [label]: value });
      return (value, seconds) => {
        for (const histogram of histograms)
          histogram.observe({ [label]: value }, seconds);
      };
    },

    gauge<V extends string>(
      { name, help }: MetricText,
      label: string,
      values: readonly V[],
    ): (value: V, amount: number) => void {
      const gauges = registries.map(
        (registry) =>
          new Gauge({ name, help, labelNames: [label], registers: [registry] }),
      );
      const set = (value: V, amount: number): void => {
        for (const gauge of gauges) gauge.set({ [label]: value }, amount);
      };
      for (const value of values) set(value, 0);
      return set;
    },
  };
}
