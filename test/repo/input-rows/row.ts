import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
} from "../../../src/admission/json.js";

/** An Input to judge. */
export interface InputRow {
  readonly name: string;
  /** Without apiVersion and kind, unless the row is about these. */
  readonly fields: JsonObject;
  /** The operator runs with --allow-unpinned-tags; default false. */
  readonly allowUnpinnedTags?: boolean;
}

export interface RefusedRow extends InputRow {
  /** Part of the runtime's message, so that the row is refused for what it is about. */
  readonly says: string;
}

export const HEX = "0123456789abcdef".repeat(4);
export const DIGEST = `sha256:${HEX}`;
export const OTHER_DIGEST = `sha256:${"f".repeat(64)}`;
export const POLICY = "permit (principal, action, resource);";
export const MODULE_URL = "https://example.com/fn.wasm";
export const TYPES = ["OCI", "HTTP", "Path"] as const;

const OBJECT_OF_TYPE: Readonly<Record<(typeof TYPES)[number], JsonObject>> = {
  OCI: { oci: { ref: `ghcr.io/example/greeter:v1@${DIGEST}` } },
  HTTP: { http: { url: MODULE_URL, digest: DIGEST } },
  Path: { path: "greeter.wasm" },
};

/** What goes into `module` for a type, beside the type. */
export function objectOf(type: (typeof TYPES)[number]): JsonObject {
  return OBJECT_OF_TYPE[type];
}

export function pathModule(extra: JsonObject = {}): JsonObject {
  return { module: { type: "Path", ...objectOf("Path"), ...extra } };
}

export function ociModule(extra: JsonObject = {}): JsonObject {
  return within("oci", { module: { type: "OCI", ...objectOf("OCI") } }, extra);
}

/** With a reference that has no digest. */
export function taggedModule(extra: JsonObject = {}): JsonObject {
  return ociModule({ ref: "ghcr.io/example/greeter:v1", ...extra });
}

export function httpModule(extra: JsonObject = {}): JsonObject {
  const module = { type: "HTTP", ...objectOf("HTTP") };
  return within("http", { module }, extra);
}

/** A module that the XR chooses, with the fence that one needs. */
export function chosenModule(
  type: (typeof TYPES)[number],
  extra: JsonObject = {},
): JsonObject {
  const module = { type, from: "status.module", ...extra };
  return { module, compositionPolicy: POLICY };
}

export function limited(limits: JsonValue): JsonObject {
  return { ...pathModule(), limits };
}

/** A row for each value of one field, which is also what the message names. */
export function rowsOf<V extends JsonValue>(
  field: string,
  values: readonly V[],
  fieldsWith: (value: V) => JsonObject,
): RefusedRow[] {
  return values.map((value) => ({
    name: `${field} ${shown(value)}`,
    fields: fieldsWith(value),
    says: field,
  }));
}

function shown(value: JsonValue): string {
  const text = JSON.stringify(value);
  if (text.length <= 80) return text;
  return `${text.slice(0, 40)}… of ${String(text.length)} characters`;
}

function within(
  name: string,
  { module }: { module: JsonObject },
  extra: JsonObject,
): JsonObject {
  const object = module[name];
  const base = isJsonObject(object) ? object : {};
  return { module: { ...module, [name]: { ...base, ...extra } } };
}
