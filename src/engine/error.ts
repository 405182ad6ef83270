import { WasmFunctionError } from "../errors.js";

/**
 * Why the sandbox could not load or run a module. `docs/errors.md` says what to do about each.
 */
export type EngineErrorCode =
  /** Not a module this runtime runs: wrong shape, unknown import, precompiled, garbage. */
  | "module-invalid"
  /** The file no longer holds the bytes its digest names. */
  | "module-changed"
  /** The compiler refused the module, or ran into its CPU, memory or wall limit. */
  | "compile-failed"
  /** The caller's deadline passed while the module was still being compiled. */
  | "still-compiling"
  /** The artifact or module file could not be read or written, or the compiler not started. */
  | "load-failed"
  /** The caller's deadline passed while waiting for a run slot or run memory; nothing ran. */
  | "slot-wait"
  /** The run used up `limits.timeout`. */
  | "run-timeout"
  /** The caller's deadline passed during the run. */
  | "run-deadline"
  /** The caller went away. */
  | "run-cancelled"
  /** The run hit `limits.memory`. */
  | "run-memory"
  /** The guest trapped, or called `proc_exit`. */
  | "run-trap"
  /** The guest returned an error. */
  | "run-error"
  /** The guest's answer lies outside its memory, is too large, or is no RunFunctionResponse. */
  | "response-invalid"
  /** The sandbox itself failed; other runs are not affected. */
  | "engine-fault";

/** Thrown by everything in `src/engine/`. */
export class EngineError extends WasmFunctionError<EngineErrorCode> {
  override readonly name = "EngineError";
}
