import {
  allOfKeyword,
  anyOfKeyword,
  branchKeyword,
  definitionsKeyword,
  dependentSchemasKeyword,
  ifKeyword,
  notKeyword,
  oneOfKeyword,
  refKeyword,
} from "./combiners.js";
import {
  characters,
  items,
  maxKeyword,
  minKeyword,
  properties,
} from "./counts.js";
import type { Keyword } from "./keyword.js";
import {
  containsCountKeyword,
  containsKeyword,
  itemsKeyword,
  prefixItemsKeyword,
  unevaluatedItemsKeyword,
  uniqueItemsKeyword,
} from "./lists.js";
import {
  additionalPropertiesKeyword,
  dependentRequiredKeyword,
  patternPropertiesKeyword,
  propertiesKeyword,
  propertyNamesKeyword,
  requiredKeyword,
  unevaluatedPropertiesKeyword,
} from "./objects.js";
import {
  constKeyword,
  enumKeyword,
  limitKeyword,
  multipleOfKeyword,
  patternKeyword,
  typeKeyword,
} from "./scalars.js";

/** Describes and does not check: 2020-12 makes `format` such a keyword. */
const annotation: Keyword = () => null;

/**
 * The keywords of JSON Schema 2020-12 that a config schema may have, in the order in which they are
 * checked: what costs least first, and what looks at the verdicts of the others last.
 */
export const keywords: ReadonlyMap<string, Keyword> = new Map([
  ["type", typeKeyword],
  ["const", constKeyword],
  ["enum", enumKeyword],
  ["multipleOf", multipleOfKeyword],
  ["minimum", limitKeyword("at least", (value, limit) => value >= limit)],
  ["maximum", limitKeyword("at most", (value, limit) => value <= limit)],
  [
    "exclusiveMinimum",
    limitKeyword("more than", (value, limit) => value > limit),
  ],
  [
    "exclusiveMaximum",
    limitKeyword("less than", (value, limit) => value < limit),
  ],
  ["minLength", minKeyword(characters)],
  ["maxLength", maxKeyword(characters)],
  ["pattern", patternKeyword],
  ["minItems", minKeyword(items)],
  ["maxItems", maxKeyword(items)],
  ["uniqueItems", uniqueItemsKeyword],
  ["minProperties", minKeyword(properties)],
  ["maxProperties", maxKeyword(properties)],
  ["required", requiredKeyword],
  ["dependentRequired", dependentRequiredKeyword],
  ["$defs", definitionsKeyword],
  // As 2019-09 and earlier call it; 2020-12 still lists it.
  ["definitions", definitionsKeyword],
  ["$ref", refKeyword],
  ["propertyNames", propertyNamesKeyword],
  ["properties", propertiesKeyword],
  ["patternProperties", patternPropertiesKeyword],
  ["additionalProperties", additionalPropertiesKeyword],
  ["prefixItems", prefixItemsKeyword],
  ["items", itemsKeyword],
  ["contains", containsKeyword],
  ["minContains", containsCountKeyword],
  ["maxContains", containsCountKeyword],
  ["dependentSchemas", dependentSchemasKeyword],
  ["allOf", allOfKeyword],
  ["anyOf", anyOfKeyword],
  ["oneOf", oneOfKeyword],
  ["not", notKeyword],
  ["if", ifKeyword],
  ["then", branchKeyword],
  ["else", branchKeyword],
  ["unevaluatedItems", unevaluatedItemsKeyword],
  ["unevaluatedProperties", unevaluatedPropertiesKeyword],
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
