import { Counter, Gauge, Histogram, type Registry } from "prom-client";

/** What a metric is called, what it tells, and the names of its labels. */
export interface MetricText<L extends string> {
  readonly name: string;
  readonly help: string;
  /** Their values are constants, or the number of series would grow without bound. */
  readonly labels: readonly L[];
}

/** The labels that make a series of a metric. */
export type SeriesLabels<L extends string> = Readonly<Record<L, string>>;

/**
 * Returns what makes the metrics of a registry. Each maker returns a function that makes a series,
 * which is on the page from then on, and that returns how the series is fed.
 *
 * Counters and gauges are numbers of our own, which the registry asks for when it writes a page:
 * prom-client puts a key together and checks every label for each count, which takes longer than a
 * request may spend on all its metrics.
 */
export function metricMakers(registry: Registry) {
  const registers = [registry];
  return {
    counter<L extends string>({ name, help, labels }: MetricText<L>) {
      const series: Series<L>[] = [];
      new Counter({
        name,
        help,
        labelNames: labels,
        registers,
        collect() {
          this.reset();
          for (const { labels, value } of series) this.inc(labels, value);
        },
      });
      return (labels: SeriesLabels<L>): ((count?: number) => void) => {
        const one = addSeries(series, labels);
        return (count = 1) => {
          one.value += count;
        };
      };
    },

    gauge<L extends string>({ name, help, labels }: MetricText<L>) {
      const series: Series<L>[] = [];
      new Gauge({
        name,
        help,
        labelNames: labels,
        registers,
        collect() {
          for (const { labels, value } of series) this.set(labels, value);
        },
      });
      return (labels: SeriesLabels<L>): ((amount: number) => void) => {
        const one = addSeries(series, labels);
        return (amount) => {
          one.value = amount;
        };
      };
    },

    /** `buckets` are upper bounds in seconds. */
    histogram<L extends string>(
      { name, help, labels }: MetricText<L>,
      buckets: readonly number[],
    ) {
      const histogram = new Histogram<L>({
        name,
        help,
        labelNames: labels,
        buckets: [...buckets],
        registers,
      });
      return (labels: SeriesLabels<L>): ((seconds: number) => void) => {
        histogram.zero(labels);
        const one = histogram.labels(labels);
        return (seconds) => {
          one.observe(seconds);
        };
      };
    },
  };
}

/** Makes a series for each of `values` now; the function returned feeds the one of its value. */
export function seriesOf<V, A extends unknown[]>(
  values: readonly V[],
  make: (value: V) => (...args: A) => void,
): (value: V, ...args: A) => void {
  const feeds = new Map(values.map((value) => [value, make(value)]));
  return (value, ...args) => {
    feeds.get(value)?.(...args);
  };
}

interface Series<L extends string> {
  readonly labels: SeriesLabels<L>;
  value: number;
}

function addSeries<L extends string>(
  series: Series<L>[],
  labels: SeriesLabels<L>,
): Series<L> {
  const one = { labels, value: 0 };
  series.push(one);
  return one;
}
