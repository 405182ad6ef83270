import { LRUCache } from "lru-cache";
import type { Clock, Digest } from "../ports.js";

/** Which content was used lately, so that a sweep does not take it from under a running step. */
export interface UseLog {
  used(digest: Digest): void;
  /** What was used at or after that time, by the monotonic clock. */
  since(atMs: number): Iterable<Digest>;
}

const MAX_REMEMBERED = 10_000;
/** Every request uses four digests, and a write costs five times a look. */
const EXACT_TO_MS = 10_000;

export function createUseLog(clock: Clock): UseLog {
  const usedAtMs = new LRUCache<Digest, number>({ max: MAX_REMEMBERED });
  return {
    used(digest) {
      const nowMs = clock.monotonicMs();
      const knownMs = usedAtMs.get(digest) ?? -Infinity;
      if (nowMs - knownMs >= EXACT_TO_MS) usedAtMs.set(digest, nowMs);
    },
    *since(atMs) {
      for (const [digest, usedMs] of usedAtMs) if (usedMs >= atMs) yield digest;
    },
  };
}
