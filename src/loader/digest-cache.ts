import type { BigIntStats } from "node:fs";
import { LRUCache } from "lru-cache";
import type { Clock, Digest, RequestScope } from "../ports.js";
import {
  CANCELLED,
  fileStateKey,
  hashFile,
  type HashResult,
} from "./hash-file.js";

/** Remembers the digests of files that have not changed since they were hashed. */
export interface DigestCache {
  /**
   * The digest of the regular file at `filePath`, whose `lstat` gave `stats`. Callers that ask for
   * the same file at once share one hash, which stops when all of them have gone.
   */
  digestOf(
    filePath: string,
    stats: BigIntStats,
    scope: RequestScope,
  ): Promise<HashResult>;
  /** Whether the digest of a file in this state is known, and need not be asked for again. */
  remembers(stats: BigIntStats): boolean;
}

const MAX_ENTRIES = 1024;
/**
 * A file system may stamp two writes within one tick of its clock alike, so what a file written this
 * recently holds is not remembered. The coarsest ticks in use are a second.
 */
const SETTLED_AFTER_MS = 1_000;

interface SharedHash {
  readonly result: Promise<HashResult>;
  readonly abort: AbortController;
  waiters: number;
}

/**
 * An empty cache of 1024 entries.
 * @param clock what the files' change times are compared with
 * @param onHashed called for each file that was read and hashed, not for those that are remembered
 */
export function createDigestCache(
  clock: Clock,
  onHashed: (seconds: number) => void,
): DigestCache {
  const known = new LRUCache<string, Digest>({ max: MAX_ENTRIES });
  const running = new Map<string, SharedHash>();

  function start(
    filePath: string,
    stats: BigIntStats,
    key: string,
  ): SharedHash {
    const ageMs = Math.abs(clock.nowMs() - Number(stats.ctimeMs));
    const abort = new AbortController();
    const startedAtMs = clock.monotonicMs();
    const result = hashFile(filePath, stats, abort.signal).then((hashed) => {
      if (hashed.kind === "refused") return hashed;
      onHashed((clock.monotonicMs() - startedAtMs) / 1000);
      if (ageMs > SETTLED_AFTER_MS) known.set(key, hashed.digest);
      return hashed;
    });
    return { result, abort, waiters: 0 };
  }

  async function share(
    key: string,
    hash: SharedHash,
    scope: RequestScope,
  ): Promise<HashResult> {
    hash.waiters += 1;
    try {
      return await unlessCancelled(hash.result, scope);
    } finally {
      hash.waiters -= 1;
      // Either it is done, or the last one who waited for it has gone.
      if (hash.waiters === 0) {
        hash.abort.abort();
        if (running.get(key) === hash) running.delete(key);
      }
    }
  }

  return {
    async digestOf(filePath, stats, scope) {
      const key = fileStateKey(stats);
      const digest = known.get(key);
      if (digest !== undefined) return { kind: "ok", digest };
      const hash = running.get(key) ?? start(filePath, stats, key);
      running.set(key, hash);
      return await share(key, hash, scope);
    },
    remembers: (stats) => known.has(fileStateKey(stats)),
  };
}

function unlessCancelled(
  result: Promise<HashResult>,
  scope: RequestScope,
): Promise<HashResult> {
  return new Promise((resolve, reject) => {
    const leave = (): void => {
      resolve(CANCELLED);
    };
    if (scope.cancelled) leave();
    const unsubscribe = scope.onCancel(leave);
    result.then(resolve, reject).finally(unsubscribe);
  });
}
