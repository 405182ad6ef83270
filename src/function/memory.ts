import { LRUCache } from "lru-cache";

import type { Clock } from "../ports.js";

/** What is known of strangers: at most `max` of them, each for `ttlMs` after it was last set. */
export function createMemory<V extends object | true>(
  bounds: { readonly max: number; readonly ttlMs: number },
  clock: Clock,
): LRUCache<string, V> {
  return new LRUCache({
    max: bounds.max,
    ttl: bounds.ttlMs,
    ttlResolution: 0,
    // Entries of the time 0 never end.
    perf: { now: () => clock.monotonicMs() + 1 },
  });
}
