import { escaped } from "../../../errors.js";
import type { AdmissionError } from "../../error.js";
import { describe, invalid } from "../../fields.js";
import { isJsonObject, type JsonObject, type JsonValue } from "../../json.js";
import type { Pattern } from "./pattern.js";
import { escapeKey } from "./place.js";
import type { Check, Schema } from "./schema.js";

/** One keyword in a schema, while that is compiled. */
export interface KeywordUse {
  readonly value: JsonValue;
  /** JSON pointer of the value, from the root of the schema. */
  readonly pointer: string;
  /** The schema it is in, and its pointer. */
  readonly siblings: JsonObject;
  readonly schemaPointer: string;
  readonly compiler: Compiler;
}

/**
 * What a keyword compiles to; null when there is nothing to check.
 * @throws AdmissionError input-invalid
 */
export type Keyword = (use: KeywordUse) => Check | null;

/** What keywords compile their values with. */
export interface Compiler {
  /** The schema at a pointer, compiled once. */
  schema(value: JsonValue, pointer: string): Schema;
  /** The schema a `$ref` names, to be called when all of them are compiled. */
  reference(ref: string, pointer: string): () => Schema;
  /** A regular expression, compiled once. */
  pattern(source: string, pointer: string): Pattern;
}

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
export function textsIn(
  use: Pick<KeywordUse, "value" | "pointer">,
): readonly string[] {
  const { value } = use;
  if (
    Array.isArray(value) &&
    value.every((item): item is string => typeof item === "string")
  )
    return value;
  throw unexpected(use, "a list of strings");
}

/**
 * The fields of the object a keyword has, each with its pointer.
 * @throws AdmissionError input-invalid
 */
export function entriesIn(
  use: KeywordUse,
): readonly { name: string; value: JsonValue; pointer: string }[] {
  if (!isJsonObject(use.value)) throw unexpected(use, "an object");
  return Object.entries(use.value).map(([name, value]) => ({
    name,
    value,
    pointer: `${use.pointer}/${escapeKey(name)}`,
  }));
}

/**
 * The schema a keyword has.
 * @throws AdmissionError input-invalid
 */
export function schemaIn({ value, pointer, compiler }: KeywordUse): Schema {
  return compiler.schema(value, pointer);
}

/**
 * The schemas a keyword has, at least one.
 * @throws AdmissionError input-invalid
 */
export function schemasIn(use: KeywordUse): readonly Schema[] {
  const { value, pointer, compiler } = use;
  if (!Array.isArray(value) || value.length === 0)
    throw unexpected(use, "a list of at least one schema");
  return (value as readonly JsonValue[]).map((item, index) =>
    compiler.schema(item, `${pointer}/${String(index)}`),
  );
}

/**
 * The schemas a keyword has, by name.
 * @throws AdmissionError input-invalid
 */
export function schemaMapIn(use: KeywordUse): ReadonlyMap<string, Schema> {
  return new Map(
    entriesIn(use).map(({ name, value, pointer }) => [
      name,
      use.compiler.schema(value, pointer),
    ]),
  );
}
