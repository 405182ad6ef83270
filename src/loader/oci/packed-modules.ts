import { createReadStream } from "node:fs";
import { LRUCache } from "lru-cache";
import type { Clock, Digest, RequestScope } from "../../ports.js";
import type { BlobOrigin, Blobs } from "../blobs.js";
import { isUnwritable } from "../error.js";
import { createFlights, FAILURE_HOLDS_MS } from "../flights.js";
import type { BlobStore, StoredBlob } from "../store/blob-store.js";
import { moduleInLayer } from "./tar-layer.js";

/** Modules that are files in a tar layer. */
export interface PackedModules {
  /**
   * The file of the module in a layer, which is fetched and unpacked where it must be. Which module
   * a layer holds is read from the layer itself, once in a process: what a file on disk said about it
   * could be a lie.
   * @throws LoaderError, its reason alone
   */
  unpack(
    layer: Digest,
    origin: BlobOrigin,
    scope: RequestScope,
  ): Promise<StoredBlob>;
  /** The digest and size of the module in a layer that this process unpacked before. */
  known(layer: Digest): Pick<StoredBlob, "digest" | "sizeBytes"> | null;
}

const UNPACK_BUDGET_MS = 600_000;
const MAX_REMEMBERED = 2_000;

export function createPackedModules(
  store: BlobStore,
  blobs: Blobs,
  maxModuleBytes: number,
  clock: Clock,
): PackedModules {
  const modules = new LRUCache<Digest, StoredBlob>({ max: MAX_REMEMBERED });
  const flights = createFlights<StoredBlob>(
    { budgetMs: UNPACK_BUDGET_MS, failureHoldsMs: FAILURE_HOLDS_MS },
    clock,
  );

  async function unpack(
    layer: Digest,
    origin: BlobOrigin,
    scope: RequestScope,
  ): Promise<StoredBlob> {
    const known = modules.get(layer);
    if (known !== undefined) {
      const found = await store.find(known.digest, scope.signal);
      if (found !== null) return found;
    }
    const packed = await blobs.obtain(layer, origin, scope);
    const module = await writeTwice(packed);
    modules.set(layer, module);
    return module;
  }

  /** After a disk that failed in the middle the store writes elsewhere. */
  async function writeTwice({ filePath }: StoredBlob): Promise<StoredBlob> {
    const write = (): Promise<StoredBlob> => {
      const chunks = createReadStream(filePath);
      return store.write(null, moduleInLayer(chunks, { maxModuleBytes }));
    };
    try {
      return await write();
    } catch (thrown) {
      if (!isUnwritable(thrown)) throw thrown;
      return await write();
    }
  }

  return {
    async unpack(layer, origin, scope) {
      return await flights.share(
        `${layer} ${origin.key}`,
        (own) => unpack(layer, origin, own),
        scope,
      );
    },
    known: (layer) => modules.get(layer) ?? null,
  };
}
