import type { ModuleSource, RunLimits } from "../ports.js";
import { AdmissionError } from "./error.js";
import { describe, objectField, readFields } from "./fields.js";
import type { JsonObject, JsonValue } from "./json.js";
import { type LimitCeilings, readLimits } from "./limits.js";
import { readSource } from "./source.js";

/** What the operator set, as far as it bounds an Input. */
export interface InputCeilings extends LimitCeilings {
  /** Whether --module-dir is set, without which Path sources are refused. */
  readonly moduleDirSet: boolean;
}

/** What a step asks for, all of it within the operator's bounds. */
export interface AdmittedInput {
  readonly apiVersion: string;
  /** The apiVersion still works, and the author should move to the current one. */
  readonly deprecated: boolean;
  readonly source: ModuleSource;
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
): AdmittedInput {
  const apiVersion = readApiVersion(ownField(input, "apiVersion"));
  readKind(ownField(input, "kind"));
  const fields = readFields(input, "", {
    supported: ["apiVersion", "kind", "metadata", "module", "limits", "config"],
    unsupported: ["compositionPolicy"],
    removed: {
      policy: "write the fence as compositionPolicy",
      sandbox: "a module asks for capabilities in its manifest's requires",
    },
  });
  objectField(fields.get("metadata"), "metadata");
  objectField(fields.get("config"), "config");
  return {
    apiVersion,
    deprecated: apiVersion === DEPRECATED_API_VERSION,
    source: readSource(fields.get("module"), ceilings.moduleDirSet),
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

function ownField(input: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(input, name) ? input[name] : undefined;
}
