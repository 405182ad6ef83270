import type { Clock } from "../ports.js";

/** Strangers come from as many addresses as they like. */
const maxLinesPerSecond = 10;

/**
 * For what strangers bring about: says whether there may be one more line of the log now, and takes
 * it for written. There are 10 a second.
 */
export function createLineBudget(clock: Clock): () => boolean {
  let lines = maxLinesPerSecond;
  let atMs = clock.monotonicMs();
  return () => {
    const nowMs = clock.monotonicMs();
    const gained = ((nowMs - atMs) * maxLinesPerSecond) / 1_000;
    lines = Math.min(maxLinesPerSecond, lines + gained);
    atMs = nowMs;
    if (lines < 1) return false;
    lines -= 1;
    return true;
  };
}
