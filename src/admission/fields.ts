import { quoted } from "../errors.js";
import { AdmissionError } from "./error.js";
import { isJsonObject, type JsonObject, type JsonValue } from "./json.js";
import { nearestName } from "./nearest.js";

/** The names an object of the Input may have. */
export interface FieldTable {
  readonly supported: readonly string[];
  /** Known, and refused until this version honours them: most are fences. */
  readonly unsupported?: readonly string[];
  /** Fields of earlier versions, each with the words that name its replacement. */
  readonly removed?: Readonly<Record<string, string>>;
}

/** The fields an object has, those set to null left out. */
export type Fields = ReadonlyMap<string, JsonValue>;

/** Text of any one field but `config`; the longest real ones are references and URLs. */
const MAX_TEXT_CHARS = 4096;

/**
 * Reads the object at the path `at` (empty = the Input itself). An unknown name is refused whatever
 * its value; a known one set to null counts as absent.
 * @throws AdmissionError field-unknown, field-removed, field-not-supported
 */
export function readFields(
  object: JsonObject,
  at: string,
  table: FieldTable,
): Fields {
  const fields = new Map<string, JsonValue>();
  // Sorted, because the order of a Struct's fields is random on the wire and an error that names
  // another field on every reconcile would make the XR's status flap.
  for (const [name, value] of Object.entries(object).sort(byName)) {
    refuseUnknown(name, at, table);
    if (value === null) continue;
    refuseUnusable(name, at, table);
    fields.set(name, value);
  }
  return fields;
}

/**
 * The object in the field at `path`; undefined when absent.
 * @throws AdmissionError input-invalid
 */
export function objectField(
  value: JsonValue | undefined,
  path: string,
): JsonObject | undefined {
  if (value === undefined || isJsonObject(value)) return value;
  throw invalid(`${path}: expected an object, got ${describe(value)}`);
}

/**
 * The text in the required field at `path`, 1 to 4096 characters.
 * @throws AdmissionError input-invalid
 */
export function textField(value: JsonValue | undefined, path: string): string {
  if (value === undefined) throw invalid(`${path} is required`);
  if (typeof value !== "string")
    throw invalid(`${path}: expected a string, got ${describe(value)}`);
  if (value === "") throw invalid(`${path} is empty`);
  if (value.length > MAX_TEXT_CHARS) {
    throw invalid(
      `${path} is ${String(value.length)} characters long, expected at most ${String(MAX_TEXT_CHARS)}`,
    );
  }
  return value;
}

/** A value as a message shows it. */
export function describe(value: JsonValue): string {
  if (typeof value === "string") return quoted(value);
  if (value === null || typeof value !== "object") return String(value);
  return isJsonObject(value) ? "an object" : "a list";
}

/** An AdmissionError of the most common kind. */
export function invalid(message: string): AdmissionError {
  return new AdmissionError("input-invalid", message);
}

function refuseUnknown(name: string, at: string, table: FieldTable): void {
  const known = [...table.supported, ...(table.unsupported ?? [])];
  if (known.includes(name) || Object.hasOwn(table.removed ?? {}, name)) return;
  const nearest = nearestName(name, known);
  const hint =
    nearest === undefined
      ? `expected one of ${known.join(", ")}`
      : `did you mean ${fieldPath(at, nearest)}`;
  throw new AdmissionError(
    "field-unknown",
    `unknown field ${fieldPath(at, name)}, ${hint}`,
  );
}

function refuseUnusable(name: string, at: string, table: FieldTable): void {
  if (table.removed !== undefined && Object.hasOwn(table.removed, name)) {
    throw new AdmissionError(
      "field-removed",
      `the Input's ${name} field was removed: ${table.removed[name] ?? ""}`,
    );
  }
  if (table.unsupported?.includes(name) === true) {
    throw new AdmissionError(
      "field-not-supported",
      `${fieldPath(at, name)} is not supported yet by this runtime`,
    );
  }
}

function fieldPath(at: string, name: string): string {
  if (!/^[A-Za-z_][\w-]{0,63}$/u.test(name))
    return at === "" ? quoted(name) : `${at}[${quoted(name)}]`;
  return at === "" ? name : `${at}.${name}`;
}

function byName([a]: [string, JsonValue], [b]: [string, JsonValue]): number {
  return a < b ? -1 : 1;
}
