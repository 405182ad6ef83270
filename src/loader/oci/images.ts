import { LRUCache } from "lru-cache";
import type { Clock, Digest, Logger, RequestScope } from "../../ports.js";
import { claimKey, type Access, type Claim } from "../access.js";
import { chunksOf, digestOf } from "../chunks.js";
import { isRefusal, LoaderError } from "../error.js";
import { createFlights, FAILURE_HOLDS_MS } from "../flights.js";
import { MAX_IMAGE_MANIFEST_BYTES, RESOLVE_BUDGET_MS } from "../limits.js";
import { refuse } from "../refuse.js";
import type { BlobStore } from "../store/blob-store.js";
import { storeIfPossible } from "../store/store-if-possible.js";
import type { Descriptor } from "./descriptor.js";
import { chooseLayers, type ModuleLayers } from "./layer.js";
import { readManifest } from "./manifest.js";
import { partsDigest } from "./parts-digest.js";
import {
  checkClaim,
  type DeliveredManifest,
  type Puller,
  type Registry,
} from "./registry.js";

/** An image manifest, as far as loading a module needs it. */
export interface Image {
  readonly digest: Digest;
  readonly module: Layer;
  readonly form: ModuleLayers["form"];
  readonly manifest: Layer | null;
}

/** What is kept of a descriptor. Its texts may be megabytes. */
export type Layer = Pick<Descriptor, "digest" | "sizeBytes">;

/** Image manifests by digest: in memory, on disk, or asked for. */
export interface Images {
  /**
   * The image of a digest. Needs no network once it was here and the puller has shown that he may
   * have it; a proof by credential is repeated now and then. Where the registry gives no answer, an
   * earlier proof is good enough.
   * @throws LoaderError, its reason alone
   */
  pinned(digest: Digest, puller: Puller, scope: RequestScope): Promise<Image>;
  /** As {@link pinned}, from this machine alone; null = not here, or never proved. */
  cached(digest: Digest, puller: Puller): Promise<Image | null>;
  /**
   * Takes a manifest that the registry has just delivered to this puller.
   * @throws LoaderError artifact-invalid
   */
  keep(manifest: FreshManifest, puller: Puller): Promise<Image>;
  /** The registry has refused this puller. */
  refused(digest: Digest, puller: Puller): Promise<void>;
}

/** A manifest and the digest that its bytes really have. */
export interface FreshManifest extends DeliveredManifest {
  readonly digest: Digest;
}

const MAX_REMEMBERED_IMAGES = 2_000;
/** How long a registry that gave no answer is not asked again about what was proved before. */
const EXCUSED_MS = 60_000;

/** What {@link createImages} works with. */
export interface ImagesParts {
  readonly registry: Registry;
  readonly access: Access;
  readonly manifests: BlobStore;
  readonly clock: Clock;
  readonly logger: Logger;
}

export function createImages(parts: ImagesParts): Images {
  const { registry, access, manifests, clock, logger } = parts;
  const images = new LRUCache<Digest, Image>({ max: MAX_REMEMBERED_IMAGES });
  const unreadable = new LRUCache<string, LoaderError>({
    max: MAX_REMEMBERED_IMAGES,
  });
  const excusedUntilMs = new LRUCache<string, number>({
    max: MAX_REMEMBERED_IMAGES,
  });
  const flights = createFlights<Image>(
    { budgetMs: RESOLVE_BUDGET_MS, failureHoldsMs: FAILURE_HOLDS_MS },
    clock,
  );

  async function read(digest: Digest): Promise<Image | null> {
    const remembered = images.get(digest);
    if (remembered !== undefined) return remembered;
    const bytes = await manifests.read(digest, MAX_IMAGE_MANIFEST_BYTES);
    return bytes === null ? null : remember(digest, bytes, null);
  }

  function remember(
    digest: Digest,
    bytes: Uint8Array,
    contentType: string | null,
  ): Image {
    const { form, manifestLayer, module } = chooseLayers(
      readManifest(bytes, contentType),
    );
    const image: Image = {
      digest,
      module: layerOf(module),
      form,
      manifest: manifestLayer && layerOf(manifestLayer),
    };
    images.set(digest, image);
    return image;
  }

  function readFresh(fresh: FreshManifest, { at }: Puller): Image {
    const { bytes, contentType, digest, sentOnTo } = fresh;
    // Hashed: what a registry writes into a header may be tens of KB.
    const key = partsDigest([digest, contentType ?? ""]);
    try {
      const refusal = unreadable.get(key);
      if (refusal !== undefined) throw refusal;
      return remember(digest, bytes, contentType);
    } catch (thrown) {
      // Reading it again would take as long, and find the same.
      if (thrown instanceof LoaderError) unreadable.set(key, thrown);
      if (sentOnTo === null) throw thrown;
      // What is wrong with it would tell what is there, where perhaps only this machine can look.
      throw refuse(
        "artifact-invalid",
        `${at.registry} sent on to ${sentOnTo}, and what is there is no image manifest with a module`,
      );
    }
  }

  async function keep(fresh: FreshManifest, puller: Puller): Promise<Image> {
    const { bytes, digest, usedCredential } = fresh;
    const known = images.get(digest);
    const image = known ?? readFresh(fresh, puller);
    if (known === undefined)
      await storeIfPossible(manifests, digest, chunksOf(bytes), logger);
    const claim = claimOf(digest, puller);
    if (known === undefined || (await access.standing(claim)) !== "proved")
      await access.prove(claim, !usedCredential);
    return image;
  }

  /**
   * Asks the registry for the bytes, even when they are here: another one's word that it has them
   * proves nothing. Where it has delivered them before, its word is enough.
   */
  async function ask(
    digest: Digest,
    known: Image | null,
    puller: Puller,
    scope: RequestScope,
  ): Promise<Image> {
    if (known === null) {
      const fresh = identified(
        await registry.manifest(digest, puller, scope),
        puller.at,
      );
      if (fresh.digest !== digest) throw otherManifest(fresh, digest);
      return await keep(fresh, puller);
    }
    const { claimedDigest } = await registry.check(
      "manifests",
      digest,
      puller,
      scope,
    );
    // Something else may say 200 to everything, such as a page about maintenance.
    if (claimedDigest !== digest) return await ask(digest, null, puller, scope);
    // For this puller only: what everybody may have is shown by a delivery.
    await access.prove(claimOf(digest, puller), false);
    return known;
  }

  async function obtain(
    digest: Digest,
    puller: Puller,
    scope: RequestScope,
  ): Promise<Image> {
    const claim = claimOf(digest, puller);
    const standing = await access.standing(claim);
    const known = await read(digest);
    if (known !== null && standing === "proved") return known;
    try {
      const held = standing === "unproved" ? null : known;
      return await ask(digest, held, puller, scope);
    } catch (thrown) {
      if (!(thrown instanceof LoaderError)) throw thrown;
      if (thrown.code !== "registry-unreachable") {
        if (isRefusal(thrown)) await access.disprove(claim);
        throw thrown;
      }
      if (known === null) throw thrown;
      if (standing === "stale") {
        excusedUntilMs.set(claimKey(claim), clock.monotonicMs() + EXCUSED_MS);
        logger.warn(
          { digest, reason: thrown.message },
          "cannot check access again, an earlier proof is used",
        );
        return known;
      }
      throw refuse(
        "access-unproven",
        `it is in the cache, but nothing shows that this step may pull it: ${thrown.message}`,
        thrown,
      );
    }
  }

  async function mayHave(claim: Claim): Promise<boolean> {
    switch (await access.standing(claim)) {
      case "proved":
        return true;
      case "stale":
        return (excusedUntilMs.get(claimKey(claim)) ?? 0) > clock.monotonicMs();
      case "unproved":
        return false;
    }
  }

  return {
    async pinned(digest, puller, scope) {
      const remembered = images.get(digest);
      if (remembered !== undefined && (await mayHave(claimOf(digest, puller))))
        return remembered;
      return await flights.share(
        claimKey(claimOf(digest, puller)),
        (own) => obtain(digest, puller, own),
        scope,
      );
    },

    async cached(digest, puller) {
      const standing = await access.standing(claimOf(digest, puller));
      return standing === "unproved" ? null : await read(digest);
    },

    keep,

    async refused(digest, puller) {
      await access.disprove(claimOf(digest, puller));
    },
  };
}

/**
 * A manifest with the digest of its bytes.
 * @throws LoaderError digest-mismatch when the registry's header says another
 */
export function identified(
  manifest: DeliveredManifest,
  at: Puller["at"],
): FreshManifest {
  const digest = digestOf(manifest.bytes);
  checkClaim(manifest, digest, at);
  return { ...manifest, digest };
}

function layerOf({ digest, sizeBytes }: Descriptor): Layer {
  return { digest, sizeBytes };
}

function otherManifest(fresh: FreshManifest, expected: Digest): LoaderError {
  const { digest, sentOnTo } = fresh;
  return refuse(
    "digest-mismatch",
    sentOnTo === null
      ? `the registry delivered a manifest with digest ${digest}, expected ${expected}`
      : `${sentOnTo}, where the registry sent on to, has not the manifest with digest ${expected}`,
  );
}

function claimOf(digest: Digest, { at, identity }: Puller): Claim {
  return { place: at.location, digest, identity };
}
