import type {
  CedarValueJson,
  EntityJson,
  EntityUidJson,
  StatefulAuthorizationCall,
} from "@cedar-policy/cedar-wasm";

import { hostAncestors, repositoryAncestors } from "./entities.js";
import type { Principal, Question } from "./policy.js";

/** A question in Cedar's terms, for whatever policy it is put to. */
export type CedarRequest = Omit<
  StatefulAuthorizationCall,
  "preparsedPolicySetId" | "preparsedSchemaName" | "validateRequest"
>;

/**
 * Puts a question in Cedar's terms.
 * @returns null when a location or host has too many levels, which nobody can judge
 */
export function cedarRequest(
  principal: Principal,
  question: Question,
): CedarRequest | null {
  const asked = resourceOf(question);
  if (asked === null) return null;
  const { self, attrs } =
    question.action === "requireSignature" ? nobody : requestOf(principal);
  return {
    principal: self,
    action: { type: "Action", id: question.action },
    resource: asked.resource,
    context: asked.context,
    entities: [{ uid: self, attrs, parents: [] }, ...asked.entities],
  };
}

/** Only these attributes: whatever else the caller's object has is none. */
function requestOf({ namespace, xrKind }: Principal) {
  return {
    self: { type: "Request", id: "self" },
    attrs: { namespace, xrKind, composition: "" },
  };
}

/** Whether a module must be signed does not depend on who asks for it. */
const nobody = {
  self: { type: "Module", id: "module" },
  attrs: { namespace: "", xrKind: "", composition: "" },
};

interface Asked {
  readonly resource: EntityUidJson;
  readonly context: Record<string, CedarValueJson>;
  readonly entities: EntityJson[];
}

function resourceOf(question: Question): Asked | null {
  switch (question.action) {
    case "pullModule":
    case "requireSignature": {
      const repository = repositoryEntity(question.location);
      return repository && { ...repository, context: {} };
    }
    case "spendCredential":
      return credential(question.credential, question.repository);
    case "usePrivateTmp":
      return capability("privateTmp", {});
    case "setEnv":
      return capability("env", { keys: [...question.keys] });
    case "grantEgress": {
      const { method, path, scheme, port } = question;
      const host = hostEntity(question.host);
      return host && { ...host, context: { method, path, scheme, port } };
    }
  }
}

function capability(id: string, context: Asked["context"]): Asked {
  return { resource: { type: "Capability", id }, context, entities: [] };
}

function credential(id: string, location: string | null): Asked | null {
  const resource = { type: "Credential", id };
  if (location === null) return { resource, context: {}, entities: [] };
  const repository = repositoryEntity(location);
  if (repository === null) return null;
  return {
    resource,
    context: {
      repository: { __entity: { type: "Repository", id: location } },
    },
    entities: repository.entities,
  };
}

function repositoryEntity(location: string): Omit<Asked, "context"> | null {
  return entity("Repository", location, repositoryAncestors(location), {});
}

function hostEntity(host: string): Omit<Asked, "context"> | null {
  return entity("HostPattern", host, hostAncestors(host), { host });
}

function entity(
  type: string,
  id: string,
  ancestors: readonly string[] | null,
  attrs: EntityJson["attrs"],
): Omit<Asked, "context"> | null {
  if (ancestors === null) return null;
  const uid = { type, id };
  const parents = ancestors.map((ancestor) => ({ type, id: ancestor }));
  return { resource: uid, entities: [{ uid, attrs, parents }] };
}
