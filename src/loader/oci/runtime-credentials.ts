import type { Parsed, RequestScope } from "../../ports.js";
import type { LoaderError } from "../error.js";
import { refuse } from "../refuse.js";
import type { CredentialHelpers } from "./credential-helpers.js";
import type { Credential } from "./credential.js";
import type { DockerConfigFile } from "./docker-config-file.js";
import { mostSpecific } from "./docker-config-key.js";
import {
  type AuthEntry,
  type DockerConfig,
  isNoHelper,
} from "./docker-config.js";

/** What the credentials of the runtime are found with. */
export interface RuntimeCredentialsOptions {
  readonly file: DockerConfigFile;
  readonly helpers: CredentialHelpers;
  readonly warnOnce: WarnOnce;
}

/** Logs a warning, the same one only once. */
export type WarnOnce = (
  fields: Readonly<Record<string, string>>,
  message: string,
) => void;

/** Finds what the runtime's own Docker config has for a repository; null = anonymous. */
export type RuntimeCredentialFor = (
  registry: string,
  repository: string,
  scope: RequestScope,
) => Promise<Credential | null>;

/** What a message calls the file, whose path is no business of a step's author. */
const CONFIG = "the runtime's Docker config (DOCKER_CONFIG)";
/** What Docker's clients call Docker Hub. */
const DOCKER_HUB_URL = "https://index.docker.io/v1/";

/**
 * Asks the one helper that Docker would ask: that of `credHelpers` for the registry, else
 * `credsStore`. When it has nothing, or there is none, the entry of `auths` counts, which Docker
 * reads in the second case only: a secret that is there must not be passed over in silence.
 *
 * What it returns throws LoaderError pull-credential-invalid, resolve-cancelled, still-resolving.
 */
export function createRuntimeCredentials({
  file,
  helpers,
  warnOnce,
}: RuntimeCredentialsOptions): RuntimeCredentialFor {
  return async (registry, repository, scope) => {
    const config = file.current();
    if (config.kind === "error") throw unusable(registry, config.message);
    if (config.value === null) return null;
    const entry = mostSpecific(config.value.auths, registry, repository);
    const helper = helperFor(config.value, registry, repository);
    if (helper === null) return ofEntry(entry, registry);

    if (helper.name.kind === "error")
      throw unusable(registry, helper.name.message);
    const name = helper.name.value;
    const answer = await helpers.ask(name, serverUrlOf(registry), scope);
    switch (answer.kind) {
      case "credential":
        return answer.credential;
      case "none":
        return ofEntry(entry, registry);
      case "missing":
        if (!helper.isStore || hasSecretInStore(entry))
          throw unusable(registry, answer.message);
        warnOnce({ helper: name }, "the Docker config's credsStore is missing");
        return ofEntry(entry, registry);
      case "failed":
        throw unusable(registry, answer.message);
    }
  };

  function ofEntry(
    entry: AuthEntry | null,
    registry: string,
  ): Credential | null {
    if (entry === null) return null;
    switch (entry.kind) {
      case "credential":
        return entry.credential;
      case "empty":
        warnOnce(
          { key: entry.key.text },
          "a Docker config entry has no secret, pulling anonymously",
        );
        return null;
      case "problem":
        throw unusable(
          registry,
          `the entry for ${entry.key.text} cannot be used: ${entry.problem}`,
        );
    }
  }
}

function helperFor(
  { credHelpers, credsStore }: DockerConfig,
  registry: string,
  repository: string,
): { readonly name: Parsed<string>; readonly isStore: boolean } | null {
  const own = mostSpecific(credHelpers, registry, repository);
  if (own !== null)
    return isNoHelper(own) ? null : { name: own.name, isStore: false };
  if (credsStore === null) return null;
  return { name: { kind: "ok", value: credsStore }, isStore: true };
}

/**
 * `docker login` leaves an entry without a secret when the secret went into the store. Without any
 * entry nothing says that the store had one, and a config that came from another machine, whose
 * store it names, must not keep public modules from being pulled.
 */
function hasSecretInStore(entry: AuthEntry | null): boolean {
  return entry?.kind === "empty";
}

function serverUrlOf(registry: string): string {
  return registry === "index.docker.io" ? DOCKER_HUB_URL : registry;
}

function unusable(registry: string, reason: string): LoaderError {
  return refuse("pull-credential-invalid", `${registry}: ${CONFIG}: ${reason}`);
}
