import type {
  AdmittedInput,
  InputCeilings,
  JsonObject,
} from "../admission/index.js";
import { EngineError, type Engine } from "../engine/index.js";
import type { Loader } from "../loader/index.js";
import { WasmFunctionError } from "../errors.js";
import type { Clock, LogFields, Logger, RequestScope } from "../ports.js";
import { fatalFrom, type Fatal } from "./fatal.js";
import { createInputCache, type AdmittedStep } from "./input-cache.js";
import { scanRequest, withoutCredentials } from "./request.js";
import type { ScannedRequest } from "./request.js";
import { fatalResponse, finishResponse } from "./response.js";

/** What the pipeline works with. */
export interface RunFunctionOptions {
  /** Throws AdmissionError. */
  readonly admit: (input: JsonObject, ceilings: InputCeilings) => AdmittedInput;
  readonly loader: Loader;
  readonly engine: Engine;
  readonly ceilings: InputCeilings;
  /** TTL of what the host itself answers; transient failures have none. */
  readonly ttlNanos: bigint;
  readonly clock: Clock;
  readonly logger: Logger;
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
  const { admit, ceilings } = options;
  const readStep = createInputCache((input) => admit(input, ceilings));
  return async (bytes, scope) => {
    const startedAtMs = options.clock.monotonicMs();
    let request: ScannedRequest | undefined;
    try {
      request = scanRequest(bytes);
      const step = readStep(request);
      const answer = await runStep(step, request, scope, options);
      return { kind: "response", bytes: answer };
    } catch (thrown) {
      if (scope.cancelled) return { kind: "cancelled" };
      const elapsedMs = options.clock.monotonicMs() - startedAtMs;
      const fatal = fatalFrom(thrown);
      logFatal(fatal, thrown, { tag: request?.tag, elapsedMs }, options.logger);
      if (request === undefined || fatal.code === "wire-malformed") {
        return { kind: "malformed", message: fatal.message };
      }
      const ttlNanos = fatal.permanence === "permanent" ? options.ttlNanos : 0n;
      const answer = fatalResponse(request, fatal.message, ttlNanos);
      return { kind: "response", bytes: answer };
    }
  };
}

async function runStep(
  step: AdmittedStep,
  request: ScannedRequest,
  scope: RequestScope,
  options: RunFunctionOptions,
): Promise<Uint8Array> {
  const { loader, engine, ttlNanos } = options;
  const { tag } = request;
  const { apiVersion, deprecated, limits, source } = step.input;
  const module = await loader.resolve(source, scope);
  const logger = options.logger.child({ tag, digest: module.digest });
  if (deprecated) logger.info({ apiVersion }, "deprecated Input apiVersion");
  try {
    const lease = await engine.load(module, scope);
    try {
      const bytes = withoutCredentials(request);
      const run = { bytes, limits, stepKey: step.key, logger };
      const answer = await engine.run(lease, run, scope);
      return finishResponse(answer, { tag, ttlNanos }, module.description);
    } finally {
      lease.release();
    }
  } catch (thrown) {
    throw named(thrown, module.description);
  }
}

/** An engine's error whose message says which module it is about. */
function named(thrown: unknown, moduleDescription: string): unknown {
  if (!(thrown instanceof EngineError)) return thrown;
  if (thrown.message.includes(moduleDescription)) return thrown;
  const { code, detail } = thrown;
  const message = `module ${moduleDescription}: ${thrown.message}`;
  return new EngineError(code, message, {
    cause: thrown,
    ...(detail === undefined ? {} : { detail }),
  });
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
