import type { Challenge } from "./challenge.js";
import type { Credential } from "./credential.js";
import { partsDigest } from "./parts-digest.js";
import { identityOf } from "./identity.js";

/** What a request to a registry is for, and who asks. */
export interface Access {
  /** As in an OciReference. */
  readonly registry: string;
  readonly repository: string;
  readonly actions: "pull" | "pull,push";
  /** Belongs to this registry; `null` = anonymous. */
  readonly credential: Credential | null;
}

/** Text that is the same for the same access only, and from which no secret can be read. */
export function keyOfAccess(access: Access): string {
  const { actions, credential, registry, repository } = access;
  return partsDigest([registry, repository, actions, identityOf(credential)]);
}

/** The scope to ask a token server for: what the registry says, and never less than the access. */
export function scopeOf(access: Access, { params }: Challenge): string {
  const { actions, repository } = access;
  const own = `repository:${repository}`;
  const asked = params.get("scope") ?? "";
  // A HEAD before a push would get a token that is good for reading only.
  return asked === "" || asked === `${own}:pull` ? `${own}:${actions}` : asked;
}
