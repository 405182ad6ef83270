import { WasmFunctionError } from "../../errors.js";

/** Why nothing, or not everything, was rendered. */
export type RenderErrorCode =
  /** A function that cannot be reached, did not answer in time, or answered with a gRPC error. */
  | "function-failed"
  /** A function whose answer is no RunFunctionResponse, or asks for what render cannot give. */
  | "answer-invalid"
  /** A function that keeps changing what it requires. */
  | "pipeline-unstable"
  /** A function that returned a fatal result. */
  | "pipeline-fatal"
  /** A desired state that Crossplane could not apply. */
  | "desired-invalid";

/** Thrown by everything in `src/cli/render/`. */
export class RenderError extends WasmFunctionError<RenderErrorCode> {
  override readonly name = "RenderError";
}
