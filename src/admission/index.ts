/**
 * Whether a step may run at all, and with what: its Input, the module source it or the XR names, the
 * compositionPolicy, the operator policy, and what a module's manifest requires.
 *
 * Owns: what an Input, a policy and a manifest may say, and the words in which each is refused.
 * Never: looks at protobuf, finds a module's bytes (src/loader), or reads a file but the operator
 * policy's.
 * Who decides instead: the operator sets the ceilings (src/config.ts), src/function turns a refusal
 * into what the caller sees.
 */
export {
  createAdmission,
  type Admission,
  type AdmissionOptions,
  type ChosenSource,
} from "./admission.js";
export type { CompiledPolicy, PolicyEngine } from "./cedar/policy.js";
export { createPolicyEngine } from "./cedar/policy-engine.js";
export {
  compositeFromJson,
  textOf,
  type CompositeResource,
  type FieldLookup,
  type PathSegment,
} from "./composite.js";
export { deepFreeze } from "./deep-freeze.js";
export { parseGoDuration, type DurationResult } from "./duration.js";
export { AdmissionError, type AdmissionErrorCode } from "./error.js";
export { formatFieldPath } from "./field-path.js";
export { admitInput, type AdmittedInput, type InputCeilings } from "./input.js";
export type { JsonObject, JsonValue } from "./json.js";
export type { ModuleChoice } from "./module-choice.js";
export { layerOfFile, type LayerOfFile } from "./manifest/layer-of-file.js";
export type { EnvBinding, ModuleManifest } from "./manifest/manifest.js";
export { readManifest } from "./manifest/read-manifest.js";
export { NO_GRANTS, type Grants } from "./policy/grant.js";
export {
  compileOperatorPolicy,
  openOperatorPolicy,
  type OperatorPolicy,
} from "./policy/operator-policy.js";
export { checkAbi, checkSuitability } from "./policy/suitability.js";
export { parseQuantity, type QuantityResult } from "./quantity.js";
