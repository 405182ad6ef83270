import type { StaticPolicySet } from "@cedar-policy/cedar-wasm";

import type { Cedar } from "./cedar.js";

/** Policies that Cedar has parsed and keeps, the ones used last. */
export interface PreparsedPolicies {
  /** Cedar's id for the policy of that hash; undefined when it is not there any more. */
  idOf(hash: string): string | undefined;
  /** Parses a policy that is known to parse. Returns Cedar's id for it. */
  keep(hash: string, policies: StaticPolicySet): string;
}

const maxPolicies = 16;

/**
 * No policy yet, 16 at most. Cedar keeps what it is given under an id for ever, so ids are used
 * again: a new policy takes the place of the one not asked for the longest.
 */
export function createPreparsedPolicies(cedar: Cedar): PreparsedPolicies {
  // In the order of their last use.
  const ids = new Map<string, string>();
  return {
    idOf(hash) {
      const id = ids.get(hash);
      if (id === undefined) return undefined;
      ids.delete(hash);
      ids.set(hash, id);
      return id;
    },
    keep(hash, policies) {
      const id = ids.get(hash) ?? freeId(ids);
      ids.delete(hash);
      const answer = cedar.preparsePolicySet(id, { staticPolicies: policies });
      if (answer.type === "failure")
        throw new Error("a policy that was vetted does not parse");
      ids.set(hash, id);
      return id;
    },
  };
}

function freeId(ids: Map<string, string>): string {
  if (ids.size < maxPolicies) return String(ids.size);
  const [[hash, id] = ["", "0"]] = ids;
  ids.delete(hash);
  return id;
}
