import { quoted } from "../../../errors.js";
import type { JsonValue } from "../../json.js";
import { equalItems } from "./equality.js";
import { Work } from "./work.js";

/** One keyword that a value does not match. */
export interface Mismatch {
  readonly keyword: string;
  /** What ajv says about it. */
  readonly params: Readonly<Record<string, JsonValue>>;
  readonly value: JsonValue;
}

type Sentence = (mismatch: Mismatch) => string;

const maxValueChars = 40;
const maxShownValues = 8;

/** What is wrong with a value, in words: for example `got number, want string`. */
export function sentence(mismatch: Mismatch): string {
  const known = sentences.get(mismatch.keyword);
  return known === undefined
    ? `does not match ${mismatch.keyword}`
    : known(mismatch);
}

const sentences: ReadonlyMap<string, Sentence> = new Map<string, Sentence>([
  ["false schema", () => "no value is allowed here"],
  [
    "type",
    ({ params, value }) =>
      `got ${typeName(value)}, want ${(params["type"] as readonly string[]).join(" or ")}`,
  ],
  ["const", ({ params }) => allowed([params["allowedValue"] ?? null])],
  ["enum", ({ params }) => allowed(listOf(params["allowedValues"]))],
  [
    "multipleOf",
    ({ params, value }) =>
      `expected a multiple of ${textOf(params["multipleOf"])}, got ${textOf(value)}`,
  ],
  ["minimum", limit("at least")],
  ["maximum", limit("at most")],
  ["exclusiveMinimum", limit("more than")],
  ["exclusiveMaximum", limit("less than")],
  ["minLength", count("at least", "character", "characters")],
  ["maxLength", count("at most", "character", "characters")],
  ["minItems", count("at least", "item", "items")],
  ["maxItems", count("at most", "item", "items")],
  ["items", count("at most", "item", "items")],
  ["unevaluatedItems", count("at most", "item", "items")],
  ["minProperties", count("at least", "property", "properties")],
  ["maxProperties", count("at most", "property", "properties")],
  [
    "pattern",
    ({ params }) => `does not match pattern ${nameText(params["pattern"])}`,
  ],
  ["uniqueItems", equal],
  [
    "required",
    ({ params }) => `missing property ${nameText(params["missingProperty"])}`,
  ],
  [
    "dependentRequired",
    ({ params }) =>
      `missing property ${nameText(params["missingProperty"])}, which ${nameText(params["property"])} needs`,
  ],
  [
    "additionalProperties",
    ({ params }) => notAllowed(params["additionalProperty"]),
  ],
  [
    "unevaluatedProperties",
    ({ params }) => notAllowed(params["unevaluatedProperty"]),
  ],
  [
    "propertyNames",
    ({ params }) => `property name ${nameText(params["propertyName"])}`,
  ],
  ["contains", containsTooFew],
  ["anyOf", () => "no schema of anyOf matches"],
  ["oneOf", notOne],
  ["not", () => "matches the schema of not"],
]);

function limit(words: string): Sentence {
  return ({ params, value }) =>
    `expected ${words} ${textOf(params["limit"])}, got ${textOf(value)}`;
}

function count(words: string, one: string, many: string): Sentence {
  return ({ params, value }) => {
    const bound = counted(params["limit"], one, many);
    return `expected ${words} ${bound}, got ${sizeOf(value)}`;
  };
}

function containsTooFew({ params }: Mismatch): string {
  const { minContains, maxContains } = params;
  const least = counted(minContains, "item", "items");
  const most =
    maxContains === undefined ? "" : ` and at most ${textOf(maxContains)}`;
  return `expected at least ${least}${most} as contains says`;
}

function equal({ value }: Mismatch): string {
  const pair = equalItems(listOf(value), new Work(Infinity)) ?? [];
  return `items ${pair.join(" and ")} are equal`;
}

function notOne({ params }: Mismatch): string {
  const both = listOf(params["passingSchemas"]);
  return both.length === 0
    ? "no schema of oneOf matches"
    : `schemas ${both.map(textOf).join(" and ")} of oneOf both match`;
}

/** At the object, for that is where a misspelt name is to be mended. */
function notAllowed(name: JsonValue | undefined): string {
  return `additional property ${nameText(name)} is not allowed`;
}

function allowed(values: readonly JsonValue[]): string {
  if (values.length === 0) return "no value is allowed here";
  const shown = values.slice(0, maxShownValues).map(textOf);
  if (values.length > maxShownValues) shown.push("…");
  return `value must be ${values.length === 1 ? "" : "one of "}${shown.join(", ")}`;
}

/** `1 item`, `2 items`. */
function counted(
  bound: JsonValue | undefined,
  one: string,
  many: string,
): string {
  return `${textOf(bound)} ${bound === 1 ? one : many}`;
}

function sizeOf(value: JsonValue): number {
  // By characters, not by UTF-16 units.
  if (typeof value === "string") return Array.from(value).length;
  return value === null ? 0 : Object.keys(value).length;
}

function typeName(value: JsonValue): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? (value as readonly JsonValue[]) : [];
}

function nameText(name: JsonValue | undefined): string {
  return quoted(typeof name === "string" ? name : "");
}

function textOf(value: JsonValue | undefined): string {
  if (typeof value === "string") return quoted(value, maxValueChars);
  if (typeof value === "number") return numberText(value);
  if (typeof value !== "object" || value === null) return String(value);
  return Array.isArray(value) ? "a list" : "an object";
}

/** With all the digits a double has, where JavaScript would write zeros. */
function numberText(value: number): string {
  return Number.isInteger(value) && Math.abs(value) < 1e21
    ? String(BigInt(value))
    : String(value);
}
