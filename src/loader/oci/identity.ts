import { ANONYMOUS } from "../access.js";
import type { Credential } from "./credential.js";
import { partsDigest } from "./parts-digest.js";

/**
 * Stands for a credential as the key of a map in memory: `anonymous`, or the hex of a sha256, which
 * is the same for the same credential only. Not for storing: a weak password can be guessed from it.
 */
export function identityOf(credential: Credential | null): string {
  if (credential === null) return ANONYMOUS;
  const known = identities.get(credential);
  if (known !== undefined) return known;
  const identity = partsDigest(partsOf(credential));
  identities.set(credential, identity);
  return identity;
}

/** Every request asks for that of a credential that was read before. */
const identities = new WeakMap<Credential, string>();

function partsOf(credential: Credential): string[] {
  switch (credential.kind) {
    case "basic":
      return [credential.kind, credential.username, credential.password];
    case "identity-token":
    case "registry-token":
      return [credential.kind, credential.token];
  }
}
