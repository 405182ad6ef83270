import {
  countIn,
  type Keyword,
  mapIn,
  namesMapIn,
  numberIn,
  schemaIn,
  schemaMapIn,
  schemasIn,
  textIn,
  textsIn,
  underAnyName,
  unexpected,
  valueIn,
} from "./keyword.js";

const typeNames = [
  "null",
  "boolean",
  "object",
  "array",
  "number",
  "integer",
  "string",
];

const typeKeyword: Keyword = (use) => {
  const wanted = typeof use.value === "string" ? [use.value] : textsIn(use);
  if (wanted.length === 0 || wanted.some((name) => !typeNames.includes(name)))
    throw unexpected(use, `one or more of ${typeNames.join(", ")}`);
  return wanted;
};

const enumKeyword: Keyword = (use) => {
  if (!Array.isArray(use.value)) throw unexpected(use, "a list");
  return valueIn(use);
};

const multipleOfKeyword: Keyword = (use) => {
  const divisor = numberIn(use);
  if (divisor <= 0) throw unexpected(use, "a number above 0");
  return divisor;
};

const patternKeyword: Keyword = (use) => {
  const source = textIn(use);
  use.reader.pattern(source, use.pointer);
  return source;
};

const uniqueItemsKeyword: Keyword = (use) => {
  if (typeof use.value !== "boolean") throw unexpected(use, "true or false");
  return use.value ? true : undefined;
};

const refKeyword: Keyword = (use) =>
  use.reader.reference(textIn(use), use.pointer);

const patternPropertiesKeyword: Keyword = (use) =>
  mapIn(underAnyName(use), (entry, source) => {
    use.reader.pattern(source, entry.pointer);
    return schemaIn(entry);
  });

/** A schema for properties that others do not name. */
const othersKeyword: Keyword = (use) => schemaIn(underAnyName(use));

/** Only `$ref` leads there. */
const definitionsKeyword: Keyword = (use) => {
  schemaMapIn({ ...use, place: { ...use.place, body: { parts: 0 } } });
  return undefined;
};

/** Describes and does not check: 2020-12 makes `format` such a keyword. */
const annotation: Keyword = () => undefined;

/** The keywords of JSON Schema 2020-12 that a config schema may have. */
export const keywords: ReadonlyMap<string, Keyword> = new Map<string, Keyword>([
  ["type", typeKeyword],
  ["const", valueIn],
  ["enum", enumKeyword],
  ["multipleOf", multipleOfKeyword],
  ["minimum", numberIn],
  ["maximum", numberIn],
  ["exclusiveMinimum", numberIn],
  ["exclusiveMaximum", numberIn],
  ["minLength", countIn],
  ["maxLength", countIn],
  ["pattern", patternKeyword],
  ["minItems", countIn],
  ["maxItems", countIn],
  ["uniqueItems", uniqueItemsKeyword],
  ["minProperties", countIn],
  ["maxProperties", countIn],
  ["required", textsIn],
  ["dependentRequired", namesMapIn],
  ["$defs", definitionsKeyword],
  // As 2019-09 and earlier call it; 2020-12 still lists it.
  ["definitions", definitionsKeyword],
  ["$ref", refKeyword],
  ["propertyNames", schemaIn],
  ["properties", schemaMapIn],
  ["patternProperties", patternPropertiesKeyword],
  ["additionalProperties", othersKeyword],
  ["prefixItems", schemasIn],
  ["items", schemaIn],
  ["contains", schemaIn],
  ["minContains", countIn],
  ["maxContains", countIn],
  ["dependentSchemas", schemaMapIn],
  ["allOf", schemasIn],
  ["anyOf", schemasIn],
  ["oneOf", schemasIn],
  ["not", schemaIn],
  ["if", schemaIn],
  ["then", schemaIn],
  ["else", schemaIn],
  ["unevaluatedItems", schemaIn],
  ["unevaluatedProperties", othersKeyword],
  ["$comment", annotation],
  ["title", annotation],
  ["description", annotation],
  ["default", annotation],
  ["examples", annotation],
  ["deprecated", annotation],
  ["readOnly", annotation],
  ["writeOnly", annotation],
  ["format", annotation],
  ["contentEncoding", annotation],
  ["contentMediaType", annotation],
  ["contentSchema", annotation],
]);

/** Keywords that authors know from elsewhere, and what to do instead. */
export const refusedKeywords: ReadonlyMap<string, string> = new Map([
  ["$anchor", "name the schema by its JSON pointer"],
  ["$dynamicAnchor", "name the schema by its JSON pointer"],
  ["$dynamicRef", "use $ref"],
  ["$recursiveAnchor", "name the schema by its JSON pointer"],
  ["$recursiveRef", "use $ref"],
  ["$async", "leave it out"],
  ["$vocabulary", "leave it out"],
  ["id", "leave it out"],
  ["additionalItems", "use items beside prefixItems"],
  ["dependencies", "use dependentRequired or dependentSchemas"],
  ["nullable", 'add "null" to type'],
]);
