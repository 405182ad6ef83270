/**
 * The TypeScript face of the sandbox: compile, artifact cache, leases, slots, runs.
 *
 * Owns: what a compiled module is, when it is dropped, who may run and for how long.
 * Never: decides whether a module may run (src/admission), where its bytes come from (src/loader),
 * or what a caller is told (src/function).
 */
export { EngineError, type EngineErrorCode } from "./error.js";
export type { Engine, EngineOptions, ModuleLease } from "./engine.js";
export type { RunRequest } from "./run.js";
export { createEngine } from "./engine.js";
