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
  /** A limit above the ceiling the operator set. */
  | "limit-exceeded"
  /** The operator's flags do not allow this kind of source. */
  | "source-refused"
  /** The XR has not set the field that `module.from` names. */
  | "from-unset"
  /** What is in that field is no source of the Input's `module.type`. */
  | "from-invalid"
  /** The XR chooses an OCI or HTTP source, and the Input has no compositionPolicy to fence it. */
  | "policy-missing"
  /** The compositionPolicy does not compile. */
  | "policy-invalid"
  /** The operator policy cannot be read or does not compile; the program does not start. */
  | "operator-policy-invalid"
  /** The policy engine cannot be started, came to no decision, or the request ended while it waited. */
  | "policy-unavailable"
  /** The compositionPolicy does not permit the location the XR chose. */
  | "pull-refused"
  /** The compositionPolicy does not permit the credential the XR chose to pull with. */
  | "spend-refused"
  /** The operator policy requires a signature, and this version cannot verify one. */
  | "signature-unverifiable"
  /** The module's manifest cannot be read. */
  | "manifest-invalid"
  /** The manifest declares another ABI than the module has. */
  | "abi-mismatch"
  /** The module needs a newer runtime. */
  | "runtime-too-old"
  /** The step's config does not match the manifest's schema. */
  | "config-invalid"
  /** The module requires something, and the runtime has no --sandbox-policy-file. */
  | "operator-policy-missing"
  /** The compositionPolicy does not permit what the module requires. */
  | "composition-refused"
  /** The operator policy does not permit what the module requires. */
  | "operator-refused"
  /** Every layer permits it, and this version cannot give it yet. */
  | "capability-not-supported"
  /** The module requires a credential that the step does not have, or a key that it does not have. */
  | "credential-missing"
  /** The module requires the credential it is pulled with. */
  | "credential-refused"
  /** A credential's key cannot be a variable: no text, or a NUL in it. */
  | "env-invalid";

/** Thrown by everything in `src/admission/`. */
export class AdmissionError extends WasmFunctionError<AdmissionErrorCode> {
  override readonly name = "AdmissionError";
}
