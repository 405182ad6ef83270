/** A page of metrics in either format, as a scraper reads it. */
import { recordOutput } from "./suite-output.js";

/** A metric as it is described. */
export interface MetricFamily {
  /** With `_total` for counters, in either format. */
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly samples: readonly Sample[];
}

/** One line. */
export interface Sample {
  /** As in a query: with `_total`, `_bucket`, `_sum` or `_count`. */
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** @throws what is no line of a page */
export function readMetricsPage(body: string): readonly MetricFamily[] {
  recordOutput("page", body);
  const families: MutableFamily[] = [];
  for (const line of body.split("\n")) {
    if (line === "" || line === "# EOF") continue;
    const help = /^# HELP (\S+) (.+)$/.exec(line);
    const type = /^# TYPE (\S+) (counter|gauge|histogram)$/.exec(line);
    const last = families.at(-1);
    if (help !== null) {
      const [, name = "", text = ""] = help;
      families.push({ name, type: "", help: text, samples: [] });
    } else if (last === undefined) {
      throw new Error(`no metric is described: ${line}`);
    } else if (type !== null && last.name === type[1]) {
      last.type = type[2] ?? "";
      const isBare = last.type === "counter" && !last.name.endsWith("_total");
      if (isBare) last.name += "_total";
    } else {
      last.samples.push(readSample(line, last));
    }
  }
  return families;
}

/** The value of the series with exactly these labels; `undefined` when there is none. */
export function sampleOf(
  families: readonly MetricFamily[],
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | undefined {
  const wanted = keyOf(labels);
  return families
    .flatMap(({ samples }) => samples)
    .find((sample) => sample.name === name && keyOf(sample.labels) === wanted)
    ?.value;
}

/** A series' labels as they are written, in alphabetic order. */
export function keyOf(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(
    ([name, value]) => `${name}="${value}"`,
  );
  return `{${pairs.sort().join(",")}}`;
}

interface MutableFamily extends MetricFamily {
  name: string;
  type: string;
  readonly samples: Sample[];
}

function readSample(line: string, family: MetricFamily): Sample {
  const parts =
    /^(?<name>[a-z0-9_]+)(?:\{(?<labels>[^{}]*)\})? (?<value>\S+)$/.exec(
      line,
    )?.groups;
  const { name = "", labels = "", value = "" } = parts ?? {};
  const suffix = name.slice(family.name.length);
  const suffixes =
    family.type === "histogram" ? ["_bucket", "_sum", "_count"] : [""];
  if (!name.startsWith(family.name) || !suffixes.includes(suffix))
    throw new Error(`no sample of ${family.name}: ${line}`);
  const pairs = labels === "" ? [] : labels.split(",");
  return {
    name,
    labels: Object.fromEntries(
      pairs.map((pair) => {
        const [, label = "", text = ""] = /^(\w+)="([^"]*)"$/.exec(pair) ?? [];
        if (label === "") throw new Error(`no label: ${line}`);
        return [label, text];
      }),
    ),
    value: Number(value.replace("+Inf", "Infinity").replace("Nan", "NaN")),
  };
}
