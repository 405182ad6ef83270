import { quoted } from "../../errors.js";
import type { Parsed } from "../../ports.js";
import type { AdmissionError } from "../error.js";
import {
  describe,
  fieldPath,
  type Fields,
  invalid,
  invalidAt,
  objectField,
  readFields,
} from "../fields.js";
import type { JsonValue } from "../json.js";
import { parseHost, parseHostPattern } from "./host.js";
import {
  egressMethods,
  type EgressMethod,
  type EgressRule,
} from "./manifest.js";
import { parsePathPrefix } from "./path-prefix.js";
import { lineOf, listOf, refuseTwice, required } from "./values.js";

const MAX_TEXT_CHARS = 1024;
const MAX_PORT = 65535;

/**
 * Reads one rule of `requires.egress.http`.
 * @throws AdmissionError input-invalid, field-unknown
 */
export function readEgressRule(value: JsonValue, path: string): EgressRule {
  const fields = readFields(objectField(value, path) ?? {}, path, {
    supported: [
      "host",
      "hostPattern",
      "methods",
      "pathPrefix",
      "scheme",
      "port",
    ],
  });
  const scheme = readScheme(fields, path);
  return {
    host: readHost(fields, path),
    methods: readMethods(fields, path),
    pathPrefix: parsed(fields, path, "pathPrefix", parsePathPrefix) ?? "",
    scheme,
    port: readPort(fields, path) ?? (scheme === "https" ? 443 : 80),
  };
}

function readHost(fields: Fields, path: string): string {
  const host = parsed(fields, path, "host", parseHost);
  const pattern = parsed(fields, path, "hostPattern", parseHostPattern);
  if (host !== undefined && pattern !== undefined)
    throw invalidAt(path, "expected one of host and hostPattern, got both");
  const either = host ?? pattern;
  if (either !== undefined) return either;
  throw invalidAt(path, "expected one of host and hostPattern, got neither");
}

function readMethods(fields: Fields, path: string): readonly EgressMethod[] {
  const at = fieldPath(path, "methods");
  const value = required(fields.get("methods"), path, "methods");
  const list = listOf(value, at, egressMethods.length);
  if (list.length === 0) {
    throw invalidAt(
      at,
      `expected at least one of ${egressMethods.join(", ")}, got an empty list`,
    );
  }
  const pathOf = (index: number) => `${at}[${String(index)}]`;
  const methods = list.map((item, index) => readMethod(item, pathOf(index)));
  refuseTwice(methods, pathOf);
  return methods;
}

function readMethod(value: JsonValue, path: string): EgressMethod {
  const method = egressMethods.find((known) => known === value);
  if (method !== undefined) return method;
  throw invalidAt(
    path,
    `expected one of ${egressMethods.join(", ")}, got ${describe(value)}${methodHint(value)}`,
  );
}

function methodHint(value: JsonValue): string {
  const upper = typeof value === "string" ? value.toUpperCase() : "";
  const meant = egressMethods.find((known) => known === upper);
  return meant === undefined ? "" : `: write ${quoted(meant)}`;
}

function readScheme(fields: Fields, path: string): "http" | "https" {
  const value = fields.get("scheme") ?? "https";
  if (value === "https" || value === "http") return value;
  throw wrong(path, "scheme", "https or http", value);
}

function readPort(fields: Fields, path: string): number | undefined {
  const value = fields.get("port");
  if (value === undefined) return undefined;
  if (
    typeof value === "number" &&
    Number.isInteger(value) &&
    value >= 1 &&
    value <= MAX_PORT
  )
    return value;
  throw wrong(
    path,
    "port",
    `a whole number from 1 to ${String(MAX_PORT)}`,
    value,
  );
}

function parsed(
  fields: Fields,
  path: string,
  name: string,
  parse: (text: string) => Parsed<string>,
): string | undefined {
  const value = fields.get(name);
  if (value === undefined) return undefined;
  const at = fieldPath(path, name);
  const result = parse(lineOf(value, at, MAX_TEXT_CHARS));
  if (result.kind === "error") throw invalidAt(at, result.message);
  return result.value;
}

function wrong(
  path: string,
  name: string,
  expected: string,
  got: JsonValue,
): AdmissionError {
  return invalid(
    `${fieldPath(path, name)}: expected ${expected}, got ${describe(got)}`,
  );
}
