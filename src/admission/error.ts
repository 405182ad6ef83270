import { WasmFunctionError } from "../errors.js";

/**
 * Why an Input was refused. `docs/errors.md` says what to do about each.
 */
export type AdmissionErrorCode =
  /** Not an Input of this function: another apiVersion or kind. */
  | "input-version"
  /** A field is missing, of the wrong type, or its value does not parse. */
  | "input-invalid"
  /** A field this function does not know. */
  | "field-unknown"
  /** A field that earlier versions had; the message names its replacement. */
  | "field-removed"
  /** A field of the Input that this version cannot honour yet. */
  | "field-not-supported"
  /** A limit above the ceiling the operator set. */
  | "limit-exceeded"
  /** The operator's flags do not allow this kind of source. */
  | "source-refused";

/** Thrown by everything in `src/admission/`. */
export class AdmissionError extends WasmFunctionError<AdmissionErrorCode> {
  override readonly name = "AdmissionError";
}
