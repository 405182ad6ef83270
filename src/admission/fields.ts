import { quoted } from "../errors.js";
import { AdmissionError } from "./error.js";
import { isJsonObject, type JsonObject, type JsonValue } from "./json.js";
import { nearestName } from "./nearest.js";

/** The names an object of the Input may have. */
export interface FieldTable {
  readonly supported: readonly string[];
  /** Fields of earlier versions, each with the words that name its replacement; unknown now. */
  readonly removed?: Readonly<Record<string, string>>;
}

/** The fields an object has, those set to null left out. */
export type Fields = ReadonlyMap<string, JsonValue>;

/** Text of any one field but `config`; the longest real ones are references and URLs. */
const MAX_TEXT_CHARS = 4096;
const NAME = /^[A-Za-z_][\w-]{0,63}$/u;

/**
 * Reads the object at the path `at` (empty = the object has no name of its own). An unknown or
 * removed name is refused whatever its value; a known one set to null counts as absent.
 *
 * Which of several wrong fields is named does not depend on their order, which is random in a Struct
 * on the wire: an error that changed with every reconcile would make the XR's status flap.
 * @throws AdmissionError field-unknown, field-removed
 */
export function readFields(
  object: JsonObject,
  at: string,
  table: FieldTable,
): Fields {
  refuseUnknown(object, at, table);
  refuseRemoved(object, table);
  const fields = new Map<string, JsonValue>();
  for (const name of table.supported) {
    const value = ownField(object, name);
    if (value !== undefined && value !== null) fields.set(name, value);
  }
  return fields;
}

/**
 * The object in the field at `path`; undefined when absent.
 * @param show what a message says of another value
 * @throws AdmissionError input-invalid
 */
export function objectField(
  value: JsonValue | undefined,
  path: string,
  show = describe,
): JsonObject | undefined {
  if (value === undefined || isJsonObject(value)) return value;
  throw invalidAt(path, `expected an object, got ${show(value)}`);
}

/**
 * The text in the required field at `path`, 1 to 4096 characters. No message repeats it.
 * @throws AdmissionError input-invalid
 */
export function textField(value: JsonValue | undefined, path: string): string {
  if (value === undefined) throw invalid(`${path} is required`);
  if (typeof value !== "string")
    throw invalidAt(path, `expected a string, got ${describe(value)}`);
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

/** The same where a text may be a URL with a password or a signature in it, as below `module`. */
export function describeWithoutText(value: JsonValue): string {
  return typeof value === "string" ? "a string" : describe(value);
}

/** Whether text looks like the name of something, so that messages may show it. */
export function isName(text: string): boolean {
  return NAME.test(text);
}

/** An AdmissionError of the most common kind. */
export function invalid(message: string): AdmissionError {
  return new AdmissionError("input-invalid", message);
}

/** The same about what is at `path`, empty = what has no name of its own. */
export function invalidAt(path: string, message: string): AdmissionError {
  return invalid(path === "" ? message : `${path}: ${message}`);
}

/** A value that is the object's own, not inherited. */
export function ownField(
  object: JsonObject,
  name: string,
): JsonValue | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

/** The path of the field `name` in the object at the path `at`. */
export function fieldPath(at: string, name: string): string {
  return at === "" ? name : `${at}.${name}`;
}

/** The first unknown name in the alphabet, found in one pass: an XR may hold very many. */
function refuseUnknown(
  object: JsonObject,
  at: string,
  { supported, removed = {} }: FieldTable,
): void {
  let first: string | undefined;
  for (const name of Object.keys(object)) {
    if (supported.includes(name) || Object.hasOwn(removed, name)) continue;
    if (first === undefined || name < first) first = name;
  }
  if (first === undefined) return;
  const nearest = nearestName(first, supported);
  const hint =
    nearest === undefined
      ? `expected one of ${supported.join(", ")}`
      : `did you mean ${fieldPath(at, nearest)}`;
  throw new AdmissionError(
    "field-unknown",
    `unknown field ${unknownField(at, first)}, ${hint}`,
  );
}

/** What is no name is not shown: it may be a URL with a password, written where its field belongs. */
function unknownField(at: string, name: string): string {
  if (isName(name)) return fieldPath(at, name);
  const place = at === "" ? "" : `in ${at} `;
  return `${place}(what it is called is no name)`;
}

function refuseRemoved(object: JsonObject, { removed = {} }: FieldTable): void {
  for (const [name, replacement] of Object.entries(removed)) {
    if (!Object.hasOwn(object, name)) continue;
    throw new AdmissionError(
      "field-removed",
      `the Input's ${name} field was removed: ${replacement}`,
    );
  }
}
