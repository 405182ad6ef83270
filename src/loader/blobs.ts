import type { Clock, Digest, Logger, Metrics, RequestScope } from "../ports.js";
import { isUnreachable, isUnwritable, LoaderError } from "./error.js";
import { createFlights, FAILURE_HOLDS_MS } from "./flights.js";
import { refuse } from "./refuse.js";
import type { BlobStore, StoredBlob } from "./store/blob-store.js";

/** How bytes that are not here can be had. */
export interface BlobOrigin {
  readonly type: "oci" | "http";
  /** Tells origins apart: the place and who asks. */
  readonly key: string;
  /**
   * Whether the bytes must come from there even when they are here already, because nothing shows
   * yet that they can be had from there. Looked at again where the fetch is shared.
   */
  mustDeliver(): Promise<boolean>;
  /** Begins to deliver the bytes. Throws LoaderError, its reason alone, and what a fence throws. */
  fetch(scope: RequestScope): Promise<Delivery>;
}

/** Bytes on their way. */
export interface Delivery {
  /** From their beginning; throws LoaderError, its reason alone. */
  readonly chunks: AsyncIterable<Uint8Array>;
  /** The server that delivers in the stead of the one that was asked; null = that one does. Escaped. */
  readonly sentOnTo: string | null;
  /** To be called once they have turned out to be those of the digest. */
  verified(): Promise<void>;
  /** Throws away what was not read. Never rejects. */
  discard(): Promise<void>;
}

/** Large content on this machine, by digest. */
export interface Blobs {
  /**
   * The file of a blob: verified when it is here and need not be delivered, else fetched. Whoever
   * asks for the same meanwhile shares the fetch, which has 10 minutes.
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
    // What must be delivered is as good as not here.
    const found = (await origin.mustDeliver())
      ? null
      : await store.find(digest, scope.signal);
    metrics.blobLookedUp(found === null ? "miss" : "hit");
    if (found !== null) return found;
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

  /** A connection or a disk that fails in the middle is worth a second try; nothing else is. */
  async function fetchTwice(
    digest: Digest,
    origin: BlobOrigin,
    scope: RequestScope,
  ): Promise<StoredBlob> {
    const first = await origin.fetch(scope);
    try {
      return await take(digest, first);
    } catch (thrown) {
      if (!isUnreachable(thrown) && !isUnwritable(thrown)) throw thrown;
      if (scope.deadlineAtMs <= clock.monotonicMs()) throw thrown;
      logger.warn({ digest, reason: thrown.message }, "fetching a blob again");
      return await take(digest, await origin.fetch(scope));
    }
  }

  async function take(digest: Digest, delivery: Delivery): Promise<StoredBlob> {
    let blob: StoredBlob;
    try {
      blob = await store.write(digest, delivery.chunks);
    } catch (thrown) {
      throw withoutContent(thrown, delivery);
    } finally {
      await delivery.discard();
    }
    await delivery.verified();
    return blob;
  }

  return {
    async obtain(digest, origin, scope) {
      return await flights.share(
        `${digest} ${origin.key}`,
        (own) => findOrFetch(digest, origin, own),
        scope,
      );
    },
  };
}

/** What other bytes there are, and how many, is not for who had us led there. */
export function withoutContent(
  thrown: unknown,
  { sentOnTo }: Pick<Delivery, "sentOnTo">,
): unknown {
  if (sentOnTo === null || !(thrown instanceof LoaderError)) return thrown;
  if (thrown.code !== "digest-mismatch" && thrown.code !== "answer-too-large")
    return thrown;
  return refuse(
    thrown.code,
    `${sentOnTo}, where the registry sent on to, has not the bytes of the digest`,
  );
}
