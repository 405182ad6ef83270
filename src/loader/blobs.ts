import type { Clock, Digest, Logger, Metrics, RequestScope } from "../ports.js";
import { LoaderError } from "./error.js";
import { createFlights, FAILURE_HOLDS_MS } from "./flights.js";
import type { BlobStore, StoredBlob } from "./store/blob-store.js";

/** How bytes that are not here can be had. */
export interface BlobOrigin {
  readonly type: "oci" | "http";
  /** Tells origins apart: the place and who asks. */
  readonly key: string;
  /** Whether it must be fetched even when it is here: whoever asks wants to know that it is there. */
  readonly mustDeliver: boolean;
  /** The bytes, from their beginning. Throws LoaderError, its reason alone. */
  fetch(scope: RequestScope): Promise<AsyncIterable<Uint8Array>>;
}

/** Large content on this machine, by digest. */
export interface Blobs {
  /**
   * The file of a blob: verified when it is here, else fetched. Whoever asks for the same meanwhile
   * shares the fetch, which has 10 minutes.
   * @throws LoaderError, its reason alone
   */
  obtain(
    digest: Digest,
    origin: BlobOrigin,
    scope: RequestScope,
  ): Promise<StoredBlob>;
}

const FETCH_BUDGET_MS = 600_000;

export function createBlobs(
  store: BlobStore,
  clock: Clock,
  logger: Logger,
  metrics: Metrics,
): Blobs {
  const flights = createFlights<StoredBlob>(
    { budgetMs: FETCH_BUDGET_MS, failureHoldsMs: FAILURE_HOLDS_MS },
    clock,
  );

  async function findOrFetch(
    digest: Digest,
    origin: BlobOrigin,
    scope: RequestScope,
  ): Promise<StoredBlob> {
    if (!origin.mustDeliver) {
      const found = await store.find(digest, scope.signal);
      metrics.blobLookedUp(found === null ? "miss" : "hit");
      if (found !== null) return found;
    }
    const startedAtMs = clock.monotonicMs();
    const blob = await fetchTwice(digest, origin, scope);
    const elapsedMs = clock.monotonicMs() - startedAtMs;
    metrics.moduleFetched(origin.type, elapsedMs / 1000);
    logger.info(
      {
        digest,
        sizeBytes: blob.sizeBytes,
        source: origin.type,
        elapsedMs: Math.round(elapsedMs),
      },
      "blob fetched",
    );
    return blob;
  }

  /** A connection that breaks in the middle is worth a second try; nothing else is. */
  async function fetchTwice(
    digest: Digest,
    origin: BlobOrigin,
    scope: RequestScope,
  ): Promise<StoredBlob> {
    try {
      return await store.write(digest, await origin.fetch(scope));
    } catch (thrown) {
      const isLost =
        thrown instanceof LoaderError && thrown.code === "registry-unreachable";
      if (!isLost || scope.deadlineAtMs <= clock.monotonicMs()) throw thrown;
      logger.warn({ digest, reason: thrown.message }, "fetching a blob again");
      return await store.write(digest, await origin.fetch(scope));
    }
  }

  return {
    async obtain(digest, origin, scope) {
      return await flights.share(
        flightKey(digest, origin),
        (own) => findOrFetch(digest, origin, own),
        scope,
      );
    },
  };
}

/** What flights of blobs are called. */
export function flightKey(
  digest: Digest,
  { mustDeliver, key }: Pick<BlobOrigin, "key" | "mustDeliver">,
): string {
  return `${digest} ${String(mustDeliver)} ${key}`;
}
