/**
 * Whether a step may run at all: the Input, its limits, its module source.
 *
 * Owns: what an Input may say, and the words in which it is refused.
 * Never: does I/O, looks at protobuf, or finds a module's bytes (src/loader).
 * Who decides instead: the operator sets the ceilings (src/config.ts), src/function turns a refusal
 * into what the caller sees.
 */
export { AdmissionError, type AdmissionErrorCode } from "./error.js";
export { admitInput, type AdmittedInput, type InputCeilings } from "./input.js";
export type { JsonObject, JsonValue } from "./json.js";
export { parseGoDuration, type DurationResult } from "./duration.js";
export { parseQuantity, type QuantityResult } from "./quantity.js";
