import type { EntityUidJson, PolicyJson } from "@cedar-policy/cedar-wasm";

import { quoted } from "../../errors.js";
import { objectsIn } from "./rule-parts.js";

const DOCKER_HUB_NAMES = new Set([
  "docker.io",
  "registry-1.docker.io",
  "registry.hub.docker.com",
]);

/**
 * What is wrong with an entity that a rule names, or null. Cedar compares ids letter by letter, so a
 * rule that names a location in any other way than the canonical one never applies: a `forbid` that
 * forbids nothing, a signature that nobody demands.
 */
export function literalProblem(policy: PolicyJson): string | null {
  for (const { type, id } of entitiesIn(policy)) {
    const problem = problemOf(type, id);
    if (problem !== null) return `${type}::${quoted(id)}: ${problem}`;
  }
  return null;
}

interface Entity {
  readonly type: string;
  readonly id: string;
}

function problemOf(type: string, id: string): string | null {
  switch (type) {
    case "Repository":
      return repositoryProblem(id);
    case "HostPattern":
      return hostProblem(id);
    case "Request":
      return id === "self" ? null : 'expected Request::"self", the only one';
    case "Module":
      return id === "module" ? null : 'expected Module::"module", the only one';
    default:
      return null;
  }
}

function repositoryProblem(id: string): string | null {
  if (id.includes("*"))
    return 'a location has no "*": name the prefix it is in, without it';
  if (/[?#@\s]/u.test(id))
    return "expected registry/repository or scheme://host/path, without tag, digest or query";
  const scheme = /^(?<scheme>[^/]*):\/\//u.exec(id)?.groups?.["scheme"];
  const rest = scheme === undefined ? id : id.slice(scheme.length + 3);
  const [host = ""] = rest.split("/", 1);
  if (scheme !== undefined && scheme !== "https" && scheme !== "http")
    return "expected https:// or http://, in lower case";
  const defaultPort = scheme === "http" ? ":80" : ":443";
  if (host.endsWith(defaultPort))
    return `the default port is left out: ${quoted(host.slice(0, -defaultPort.length))}`;
  const name = nameProblem(host);
  if (name !== null) return name;
  if (scheme !== undefined) return null;
  if (!/[.:]/u.test(host) && host !== "localhost")
    return 'expected a registry first, such as "index.docker.io/library"';
  if (DOCKER_HUB_NAMES.has(host))
    return 'Docker Hub is "index.docker.io", and its own images are under "index.docker.io/library"';
  return rest === rest.toLowerCase() ? null : "a repository is in lower case";
}

function hostProblem(id: string): string | null {
  const name = id.startsWith("*.") ? id.slice(2) : id;
  if (name.includes("*"))
    return 'expected a host, or "*." and a domain, with no other "*"';
  if (/[/\s]/u.test(name)) return "expected a host without scheme and path";
  if (!name.startsWith("[") && /:\d+$/u.test(name) && !/:.*:/u.test(name))
    return "the port is context.port, not part of the host";
  return nameProblem(name);
}

function nameProblem(host: string): string | null {
  if (host === "" || host.startsWith(".")) return "expected a host";
  if (host !== host.toLowerCase()) return "a host is in lower case";
  if (/\.(?::\d+)?$/u.test(host)) return "a host has no dot at its end";
  return null;
}

/** Every entity in a rule's head and conditions, actions left out. */
function entitiesIn({ principal, resource, conditions }: PolicyJson): Entity[] {
  const entities = [...objectsIn([principal, resource, conditions])]
    .map(entityOf)
    .filter((entity) => entity !== null);
  return entities.reverse();
}

/** As Cedar writes one: `{type, id}`, in conditions wrapped in `__entity`. */
function entityOf(value: object): Entity | null {
  const { type, id } = value as Partial<Extract<EntityUidJson, Entity>>;
  return typeof type === "string" && typeof id === "string"
    ? { type, id }
    : null;
}
