/** Nearest rank in ascending `sorted`; `NaN` when it is empty. `percent` is 0 to 100. */
export function percentile(sorted: readonly number[], percent: number): number {
  const rank = Math.max(1, Math.ceil((sorted.length * percent) / 100));
  return sorted[rank - 1] ?? NaN;
}

/** A new array in ascending order. */
export function ascending(samples: readonly number[]): number[] {
  return [...samples].sort((a, b) => a - b);
}
