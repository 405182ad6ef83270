import type { JsonValue } from "../../json.js";
import type { Work } from "./work.js";

/**
 * Whether a value is one of some, all of them {@link ordered}.
 *
 * ajv's own comparison calls the `valueOf` of what it compares, trusts its `constructor`, and
 * compares the items of a list each with each.
 * @throws Uncheckable
 */
export function isOneOf(
  values: readonly JsonValue[],
  work: Work,
): (value: JsonValue) => boolean {
  const scalars = new Set(values.filter((value) => !isNested(value)));
  const texts = new Set(
    values.filter(isNested).map((value) => JSON.stringify(value)),
  );
  return (value) => {
    if (!isNested(value)) return scalars.has(value);
    // Writing a large object out to compare it with scalars would be work for nothing.
    return texts.size > 0 && texts.has(textOf(value, work));
  };
}

/**
 * The indexes of the first two items that are equal; undefined when none are.
 * @throws Uncheckable
 */
export function equalItems(
  items: readonly JsonValue[],
  work: Work,
): readonly [number, number] | undefined {
  const seen = new Map<string, number>();
  for (const [index, item] of items.entries()) {
    const text = textOf(item, work);
    const first = seen.get(text);
    if (first !== undefined) return [first, index];
    seen.set(text, index);
  }
  return undefined;
}

/** The same for equal values, as their fields are in order. */
function textOf(value: JsonValue, work: Work): string {
  const text = JSON.stringify(value);
  work.spendJson(text.length);
  return text;
}

function isNested(value: JsonValue): boolean {
  return typeof value === "object" && value !== null;
}
