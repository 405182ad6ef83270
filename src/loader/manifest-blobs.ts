import { LRUCache } from "lru-cache";
import type {
  Clock,
  Digest,
  Logger,
  ManifestBytes,
  RequestScope,
} from "../ports.js";
import { type BlobOrigin, type Delivery, withoutContent } from "./blobs.js";
import { chunksOf, collect, digestOf } from "./chunks.js";
import { createFlights, FAILURE_HOLDS_MS } from "./flights.js";
import { MAX_MODULE_MANIFEST_BYTES } from "./limits.js";
import { refuse } from "./refuse.js";
import { storeIfPossible } from "./store/store-if-possible.js";
import type { BlobStore } from "./store/blob-store.js";

/** Module manifests that come over the network, by digest: in memory, on disk, or fetched. */
export interface ManifestBlobs {
  /**
   * The bytes of a manifest; shared, nobody may write to them.
   * @throws LoaderError, its reason alone
   */
  obtain(
    digest: Digest,
    form: ManifestBytes["form"],
    origin: BlobOrigin,
    scope: RequestScope,
  ): Promise<ManifestBytes>;
}

const BUDGET_MS = 10_000;
const MAX_REMEMBERED_BYTES = 4 * 1024 * 1024;

export function createManifestBlobs(
  store: BlobStore,
  clock: Clock,
  logger: Logger,
): ManifestBlobs {
  const known = new LRUCache<Digest, Uint8Array>({
    maxSize: MAX_REMEMBERED_BYTES,
    sizeCalculation: (bytes) => bytes.length + 1,
  });
  const flights = createFlights<Uint8Array>(
    { budgetMs: BUDGET_MS, failureHoldsMs: FAILURE_HOLDS_MS },
    clock,
  );

  async function readOrFetch(
    digest: Digest,
    origin: BlobOrigin,
    scope: RequestScope,
  ): Promise<Uint8Array> {
    const stored = (await origin.mustDeliver())
      ? null
      : await store.read(digest, MAX_MODULE_MANIFEST_BYTES);
    const bytes = stored ?? (await fetch(digest, origin, scope));
    known.set(digest, bytes);
    return bytes;
  }

  async function fetch(
    digest: Digest,
    origin: BlobOrigin,
    scope: RequestScope,
  ): Promise<Uint8Array> {
    const delivery = await origin.fetch(scope);
    const bytes = await collectAs(digest, delivery);
    await storeIfPossible(store, digest, chunksOf(bytes), logger);
    await delivery.verified();
    return bytes;
  }

  async function collectAs(
    digest: Digest,
    delivery: Delivery,
  ): Promise<Uint8Array> {
    try {
      const bytes = await collect(delivery.chunks);
      const got = digestOf(bytes);
      if (got === digest) return bytes;
      throw refuse(
        "digest-mismatch",
        `its manifest: expected ${digest}, got ${got}`,
      );
    } catch (thrown) {
      throw withoutContent(thrown, delivery);
    }
  }

  return {
    async obtain(digest, form, origin, scope) {
      const remembered = (await origin.mustDeliver())
        ? undefined
        : known.get(digest);
      const bytes =
        remembered ??
        (await flights.share(
          `${digest} ${origin.key}`,
          (own) => readOrFetch(digest, origin, own),
          scope,
        ));
      return { form, bytes, digest };
    },
  };
}
