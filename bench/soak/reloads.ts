/** How often the function has read its files again, by its own count. */
export interface ReloadCounts {
  readonly certificates: ReloadCount;
  readonly policy: ReloadCount;
}

export interface ReloadCount {
  readonly ok: number;
  readonly refused: number;
}

/**
 * Reads the counts from the metrics.
 * @param address `host:port` of --metrics-address
 */
export async function readReloads(address: string): Promise<ReloadCounts> {
  const response = await fetch(`http://${address}/metrics`, {
    signal: AbortSignal.timeout(10_000),
  });
  const text = await response.text();
  const count = (name: string): ReloadCount => ({
    ok: valueOf(text, `function_wasm_${name}_reloads_total{result="ok"}`),
    refused: valueOf(
      text,
      `function_wasm_${name}_reloads_total{result="error"}`,
    ),
  });
  return { certificates: count("certificate"), policy: count("policy") };
}

/** What was counted between the two. */
export function reloadsBetween(
  before: ReloadCount,
  after: ReloadCount,
): ReloadCount {
  return {
    ok: after.ok - before.ok,
    refused: after.refused - before.refused,
  };
}

/** 0 for a series that has not begun. */
function valueOf(text: string, series: string): number {
  const line = text.split("\n").find((each) => each.startsWith(`${series} `));
  return line === undefined ? 0 : Number(line.slice(series.length));
}
