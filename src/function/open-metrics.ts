/**
 * Turns a page of prom-client's classic text into OpenMetrics 1.0, which says the same: there,
 * counters are without `_total` where they are described, no line is empty, and the end is marked.
 *
 * Its registries can write OpenMetrics as well, but take `_total` off the names of their counters
 * for good, so each format would need counters of its own.
 * @see https://prometheus.io/docs/specs/om/open_metrics_spec/
 */
export function openMetricsFrom(text: string): string {
  const described = text.replace(
    /^# HELP (\S+)_total (.*)\n# TYPE \1_total counter$/gm,
    "# HELP $1 $2\n# TYPE $1 counter",
  );
  return `${described.replaceAll("\n\n", "\n")}# EOF\n`;
}
