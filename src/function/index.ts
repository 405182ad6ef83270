/**
 * What Crossplane sees: the gRPC server and the path of a request through it.
 *
 * Owns: the wire contract, TLS, deadlines, what is forwarded to a module and what comes back, and
 * how every error is told to the caller.
 * Never: judges an Input (src/admission), finds a module (src/loader) or runs one (src/engine).
 * Who decides instead: those three, in the order of run-function.ts.
 */
export { materialiseEnv, requireCredentials } from "./env.js";
export { fatalFrom, type Fatal } from "./fatal.js";
export type { ListenAddress } from "./listen.js";
export { startHealthServer } from "./health-server.js";
export { createLogger, type LoggerOptions } from "./logger.js";
export { createMetrics } from "./metrics.js";
export { startMetricsServer } from "./metrics-server.js";
export { namingModule } from "./module-error.js";
export {
  readConfig,
  readInput,
  scanRequest,
  type ScannedRequest,
} from "./request.js";
export { maxResponseBytes } from "./response.js";
export {
  createRunFunction,
  type Answer,
  type RunFunction,
  type RunFunctionOptions,
} from "./run-function.js";
export {
  startServer,
  type FunctionServer,
  type ServerOptions,
} from "./server.js";
export { warmModules } from "./warm-modules.js";
