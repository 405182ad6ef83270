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
import { type Loader, LoaderError } from "../../loader/index.js";
import type {
  Logger,
  ModuleFile,
  ModuleSource,
  RequestScope,
} from "../../ports.js";
import type { Findings } from "./finding.js";

/** What modules are resolved with. */
export interface ResolveParts {
  readonly admission: Admission;
  readonly loader: Loader;
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
  readonly xr: CompositeResource;
  readonly request: ScannedRequest;
  /** Names of the credentials that the request carries; null = nobody knows. */
  readonly credentials: ReadonlySet<string> | null;
}

/**
 * Reads a module and its manifest and goes on where admission ends, in the order of the server: does
 * the module suit the runtime and the step's config, may it have what it asks for, does it compile.
 * A source that cannot be read yet is a warning.
 * @throws what the server would refuse the step with
 */
export async function resolveModule(
  step: ChosenStep,
  findings: Findings,
  parts: ResolveParts,
): Promise<void> {
  const { source } = step;
  let module: ModuleFile;
  try {
    module = await parts.loader.resolve(source, parts.scope);
  } catch (thrown) {
    if (!isNotSupported(thrown)) throw thrown;
    findings.warnings.push({
      code: "not-resolved",
      message: `not resolved: module type ${source.type} is not supported yet by --resolve`,
    });
    return;
  }
  if (findings.module !== null)
    findings.module = { ...findings.module, digest: module.digest };
  try {
    await judgeModule(module, step, findings, parts);
  } catch (thrown) {
    throw namingModule(thrown, module.description);
  }
}

async function judgeModule(
  module: ModuleFile,
  step: ChosenStep,
  findings: Findings,
  parts: ResolveParts,
): Promise<void> {
  const { admission, loader, scope, logger } = parts;
  const { source, request, compositionPolicy, xr, credentials } = step;
  const { description } = module;
  const delivered = await loader.manifest(source, scope);
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

function isNotSupported(thrown: unknown): boolean {
  return (
    thrown instanceof LoaderError && thrown.code === "source-not-supported"
  );
}
