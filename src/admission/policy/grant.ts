import { quoted } from "../../errors.js";
import { AdmissionError } from "../error.js";
import type {
  EnvBinding,
  ModuleManifest,
  Requirements,
} from "../manifest/manifest.js";
import type { Layer } from "./layer.js";
import { requirementsOf, type Requirement } from "./requirements.js";

/** The policy layers a request is held to; null = there is no such policy. */
export interface Layers {
  /** Narrows only the actions it scopes. */
  readonly composition: Layer | null;
  /** Default deny, and without it nothing is granted. */
  readonly operator: Layer | null;
}

/** What a module is given beyond the default sandbox. */
export interface Grants {
  /** Variables to set, each from one key of a step credential. */
  readonly env: readonly EnvBinding[];
  /** `requires.credentials`, in the manifest's order. */
  readonly credentials: readonly string[];
  /** Every step credential the module's request carries. */
  readonly carried: ReadonlySet<string>;
}

/** For a module that requires nothing. */
export const NO_GRANTS: Grants = Object.freeze({
  env: [],
  credentials: [],
  carried: new Set<string>(),
});

/**
 * Decides what a manifest requires: granted is what it requests and both layers permit.
 * The compositionPolicy is asked first and whole, because its author is nearest to the fix.
 * @param module what messages call it, for example `OCI ghcr.io/example/greeter@sha256:…`
 * @param pullCredential the credential the module is pulled with, which it must never see
 * @throws AdmissionError credential-refused, composition-refused, operator-policy-missing,
 *   operator-refused, capability-not-supported
 */
export async function grantRequirements(
  manifest: ModuleManifest,
  module: string,
  pullCredential: string | null,
  layers: Layers,
): Promise<Grants> {
  const { requires } = manifest;
  const requirements = requirementsOf(requires);
  if (requirements.length === 0) return NO_GRANTS;
  refusePullCredential(requires, module, pullCredential);
  await mustPermitAll(requirements, module, layers);
  refuseUnbuilt(requires, module);
  return {
    env: requires.env,
    credentials: requires.credentials,
    carried: new Set([
      ...requires.env.map(({ credential }) => credential),
      ...requires.credentials,
    ]),
  };
}

async function mustPermitAll(
  requirements: readonly Requirement[],
  module: string,
  { composition, operator }: Layers,
): Promise<void> {
  for (const { question, sentence, refused } of requirements) {
    if (composition?.scopes(question.action) !== true) continue;
    if (await composition.permits(question)) continue;
    throw new AdmissionError(
      "composition-refused",
      `module ${module} requires ${sentence}, which the compositionPolicy does not permit${refused}`,
    );
  }
  for (const { question, sentence, refused, withoutPolicy } of requirements) {
    if (operator === null) {
      throw new AdmissionError(
        "operator-policy-missing",
        `module ${module} requires ${withoutPolicy.sentence}, but the runtime has no --sandbox-policy-file, which is required to grant ${withoutPolicy.purpose}`,
      );
    }
    if (await operator.permits(question)) continue;
    throw new AdmissionError(
      "operator-refused",
      `module ${module} requires ${sentence}, which the operator policy (--sandbox-policy-file) does not permit${refused}`,
    );
  }
}

function refusePullCredential(
  requires: Requirements,
  module: string,
  pullCredential: string | null,
): void {
  const refuse = (what: string) =>
    new AdmissionError(
      "credential-refused",
      `module ${module} requires ${what}, with which the module is pulled: a module never sees its pull credential`,
    );
  for (const { name, credential } of requires.env) {
    if (credential === pullCredential)
      throw refuse(`env ${name} from credential ${quoted(credential)}`);
  }
  for (const [at, credential] of requires.credentials.entries()) {
    if (credential === pullCredential)
      throw refuse(
        `credential ${quoted(credential)} (requires.credentials[${at}])`,
      );
  }
}

/** What is permitted and cannot be given yet must not run as if it had not been asked for. */
function refuseUnbuilt(requires: Requirements, module: string): void {
  const refuse = (what: string) =>
    new AdmissionError(
      "capability-not-supported",
      `module ${module} requires ${what}, which is permitted, but this runtime does not support it yet`,
    );
  if (requires.privateTmp)
    throw refuse("a private /tmp (requires.filesystem.privateTmp)");
  if (requires.egress.length > 0) throw refuse("egress (requires.egress.http)");
}
