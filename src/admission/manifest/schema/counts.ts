import { isJsonObject, type JsonValue } from "../../json.js";
import { counted, fail } from "./failure.js";
import { countIn, type Keyword } from "./keyword.js";
import type { Run } from "./run.js";

/** What `min…` and `max…` keywords count; null for values that have none. */
export interface Countable {
  readonly count: (value: JsonValue, run: Run) => number | null;
  readonly one: string;
  readonly many: string;
}

/** One character, two UTF-16 units. */
const SURROGATE_PAIR = /[\ud800-\udbff][\udc00-\udfff]/g;

/** `maxLength` and `minLength` count code points. */
export const characters: Countable = {
  count(value, run) {
    if (typeof value !== "string") return null;
    run.spendChars(value.length);
    return value.length - (value.match(SURROGATE_PAIR)?.length ?? 0);
  },
  one: "character",
  many: "characters",
};

/** `maxItems` and `minItems` */
export const items: Countable = {
  count: (value) => (Array.isArray(value) ? value.length : null),
  one: "item",
  many: "items",
};

/** `maxProperties` and `minProperties` */
export const properties: Countable = {
  count(value, run) {
    if (!isJsonObject(value)) return null;
    const { length } = Object.keys(value);
    run.spend(length);
    return length;
  },
  one: "property",
  many: "properties",
};

/** `min…` of something countable. */
export function minKeyword(countable: Countable): Keyword {
  return countKeyword(countable, "at least", (count, bound) => count >= bound);
}

/** `max…` of something countable. */
export function maxKeyword(countable: Countable): Keyword {
  return countKeyword(countable, "at most", (count, bound) => count <= bound);
}

function countKeyword(
  { count, one, many }: Countable,
  words: string,
  isWithin: (count: number, bound: number) => boolean,
): Keyword {
  return (use) => {
    const bound = countIn(use);
    const expected = `${words} ${counted(bound, one, many)}`;
    return (value, place, run) => {
      const got = count(value, run);
      return got === null || isWithin(got, bound)
        ? null
        : fail(place, () => `expected ${expected}, got ${String(got)}`);
    };
  };
}
