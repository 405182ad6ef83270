import { LRUCache } from "lru-cache";
import type { Clock, Logger, Parsed, RequestScope } from "../../ports.js";
import { refuse } from "../refuse.js";
import { createIsPlainHttp, type SchemeOptions } from "../registry-scheme.js";
import { createCredentialHelpers } from "./credential-helpers.js";
import type { Credential, StepCredential } from "./credential.js";
import { createDockerConfigFile } from "./docker-config-file.js";
import { partsDigest } from "./parts-digest.js";
import {
  createRuntimeCredentials,
  type WarnOnce,
} from "./runtime-credentials.js";
import { readStepCredential } from "./step-credential.js";

/** Finds the credentials that modules are pulled with. */
export interface Credentials {
  /**
   * The credential for a repository, both as in a parsed reference; null = anonymous. With a step
   * credential it is that one's and no other, without it is what the runtime's Docker config has.
   * @throws LoaderError pull-credential-invalid, resolve-cancelled, still-resolving
   */
  credentialFor(
    registry: string,
    repository: string,
    step: StepCredential | null,
    scope: RequestScope,
  ): Promise<Credential | null>;
}

/** Where they are looked for, and how registries are spoken to, by which default ports go. */
export interface CredentialsOptions extends Pick<
  SchemeOptions,
  "insecureHosts" | "registryCas"
> {
  /** As `dockerConfigFileOf` gives it; null = none. */
  readonly dockerConfigFile: string | null;
  /** The environment of credential helpers, which are looked for in its PATH. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly logger: Logger;
}

const MAX_STEP_CREDENTIALS = 500;
const MAX_WARNINGS = 1_000;

/** Remembers what it has read; it holds nothing that needs closing. */
export function createCredentials(options: CredentialsOptions): Credentials {
  const { clock, dockerConfigFile, env, logger } = options;
  const isPlainHttp = createIsPlainHttp(options);
  const warnOnce = createWarnOnce(logger);
  const ofRuntime = createRuntimeCredentials({
    file: createDockerConfigFile(dockerConfigFile, isPlainHttp, clock),
    helpers: createCredentialHelpers(env, clock),
    warnOnce,
  });
  const steps = new LRUCache<string, Parsed<Credential | null>>({
    max: MAX_STEP_CREDENTIALS,
  });

  function ofStep(
    step: StepCredential,
    registry: string,
    repository: string,
  ): Credential | null {
    const key = keyOf(step, registry, repository);
    const parsed = steps.get(key) ?? read(key, step, registry, repository);
    if (parsed.kind === "error")
      throw refuse("pull-credential-invalid", parsed.message);
    if (parsed.value === null) {
      warnOnce(
        { registry, credential: step.name },
        "a step credential has no secret for its registry, pulling anonymously",
      );
    }
    return parsed.value;
  }

  function read(
    key: string,
    step: StepCredential,
    registry: string,
    repository: string,
  ): Parsed<Credential | null> {
    const parsed = readStepCredential(step, registry, repository, isPlainHttp);
    steps.set(key, parsed);
    return parsed;
  }

  return {
    async credentialFor(registry, repository, step, scope) {
      return step === null
        ? await ofRuntime(registry, repository, scope)
        : ofStep(step, registry, repository);
    },
  };
}

/** Says a thing once, not on every pull. */
function createWarnOnce(logger: Logger): WarnOnce {
  const said = new LRUCache<string, true>({ max: MAX_WARNINGS });
  return (fields, message) => {
    const key = JSON.stringify([message, fields]);
    if (said.has(key)) return;
    said.set(key, true);
    logger.warn(fields, message);
  };
}

/** Of everything that could make a difference, so that nobody is given what another one has. */
function keyOf(
  step: StepCredential,
  registry: string,
  repository: string,
): string {
  const data = [...step.data].flat();
  return partsDigest([step.name, registry, repository, ...data]);
}
