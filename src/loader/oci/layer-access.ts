import type { Clock, Digest, RequestScope } from "../../ports.js";
import type { Access } from "../access.js";
import { createFlights, FAILURE_HOLDS_MS } from "../flights.js";
import { RESOLVE_BUDGET_MS } from "./images.js";
import type { Puller, Registry } from "./registry.js";

/**
 * Whether a repository really holds the layers that a manifest in it names. A manifest can name any
 * digest, that of a module in somebody else's private repository too, which may lie in the cache.
 */
export interface LayerAccess {
  /**
   * Asks the registry once for each layer, repository and credential; later questions about access
   * are about the manifest alone.
   * @throws LoaderError, its reason alone
   */
  prove(layer: Digest, puller: Puller, scope: RequestScope): Promise<void>;
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
  return {
    async prove(digest, puller, scope) {
      const { at, identity } = puller;
      const claim = { place: at.location, digest, identity };
      if ((await access.standing(claim)) !== "unproved") return;
      await flights.share(
        `${identity} ${digest} ${at.location}`,
        async (own) => {
          const answer = await registry.check("blobs", digest, puller, own);
          await access.prove(claim, !answer.usedCredential);
          return undefined;
        },
        scope,
      );
    },
  };
}
