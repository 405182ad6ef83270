import { WasmFunctionError } from "../errors.js";

/** Why a request, or an answer to it, cannot go on. `docs/errors.md` says what to do about each. */
export type FunctionErrorCode =
  /** The bytes are no protobuf message. */
  | "wire-malformed"
  /** The request has no Input. */
  | "input-missing"
  /** The Input, its config or a field of the XR is too deep or too large to read, or holds NaN. */
  | "input-unreadable"
  /** The module's answer, or what a skipped step returns, is larger than Crossplane can receive. */
  | "response-too-large"
  /** The module's answer is no protobuf message. */
  | "response-malformed"
  /** The server cannot start: an address it cannot listen on, or certificates it cannot use. */
  | "start-refused";

/** Thrown by everything in `src/function/`. */
export class FunctionError extends WasmFunctionError<FunctionErrorCode> {
  override readonly name = "FunctionError";
}
