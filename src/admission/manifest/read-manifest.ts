import type { Parsed } from "../../ports.js";
import { deepFreeze } from "../deep-freeze.js";
import { AdmissionError } from "../error.js";
import {
  describe,
  type Fields,
  invalid,
  invalidAt,
  objectField,
  ownField,
  readFields,
} from "../fields.js";
import { isJsonObject, type JsonObject, type JsonValue } from "../json.js";
import { compileConfigSchema } from "./config-schema.js";
import { readDocument } from "./document.js";
import type { ConfigSchema, ModuleManifest } from "./manifest.js";
import { readRequirements } from "./requirements.js";
import { parseVersion } from "./semantic-version.js";
import { lineOf, required } from "./values.js";

const FIELDS = [
  "name",
  "version",
  "description",
  "abi",
  "source",
  "minRuntime",
  "requires",
  "config",
];
const MAX_DESCRIPTION_CHARS = 1024;
const MAX_NAME_CHARS = 128;
const MAX_VERSION_CHARS = 256;
const MAX_SOURCE_CHARS = 2048;

/**
 * Reads a module's manifest: a `wasmfn.yaml` strictly, the JSON of an OCI layer but for top-level
 * fields it does not know, which a newer tool may have written. Nothing unknown is let through in
 * `requires` or `config`.
 */
export function readManifest(
  form: "file" | "layer",
  bytes: Uint8Array,
): Parsed<ModuleManifest> {
  try {
    const document = readDocument(form, bytes);
    if (!isJsonObject(document))
      throw invalidAt("", `expected an object, got ${describe(document)}`);
    const known = form === "file" ? document : onlyKnown(document);
    return { kind: "ok", value: deepFreeze(manifestOf(known)) };
  } catch (thrown) {
    if (!(thrown instanceof AdmissionError)) throw thrown;
    return { kind: "error", message: thrown.message };
  }
}

function manifestOf(document: JsonObject): ModuleManifest {
  const fields = readFields(document, "", { supported: FIELDS });
  checkDescription(fields.get("description"));
  return {
    name: optionalLine(fields, "name", MAX_NAME_CHARS),
    version: readVersion(fields, "version"),
    abi: readAbi(fields),
    source: optionalLine(fields, "source", MAX_SOURCE_CHARS),
    minRuntime: readVersion(fields, "minRuntime"),
    requires: readRequirements(fields.get("requires")),
    configSchema: readConfigSchema(fields.get("config")),
  };
}

/** It is for people and not kept: whatever lines it has, no message shows them. */
function checkDescription(value: JsonValue | undefined): void {
  if (value === undefined) return;
  if (typeof value !== "string")
    throw invalidAt("description", `expected a string, got ${describe(value)}`);
  if (value.length > MAX_DESCRIPTION_CHARS) {
    throw invalid(
      `description is ${value.length} characters long, expected at most ${MAX_DESCRIPTION_CHARS}`,
    );
  }
}

function onlyKnown(document: JsonObject): JsonObject {
  return Object.fromEntries(
    FIELDS.map((name) => [name, ownField(document, name) ?? null]),
  );
}

function optionalLine(
  fields: Fields,
  name: string,
  maxChars: number,
): string | null {
  const value = fields.get(name);
  return value === undefined ? null : lineOf(value, name, maxChars);
}

function readVersion(fields: Fields, name: string): string | null {
  const text = optionalLine(fields, name, MAX_VERSION_CHARS);
  if (text === null) return null;
  const version = parseVersion(text);
  if (version.kind === "error") throw invalidAt(name, version.message);
  return version.value;
}

function readAbi(fields: Fields): 1 | 2 {
  const abi = required(fields.get("abi"), "", "abi");
  if (abi === 1 || abi === 2) return abi;
  throw invalidAt("abi", `expected 1 or 2, got ${describe(abi)}`);
}

function readConfigSchema(value: JsonValue | undefined): ConfigSchema | null {
  const config = readFields(objectField(value, "config") ?? {}, "config", {
    supported: ["schema"],
  });
  const schema = config.get("schema");
  return schema === undefined ? null : compileConfigSchema(schema);
}
