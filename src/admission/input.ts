import type { RunLimits, SourceParsers } from "../ports.js";
import { maxPolicyBytes } from "./cedar/policy.js";
import { AdmissionError } from "./error.js";
import {
  describe,
  invalid,
  invalidAt,
  objectField,
  ownField,
  readFields,
} from "./fields.js";
import type { JsonObject, JsonValue } from "./json.js";
import { type LimitCeilings, readLimits } from "./limits.js";
import { type ModuleChoice, readModuleChoice } from "./module-choice.js";
import type { SourceCeilings } from "./source.js";

/** What the operator set, as far as it bounds an Input. */
export interface InputCeilings extends LimitCeilings, SourceCeilings {}

/** What a step asks for, all of it within the operator's bounds. */
export interface AdmittedInput {
  readonly apiVersion: string;
  /** The apiVersion still works, and the author should move to the current one. */
  readonly deprecated: boolean;
  readonly module: ModuleChoice;
  /** Cedar text, not yet compiled, at most 1 MiB and never blank; null = the Input has none. */
  readonly compositionPolicy: string | null;
  readonly limits: RunLimits;
}

const CURRENT_API_VERSION = "wasm.fn.crossplane.io/v1";
const DEPRECATED_API_VERSION = "wasm.fn.crossplane.io/v1beta1";

/**
 * Reads a step's Input strictly: an unknown field is refused, because a misspelt fence must not
 * silently fall away. `config` may be left out of `input`; what is in it is the module's business.
 * @throws AdmissionError
 */
export function admitInput(
  input: JsonObject,
  ceilings: InputCeilings,
  parsers: SourceParsers,
): AdmittedInput {
  const apiVersion = readApiVersion(ownField(input, "apiVersion"));
  readKind(ownField(input, "kind"));
  const fields = readFields(input, "", {
    supported: [
      "apiVersion",
      "kind",
      "metadata",
      "module",
      "compositionPolicy",
      "limits",
      "config",
    ],
    removed: {
      policy: "write the fence as compositionPolicy",
      sandbox: "a module asks for capabilities in its manifest's requires",
    },
  });
  objectField(fields.get("metadata"), "metadata");
  objectField(fields.get("config"), "config");
  const module = readModuleChoice(fields.get("module"), ceilings, parsers);
  return {
    apiVersion,
    deprecated: apiVersion === DEPRECATED_API_VERSION,
    module,
    compositionPolicy: readPolicy(fields.get("compositionPolicy"), module),
    limits: readLimits(fields.get("limits"), ceilings),
  };
}

function readApiVersion(value: JsonValue | undefined): string {
  if (value === CURRENT_API_VERSION || value === DEPRECATED_API_VERSION)
    return value;
  throw wrongVersion(
    "apiVersion",
    `${CURRENT_API_VERSION} or ${DEPRECATED_API_VERSION}`,
    value,
  );
}

function readKind(value: JsonValue | undefined): void {
  if (value !== "Input") throw wrongVersion("kind", "Input", value);
}

function wrongVersion(
  name: string,
  expected: string,
  got: JsonValue | undefined,
): AdmissionError {
  const found = got === undefined || got === null ? "none" : describe(got);
  return new AdmissionError(
    "input-version",
    `${name}: expected ${expected}, got ${found}`,
  );
}

function readPolicy(
  value: JsonValue | undefined,
  module: ModuleChoice,
): string | null {
  const text = value ?? "";
  if (typeof text !== "string") {
    throw invalidAt(
      "compositionPolicy",
      `expected a string, got ${describe(text)}`,
    );
  }
  if (text.trim() === "") {
    if (module.kind === "from" && module.type !== "Path")
      throw policyMissing(module.pathText, module.type);
    if (value === undefined) return null;
    // Nobody writes an empty fence on purpose: what it held was lost on the way.
    throw invalid(
      "compositionPolicy is empty: write its rules, or leave the field out",
    );
  }
  const bytes = Buffer.byteLength(text);
  if (bytes > maxPolicyBytes) {
    throw invalid(
      `compositionPolicy has ${String(bytes)} bytes, expected at most ${String(maxPolicyBytes)}`,
    );
  }
  return text;
}

function policyMissing(pathText: string, type: "OCI" | "HTTP"): AdmissionError {
  return new AdmissionError(
    "policy-missing",
    `cannot resolve module: module.from: ${pathText} of the composite resource names a ${type} source, but the Input has no compositionPolicy: a module the composite resource chooses must be permitted by the compositionPolicy's pullModule rules, or its author could point the runtime at any host`,
  );
}
