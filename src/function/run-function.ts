import {
  checkAbi,
  checkSuitability,
  NO_GRANTS,
  type Admission,
  type ChosenSource,
  type CompositeResource,
  type Grants,
  type ModuleManifest,
} from "../admission/index.js";
import type { Engine } from "../engine/index.js";
import type { Loader, PullContext, ResolvedModule } from "../loader/index.js";
import { WasmFunctionError } from "../errors.js";
import type {
  Clock,
  LogFields,
  Logger,
  Metrics,
  RequestScope,
} from "../ports.js";
import { readComposite } from "./composite.js";
import { readCredentials, withholdCredentials } from "./credentials.js";
import { materialiseEnv, requireCredentials } from "./env.js";
import { fatalFrom, type Fatal } from "./fatal.js";
import { createInputCache, type AdmittedStep } from "./input-cache.js";
import { namingModule } from "./module-error.js";
import { readConfig, scanRequest, type ScannedRequest } from "./request.js";
import { fatalResponse, finishResponse, skippedResponse } from "./response.js";

/** What the pipeline works with. */
export interface RunFunctionOptions {
  readonly admission: Admission;
  readonly loader: Loader;
  readonly engine: Engine;
  /** TTL of what the host itself answers; transient failures have none. */
  readonly ttlNanos: bigint;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** How a call ends. */
export type Answer =
  /** RunFunctionResponse bytes. */
  | { readonly kind: "response"; readonly bytes: Uint8Array }
  /** The request is no protobuf message. */
  | { readonly kind: "malformed"; readonly message: string }
  /** The caller has gone; nobody reads an answer. */
  | { readonly kind: "cancelled" };

/** Answers RunFunctionRequest bytes. Never rejects. */
export type RunFunction = (
  bytes: Uint8Array,
  scope: RequestScope,
) => Promise<Answer>;

/** The path of a request, from its bytes to its answer's. */
export function createRunFunction(options: RunFunctionOptions): RunFunction {
  const { admission, clock, logger, metrics } = options;
  const readStep = createInputCache((input) => admission.readInput(input));
  return async (bytes, scope) => {
    const startedAtMs = clock.monotonicMs();
    let request: ScannedRequest | undefined;
    try {
      request = scanRequest(bytes);
      const step = readStep(request);
      const { outcome, bytes: answer } = await answerStep(
        {
          step,
          request,
          xr: readComposite(request),
          scope,
          logger: logger.child({ tag: request.logTag }),
        },
        options,
      );
      metrics.requestEnded(outcome);
      return { kind: "response", bytes: answer };
    } catch (thrown) {
      const fatal = fatalFrom(thrown);
      metrics.requestEnded(fatal.outcome);
      if (scope.cancelled) return { kind: "cancelled" };
      const elapsedMs = Math.round(clock.monotonicMs() - startedAtMs);
      logFatal(fatal, thrown, { tag: request?.logTag, elapsedMs }, logger);
      if (request === undefined || fatal.code === "wire-malformed") {
        return { kind: "malformed", message: fatal.message };
      }
      const ttlNanos = fatal.permanence === "permanent" ? options.ttlNanos : 0n;
      const answer = fatalResponse(request, fatal.message, ttlNanos);
      return { kind: "response", bytes: answer };
    }
  };
}

/** One request of an admitted step. */
interface StepCall {
  readonly step: AdmittedStep;
  readonly request: ScannedRequest;
  readonly xr: CompositeResource;
  readonly scope: RequestScope;
  readonly logger: Logger;
}

type ChosenModule = Extract<ChosenSource, { kind: "module" }>;

/** An answer, and how it is counted. */
interface StepAnswer {
  readonly outcome: "ok" | "skipped";
  readonly bytes: Uint8Array;
}

async function answerStep(
  call: StepCall,
  options: RunFunctionOptions,
): Promise<StepAnswer> {
  const { admission, ttlNanos } = options;
  const { step, request, xr, logger } = call;
  const { apiVersion, deprecated } = step.input;
  if (deprecated) logger.info({ apiVersion }, "deprecated Input apiVersion");
  const chosen = await admission.chooseSource(
    step.input,
    xr,
    logger,
    call.scope,
  );
  if (chosen.kind === "empty") {
    const bytes = skippedResponse(request, ttlNanos);
    logger.info({ outcome: "skipped" }, "the step has no module to run");
    return { outcome: "skipped", bytes };
  }
  return { outcome: "ok", bytes: await runModule(chosen, call, options) };
}

async function runModule(
  chosen: ChosenModule,
  call: StepCall,
  options: RunFunctionOptions,
): Promise<Uint8Array> {
  const { loader, engine, ttlNanos } = options;
  const { step, request, scope } = call;
  const found = await loader.resolve(
    chosen.source,
    pullContext(chosen, call),
    scope,
  );
  const { module } = found;
  const { description } = module;
  const logger = call.logger.child({ digest: module.digest });
  try {
    const manifest = await readManifest(found, scope, options);
    const grants =
      manifest === null
        ? NO_GRANTS
        : await grantModule(manifest, description, chosen, call, options);
    const env = materialiseEnv(request, grants.env, description);
    const lease = await engine.load(module, scope);
    try {
      if (manifest !== null) checkAbi(manifest, description, lease.abi);
      const answer = await engine.run(
        lease,
        {
          bytes: withholdCredentials(request, grants.carried),
          limits: step.input.limits,
          env,
          stepKey: step.key,
          logger,
        },
        scope,
      );
      const finished = finishResponse(
        answer,
        { request, ttlNanos },
        description,
        found.warning?.text ?? null,
      );
      found.warning?.said();
      return finished;
    } finally {
      lease.release();
    }
  } catch (thrown) {
    throw namingModule(thrown, description);
  }
}

/** What the request has for pulling its module, and where it may be led to. */
function pullContext(
  { redirectFence }: ChosenModule,
  { request }: StepCall,
): PullContext {
  return {
    credentialOf: (name) => readCredentials(request, [name]).get(name) ?? null,
    redirectFence,
  };
}

async function readManifest(
  found: ResolvedModule,
  scope: RequestScope,
  { admission }: RunFunctionOptions,
): Promise<ModuleManifest | null> {
  const delivered = await found.readManifest(scope);
  return (
    delivered && admission.readManifest(delivered, found.module.description)
  );
}

/** What the module may have, once it suits the runtime and the step suits the module. */
async function grantModule(
  manifest: ModuleManifest,
  description: string,
  { source, policy }: ChosenModule,
  { step, request, xr, logger, scope }: StepCall,
  { admission }: RunFunctionOptions,
): Promise<Grants> {
  if (!step.suits.has(manifest)) {
    checkSuitability(manifest, description, () => readConfig(request));
    step.suits.add(manifest);
  }
  const grants = await admission.grant(
    { source, manifest, module: description, compositionPolicy: policy, xr },
    logger,
    scope,
  );
  requireCredentials(request, grants.credentials, description);
  return grants;
}

function logFatal(
  fatal: Fatal,
  thrown: unknown,
  fields: LogFields,
  logger: Logger,
): void {
  const { code, message } = fatal;
  if (code === "internal") {
    logger.error({ ...fields, code, err: thrown }, "internal error");
    return;
  }
  const detail =
    thrown instanceof WasmFunctionError ? thrown.detail : undefined;
  logger.warn({ ...fields, code, reason: message, detail }, "request refused");
}
