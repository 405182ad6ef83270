import type { Clock, RequestScope } from "../../ports.js";
import { ANONYMOUS, claimKey, type Access, type Claim } from "../access.js";
import type { BlobOrigin, Delivery } from "../blobs.js";
import { createFlights, FAILURE_HOLDS_MS } from "../flights.js";
import { RESOLVE_BUDGET_MS } from "../limits.js";
import type { Layer } from "./images.js";
import type { Puller, Registry } from "./registry.js";

/**
 * Whether a repository really holds the layers that a manifest in it names. A manifest can name any
 * digest, that of a module in somebody else's private repository too, which may lie in the cache.
 */
export interface LayerAccess {
  /**
   * Where the bytes of a layer come from. They must be delivered until this repository has shown
   * that it holds the layer and gives it to this puller: by delivering it, or by saying so where the
   * registry has delivered it before. Questions about access are later about the manifest alone.
   * @throws LoaderError, its reason alone
   */
  originOf(
    layer: Layer,
    puller: Puller,
    scope: RequestScope,
  ): Promise<BlobOrigin>;
}

export function createLayerAccess(
  registry: Registry,
  access: Access,
  clock: Clock,
): LayerAccess {
  const flights = createFlights<undefined>(
    { budgetMs: RESOLVE_BUDGET_MS, failureHoldsMs: FAILURE_HOLDS_MS },
    clock,
  );

  async function fetch(
    layer: Layer,
    puller: Puller,
    scope: RequestScope,
  ): Promise<Delivery> {
    const { digest, sizeBytes } = layer;
    const blob = await registry.blob(digest, sizeBytes, puller, scope);
    return {
      chunks: blob.chunks,
      sentOnTo: blob.sentOnTo,
      discard: () => blob.discard(),
      async verified() {
        // In this order: what is held and not proved would be asked for.
        await access.prove(claimOf(layer, puller), !blob.usedCredential);
        await access.prove(heldBy(layer, puller), true);
      },
    };
  }

  /** One word of a registry that has the bytes is enough; of any other it would prove nothing. */
  async function ask(
    layer: Layer,
    puller: Puller,
    scope: RequestScope,
  ): Promise<void> {
    const claim = claimOf(layer, puller);
    await flights.share(
      claimKey(claim),
      async (own) => {
        if (await access.wasProved(claim)) return undefined;
        const answer = await registry.check("blobs", layer.digest, puller, own);
        // Something else may say 200 to everything, such as a page about maintenance: then the
        // bytes must be delivered.
        if (answer.claimedDigest === layer.digest)
          await access.prove(claim, false);
        return undefined;
      },
      scope,
    );
  }

  return {
    async originOf(layer, puller, scope) {
      let wasProved = false;
      const isProved = async (): Promise<boolean> => {
        // What was proved a moment ago is still: every request asks more than once.
        wasProved ||= await access.wasProved(claimOf(layer, puller));
        return wasProved;
      };
      if (
        !(await isProved()) &&
        (await access.wasProved(heldBy(layer, puller)))
      )
        await ask(layer, puller, scope);
      return {
        type: "oci",
        // With the size, which the next manifest may give rightly.
        key: `${puller.identity} ${layer.sizeBytes} ${puller.at.location}`,
        mustDeliver: async () => !(await isProved()),
        fetch: (own) => fetch(layer, puller, own),
      };
    },
  };
}

function claimOf({ digest }: Layer, { at, identity }: Puller): Claim {
  return { place: at.location, digest, identity };
}

/** That some repository of the registry delivered it, to whomever. No repository is named so. */
function heldBy({ digest }: Layer, { at }: Puller): Claim {
  return { place: `${at.registry}/`, digest, identity: ANONYMOUS };
}
