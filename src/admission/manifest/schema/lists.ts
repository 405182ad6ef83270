import type { JsonValue } from "../../json.js";
import { canonicalText } from "./canonical.js";
import { counted, fail } from "./failure.js";
import {
  countIn,
  type Keyword,
  type KeywordUse,
  schemaIn,
  schemasIn,
  unexpected,
} from "./keyword.js";
import { placeOf } from "./place.js";
import { type Check, evaluate, type Evaluated, type Schema } from "./schema.js";

/** `prefixItems` */
export const prefixItemsKeyword: Keyword = (use) => {
  const schemas = schemasIn(use);
  return checkItems((index) => schemas[index]);
};

/** `items`: those after `prefixItems`. */
export const itemsKeyword: Keyword = (use) => {
  const schema = schemaIn(use);
  const { prefixItems } = use.siblings;
  const first = Array.isArray(prefixItems) ? prefixItems.length : 0;
  return checkItems((index) => (index < first ? undefined : schema));
};

/** `contains`, with `minContains` and `maxContains`. */
export const containsKeyword: Keyword = (use) => {
  const schema = schemaIn(use);
  const least = siblingCount(use, "minContains") ?? 1;
  const most = siblingCount(use, "maxContains") ?? Infinity;
  return (value, place, run, evaluated) => {
    if (!Array.isArray(value)) return null;
    let got = 0;
    for (const [index, item] of (value as readonly JsonValue[]).entries()) {
      const at = placeOf(place, index);
      if (evaluate(schema, item, at, run, null) !== null) continue;
      got += 1;
      evaluated?.add(index);
    }
    if (got >= least && got <= most) return null;
    const bound =
      got < least
        ? `at least ${counted(least, "item", "items")}`
        : `at most ${counted(most, "item", "items")}`;
    return fail(
      place,
      () => `expected ${bound} as contains says, got ${String(got)}`,
    );
  };
};

/** `minContains` or `maxContains`: `contains` looks at them. */
export const containsCountKeyword: Keyword = (use) => {
  countIn(use);
  return null;
};

/** `uniqueItems` */
export const uniqueItemsKeyword: Keyword = (use) => {
  if (typeof use.value !== "boolean") throw unexpected(use, "true or false");
  if (!use.value) return null;
  return (value, place, run) => {
    if (!Array.isArray(value)) return null;
    const seen = new Map<string, number>();
    for (const [index, item] of (value as readonly JsonValue[]).entries()) {
      const text = canonicalText(item, run);
      const first = seen.get(text);
      if (first !== undefined) {
        const pair = `${String(first)} and ${String(index)}`;
        return fail(place, () => `items ${pair} are equal`);
      }
      seen.set(text, index);
    }
    return null;
  };
};

/** `unevaluatedItems`: those that no other keyword has judged. */
export const unevaluatedItemsKeyword: Keyword = (use) => {
  const schema = schemaIn(use);
  return checkItems((index, evaluated) =>
    evaluated?.has(index) === true ? undefined : schema,
  );
};

/** Holds every item of a list to the schema for its index, if there is one. */
function checkItems(
  schemaAt: (index: number, evaluated: Evaluated) => Schema | undefined,
): Check {
  return (value, place, run, evaluated) => {
    if (!Array.isArray(value)) return null;
    for (const [index, item] of (value as readonly JsonValue[]).entries()) {
      run.spend(1);
      const schema = schemaAt(index, evaluated);
      if (schema === undefined) continue;
      const at = placeOf(place, index);
      const failure = evaluate(schema, item, at, run, null);
      if (failure !== null) return failure;
      evaluated?.add(index);
    }
    return null;
  };
}

function siblingCount(
  { siblings, schemaPointer, compiler }: KeywordUse,
  name: string,
): number | undefined {
  const value = siblings[name];
  if (value === undefined) return undefined;
  const pointer = `${schemaPointer}/${name}`;
  return countIn({ value, pointer, siblings, schemaPointer, compiler });
}
