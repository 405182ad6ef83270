import {
  type Admission,
  checkAbi,
  checkSuitability,
  type CompiledPolicy,
  type CompositeResource,
  NO_GRANTS,
} from "../../admission/index.js";
import type { Engine } from "../../engine/index.js";
import {
  materialiseEnv,
  namingModule,
  readConfig,
  requireCredentials,
  type ScannedRequest,
} from "../../function/index.js";
import { quoted } from "../../errors.js";
import {
  type Loader,
  LoaderError,
  type ResolvedModule,
} from "../../loader/index.js";
import type {
  Digest,
  Logger,
  ModuleSource,
  RedirectFence,
  RequestScope,
} from "../../ports.js";
import type { Findings } from "./finding.js";

/** What modules are resolved with. */
export interface ResolveParts {
  readonly admission: Admission;
  /** Opens the caches when it is first asked for. */
  readonly loader: () => Promise<Loader>;
  /** Starts the sandbox when it is first asked for. */
  readonly engine: () => Promise<Engine>;
  /** Called before what may take minutes. */
  readonly onLoad: (moduleDescription: string) => void;
  readonly scope: RequestScope;
  readonly logger: Logger;
}

/** A step whose module is known by name. */
export interface ChosenStep {
  readonly source: ModuleSource;
  readonly compositionPolicy: CompiledPolicy | null;
  /** As chosen with the source. */
  readonly redirectFence: RedirectFence | null;
  readonly xr: CompositeResource;
  readonly request: ScannedRequest;
  /** Names of the credentials that the request carries; null = nobody knows. */
  readonly credentials: ReadonlySet<string> | null;
}

/**
 * Reads a module and its manifest and goes on where admission ends, in the order of the server: does
 * the module suit the runtime and the step's config, may it have what it asks for, does it compile.
 * It is pulled with this machine's Docker config: what is in a Secret is known in the cluster only.
 * @throws what the server would refuse the step with
 */
export async function resolveModule(
  step: ChosenStep,
  findings: Findings,
  parts: ResolveParts,
): Promise<void> {
  const { credentials, redirectFence, source } = step;
  const loader = await parts.loader();
  let found: ResolvedModule;
  try {
    found = await loader.resolve(
      withoutCredentials(source, credentials),
      { credentialOf: () => null, redirectFence },
      parts.scope,
    );
  } catch (thrown) {
    const reason = ownCredentialFailure(source, thrown);
    if (reason === null) throw thrown;
    findings.warnings.push({ code: "not-resolved", message: reason });
    return;
  }
  const { module, warning } = found;
  if (warning !== null)
    findings.warnings.push({ code: "tag-not-answered", message: warning.text });
  if (findings.module !== null)
    findings.module = { ...findings.module, digest: digestOf(source, found) };
  try {
    await judgeModule(found, step, findings, parts);
  } catch (thrown) {
    throw namingModule(thrown, module.description);
  }
}

/** One that the step does not declare stays, so that it is refused as the server would. */
function withoutCredentials(
  source: ModuleSource,
  declared: ReadonlySet<string> | null,
): ModuleSource {
  if (source.type !== "OCI" || source.credentials === null) return source;
  const isMissing = declared !== null && !declared.has(source.credentials);
  return isMissing ? source : { ...source, credentials: null };
}

/** Why a module that needs a Secret of the cluster cannot be had here; null = it is no such thing. */
function ownCredentialFailure(
  source: ModuleSource,
  thrown: unknown,
): string | null {
  if (source.type !== "OCI" || source.credentials === null) return null;
  const isAboutCredentials =
    thrown instanceof LoaderError &&
    (thrown.code === "registry-auth-failed" ||
      thrown.code === "pull-credential-invalid");
  return isAboutCredentials
    ? `not resolved: the step credential ${quoted(source.credentials)} is in the cluster, and with this machine's Docker config: ${thrown.message}`
    : null;
}

/** What is pinned in Compositions is the digest of the OCI manifest, not that of the module in it. */
function digestOf(source: ModuleSource, found: ResolvedModule): Digest {
  return source.type === "OCI"
    ? (found.manifestDigest ?? found.module.digest)
    : found.module.digest;
}

async function judgeModule(
  found: ResolvedModule,
  step: ChosenStep,
  findings: Findings,
  parts: ResolveParts,
): Promise<void> {
  const { admission, scope, logger } = parts;
  const { module } = found;
  const { source, request, compositionPolicy, xr, credentials } = step;
  const { description } = module;
  const delivered = await found.readManifest(scope);
  const manifest = delivered && admission.readManifest(delivered, description);
  let grants = NO_GRANTS;
  if (manifest !== null) {
    checkSuitability(manifest, description, () => readConfig(request));
    if (manifest.requires.egress.length > 0) {
      findings.warnings.push({
        code: "egress-unsigned",
        message:
          "the module requires egress (requires.egress.http), and nothing checks who signed it",
      });
    }
    grants = await admission.grant(
      { source, manifest, module: description, compositionPolicy, xr },
      logger,
    );
  }
  if (credentials !== null) {
    requireCredentials(request, grants.credentials, description);
    // Which keys the Secret has is known in the cluster only.
    materialiseEnv(
      request,
      grants.env,
      description,
      ({ credential }) => !credentials.has(credential),
    );
  }
  findings.grants = {
    credentials: [...grants.carried],
    env: grants.env.map(({ name }) => name),
  };
  parts.onLoad(description);
  const engine = await parts.engine();
  const lease = await engine.load(module, scope);
  try {
    if (manifest !== null) checkAbi(manifest, description, lease.abi);
  } finally {
    lease.release();
  }
}
