/** How the metrics can be written: OpenMetrics 1.0 or classic Prometheus text 0.0.4. */
export type MetricsFormat = "openmetrics" | "text";

/**
 * What an Accept header asks for: classic text where it has the higher q, or the same q and the
 * more exact name; OpenMetrics in every other case, also when neither is acceptable, because a page
 * in a format the client did not name says more than none. Parameters other than q, `version` among
 * them, decide nothing.
 * @see https://www.rfc-editor.org/rfc/rfc9110#section-12.5.1
 */
export function chooseMetricsFormat(accept: string | undefined): MetricsFormat {
  const weights = readWeights(accept ?? "");
  const text = preferenceFor("text/plain", weights);
  const openMetrics = preferenceFor("application/openmetrics-text", weights);
  const lead =
    text.weight - openMetrics.weight || text.exactness - openMetrics.exactness;
  return lead > 0 ? "text" : "openmetrics";
}

interface Preference {
  /** The q; 0 = not mentioned. */
  readonly weight: number;
  /** 3 = by name, 2 = by a range of its type, 1 = by the range of everything, 0 = not mentioned. */
  readonly exactness: number;
}

/** Worse than not being mentioned: `q=0` excludes. */
const excluded = -1;

/** The most exact range that matches counts, and no other. */
function preferenceFor(
  mediaType: string,
  weights: ReadonlyMap<string, number>,
): Preference {
  const type = mediaType.slice(0, mediaType.indexOf("/"));
  const ranges = [mediaType, `${type}/*`, "*/*"];
  const index = ranges.findIndex((range) => weights.has(range));
  const weight = weights.get(ranges[index] ?? "");
  if (weight === undefined) return { weight: 0, exactness: 0 };
  return { weight, exactness: ranges.length - index };
}

/** The highest weight of each range, whose name is in lower case and without parameters. */
function readWeights(accept: string): ReadonlyMap<string, number> {
  const weights = new Map<string, number>();
  for (const element of accept.toLowerCase().split(",")) {
    const [range = "", ...parameters] = element
      .split(";")
      .map((part) => part.trim());
    const weight = readWeight(parameters);
    if (weight === null) continue;
    weights.set(range, Math.max(weight, weights.get(range) ?? excluded));
  }
  return weights;
}

/** `null` = no number from 0 to 1: such a range counts as not mentioned. */
function readWeight(parameters: readonly string[]): number | null {
  const q = parameters
    .find((parameter) => parameter.startsWith("q="))
    ?.slice(2);
  if (q === undefined) return 1;
  if (!/^[01](\.\d*)?$/.test(q)) return null;
  const weight = Number(q);
  if (weight > 1) return null;
  return weight === 0 ? excluded : weight;
}
