import { quoted } from "../../errors.js";
import type { Parsed } from "../../ports.js";
import type { IsPlainHttp } from "../registry-scheme.js";
import { basicCredential, decodeUtf8 } from "./basic-auth.js";
import type { Credential, StepCredential } from "./credential.js";
import { mostSpecific } from "./docker-config-key.js";
import {
  type AuthEntry,
  type DockerConfig,
  isNoHelper,
  parseDockerConfig,
  parseLegacyDockerConfig,
} from "./docker-config.js";

const MAX_LISTED = 5;

/**
 * What a step credential has for a repository: the entry of its `.dockerconfigjson` or `.dockercfg`
 * that is for it, or its `username` and `password`, which are for whatever its author names it for.
 * `null` when the entry has no secret, which says that the registry wants none. That nothing is for
 * the repository is an error: whoever names a credential does not mean to pull without.
 *
 * The credential helpers it names are never run: it is the tenant's, and they would run as ours.
 * Messages repeat no value.
 */
export function readStepCredential(
  step: StepCredential,
  registry: string,
  repository: string,
  isPlainHttp: IsPlainHttp,
): Parsed<Credential | null> {
  const named = `the step credential ${quoted(step.name)}`;
  const fromConfig = (
    key: string,
    config: Parsed<DockerConfig>,
  ): Parsed<Credential | null> =>
    config.kind === "error"
      ? error(`${named}: ${key}: ${config.message}`)
      : fromDockerConfig(config.value, registry, repository, named);

  const json = step.data.get(".dockerconfigjson");
  if (json !== undefined)
    return fromConfig(
      ".dockerconfigjson",
      parseDockerConfig(json, isPlainHttp),
    );
  const legacy = step.data.get(".dockercfg");
  if (legacy !== undefined)
    return fromConfig(
      ".dockercfg",
      parseLegacyDockerConfig(legacy, isPlainHttp),
    );
  return fromPair(step, named);
}

function fromDockerConfig(
  { auths, credHelpers, credsStore }: DockerConfig,
  registry: string,
  repository: string,
  named: string,
): Parsed<Credential | null> {
  const entry = mostSpecific(auths, registry, repository);
  const hasSecret = entry !== null && entry.kind !== "empty";
  const helper = mostSpecific(credHelpers, registry, repository);
  // As in Docker, a helper goes before the entry. The store is where secrets are that are not here.
  const asksHelper =
    helper === null ? credsStore !== null && !hasSecret : !isNoHelper(helper);
  if (asksHelper) {
    return error(
      `${named} names a credential helper for ${registry}, which is not run for a step: expected the secret itself in auths`,
    );
  }
  if (entry === null) {
    return error(
      `${named} has no entry for ${registry} (it has: ${listed(auths)})`,
    );
  }
  switch (entry.kind) {
    case "credential":
      return { kind: "ok", value: entry.credential };
    case "empty":
      return { kind: "ok", value: null };
    case "problem":
      return error(
        `${named}: the entry for ${entry.key.text} cannot be used: ${entry.problem}`,
      );
  }
}

function listed(auths: readonly AuthEntry[]): string {
  if (auths.length === 0) return "none";
  const names = auths.slice(0, MAX_LISTED).map(({ key }) => key.text);
  const more = auths.length - names.length;
  return `${names.join(", ")}${more === 0 ? "" : ` and ${more} more`}`;
}

function fromPair({ data }: StepCredential, named: string): Parsed<Credential> {
  const usernameBytes = data.get("username");
  const passwordBytes = data.get("password");
  if (usernameBytes === undefined || passwordBytes === undefined) {
    return error(
      `${named} has no key that is read, expected .dockerconfigjson, .dockercfg, or username and password`,
    );
  }
  const username = decodeUtf8(usernameBytes);
  const password = decodeUtf8(passwordBytes);
  if (username === null || password === null)
    return error(`${named}: username or password is not UTF-8`);
  const parsed = basicCredential(username, password);
  return parsed.kind === "ok" ? parsed : error(`${named}: ${parsed.message}`);
}

function error(message: string): { kind: "error"; message: string } {
  return { kind: "error", message };
}
