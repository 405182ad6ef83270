import { isJsonObject, type JsonObject, type JsonValue } from "../../json.js";

/**
 * What checking one value against one schema takes, in steps, without what the schemas in it take:
 * in any case, for each item or property of the value, and whether its characters are counted.
 */
export type Price = readonly [
  once: number,
  perMember: number,
  perCharacter: number,
];

/** Where a schema has its price. An author cannot write it: no unknown keyword is let through. */
export const priceKeyword = "x-price";

/** Names that are looked for in the time of a step. */
const namesPerStep = 8;

/**
 * The price of a schema.
 * @param schema as ajv compiles it
 * @param openNames how many names above it only a config knows: each error writes all of them out
 * @param tracked how much there is in it, when a keyword asks what it judges, else null
 */
export function priceOf(
  schema: JsonObject,
  openNames: number,
  tracked: number | null,
): Price {
  const branches = inPlace(schema);
  const names = namesIn(schema);
  // What each of them has judged is added to what the others have.
  const notes = tracked === null ? 0 : branches;
  const notedNames = notes * Math.ceil((tracked ?? 0) / namesPerStep);
  return [
    (1 + branches) * (1 + openNames) +
      Math.ceil(names / namesPerStep) +
      notedNames,
    has(schema, walking) * (1 + openNames) + notes,
    has(schema, counting),
  ];
}

/** Keywords that go through all items or properties of a value. */
const walking = [
  "additionalProperties",
  "contains",
  "maxProperties",
  "minProperties",
  "patternProperties",
  "propertyNames",
  "unevaluatedProperties",
];
const counting = ["minLength", "maxLength"];

function has(schema: JsonObject, names: readonly string[]): number {
  return names.filter((name) => schema[name] !== undefined).length;
}

/** How many schemas apply to the same value. */
function inPlace(schema: JsonObject): number {
  const { allOf, anyOf, oneOf, dependentSchemas } = schema;
  return (
    has(schema, ["$ref", "not", "if", "then", "else"]) +
    sizeOf(allOf) +
    sizeOf(anyOf) +
    sizeOf(oneOf) +
    sizeOf(dependentSchemas)
  );
}

function namesIn(schema: JsonObject): number {
  const { dependentRequired } = schema;
  const needed = isJsonObject(dependentRequired)
    ? Object.values(dependentRequired).map((names) => 1 + sizeOf(names))
    : [];
  return (
    sizeOf(schema["properties"]) +
    sizeOf(schema["prefixItems"]) +
    sizeOf(schema["required"]) +
    needed.reduce((sum, size) => sum + size, 0)
  );
}

function sizeOf(value: JsonValue | undefined): number {
  if (Array.isArray(value)) return value.length;
  return isJsonObject(value) ? Object.keys(value).length : 0;
}
