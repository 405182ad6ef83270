import { escaped, quoted } from "../../../errors.js";
import type { AdmissionError } from "../../error.js";
import { describe, invalid } from "../../fields.js";
import { isJsonObject, type JsonValue } from "../../json.js";
import { emptyObject, ordered } from "./ordered.js";

/** Where a schema is. */
export interface SchemaPlace {
  /** JSON pointer from the root. */
  readonly pointer: string;
  /** How many schemas it is in. */
  readonly level: number;
  /** How many names above it only a config knows. */
  readonly openNames: number;
  /** What it is compiled in: how many schemas, keywords and names are in that. */
  readonly body: { parts: number };
}

/** One keyword in a schema, while that is read. */
export interface KeywordUse {
  readonly value: JsonValue;
  /** JSON pointer of the value. */
  readonly pointer: string;
  /** The schema it is in. */
  readonly place: SchemaPlace;
  readonly reader: SchemaReader;
}

/**
 * Reads what a keyword has: the value that ajv compiles, undefined when there is nothing to check.
 * @throws AdmissionError input-invalid
 */
export type Keyword = (use: KeywordUse) => JsonValue | undefined;

/** What keywords read their values with. */
export interface SchemaReader {
  /** Reads a schema. */
  schema(value: JsonValue, place: SchemaPlace): JsonValue;
  /** The pointer of the schema that a `$ref` names. */
  reference(ref: string, pointer: string): string;
  /** Compiles a regular expression. */
  pattern(source: string, pointer: string): void;
  /** Counts parts of the schema. */
  count(parts: number, place: SchemaPlace): void;
}

/** Levels that a constant may have. */
const maxLevels = 64;
/** ajv writes each of them out where it asks for all. */
const maxNames = 100;
/** ajv writes names into URIs, which half a character has no place in. */
const LONE_SURROGATE = /\p{Surrogate}/u;

/** The refusal of what is at a pointer. */
export function refused(pointer: string, problem: string): AdmissionError {
  return invalid(`config.schema${escaped(pointer, 200)}: ${problem}`);
}

/** The same, for a value of the wrong type. */
export function unexpected(
  { value, pointer }: Pick<KeywordUse, "value" | "pointer">,
  expected: string,
): AdmissionError {
  return refused(pointer, `expected ${expected}, got ${describe(value)}`);
}

/** A key as a JSON pointer writes it. */
export function escapeKey(key: string): string {
  return key.replaceAll("~", "~0").replaceAll("/", "~1");
}

/**
 * The number a keyword has.
 * @throws AdmissionError input-invalid
 */
export function numberIn(use: KeywordUse): number {
  if (typeof use.value !== "number") throw unexpected(use, "a number");
  return use.value;
}

/**
 * The whole number of at least 0 a keyword has.
 * @throws AdmissionError input-invalid
 */
export function countIn(use: KeywordUse): number {
  const { value } = use;
  if (typeof value === "number" && Number.isInteger(value) && value >= 0)
    return value;
  throw unexpected(use, "a whole number of at least 0");
}

/**
 * The text a keyword has.
 * @throws AdmissionError input-invalid
 */
export function textIn(use: KeywordUse): string {
  if (typeof use.value !== "string") throw unexpected(use, "a string");
  return use.value;
}

/**
 * The list of texts a keyword has, perhaps empty.
 * @throws AdmissionError input-invalid
 */
export function textsIn(use: KeywordUse): readonly string[] {
  const { value, place, reader } = use;
  if (
    !Array.isArray(value) ||
    !value.every((item): item is string => typeof item === "string")
  )
    throw unexpected(use, "a list of strings");
  reader.count(value.length, place);
  return value;
}

/**
 * Any value, its fields in order.
 * @throws AdmissionError input-invalid
 */
export function valueIn({ value, pointer }: KeywordUse): JsonValue {
  return ordered(value, (_, level) => {
    if (level > maxLevels)
      throw refused(pointer, `it nests deeper than ${maxLevels} levels`);
  });
}

/**
 * The schema a keyword has.
 * @throws AdmissionError input-invalid
 */
export function schemaIn(use: KeywordUse): JsonValue {
  const { value, pointer, place, reader } = use;
  return reader.schema(value, { ...place, pointer, level: place.level + 1 });
}

/** The same use, for schemas of properties whose names only a config knows. */
export function underAnyName(use: KeywordUse): KeywordUse {
  const { place } = use;
  return { ...use, place: { ...place, openNames: place.openNames + 1 } };
}

/**
 * The schemas a keyword has, at least one.
 * @throws AdmissionError input-invalid
 */
export function schemasIn(use: KeywordUse): readonly JsonValue[] {
  const { value, pointer } = use;
  if (!Array.isArray(value) || value.length === 0)
    throw unexpected(use, "a list of at least one schema");
  return (value as readonly JsonValue[]).map((item, index) =>
    schemaIn({ ...use, value: item, pointer: `${pointer}/${index}` }),
  );
}

/**
 * The schemas a keyword has, by name.
 * @throws AdmissionError input-invalid
 */
export function schemaMapIn(use: KeywordUse): JsonValue {
  return mapIn(use, schemaIn);
}

/**
 * The lists of names a keyword has, by name.
 * @throws AdmissionError input-invalid
 */
export function namesMapIn(use: KeywordUse): JsonValue {
  return mapIn(use, (entry) => {
    const names = textsIn(entry);
    if (names.length > maxNames)
      throw refused(entry.pointer, `it has more than ${maxNames} names`);
    use.reader.count(1, use.place);
    return names;
  });
}

/**
 * The fields of the object a keyword has, each of them read.
 * @throws AdmissionError input-invalid
 */
export function mapIn(
  use: KeywordUse,
  read: (entry: KeywordUse, name: string) => JsonValue,
): JsonValue {
  const { value, pointer } = use;
  if (!isJsonObject(value)) throw unexpected(use, "an object");
  const map = emptyObject();
  for (const [name, entry] of Object.entries(value)) {
    // ajv skips the first without a word.
    if (name === "__proto__" || LONE_SURROGATE.test(name))
      throw refused(pointer, `the name ${quoted(name)} is not supported`);
    const at = `${pointer}/${escapeKey(name)}`;
    map[name] = read({ ...use, value: entry, pointer: at }, name);
  }
  return map;
}
