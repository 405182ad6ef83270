import { quoted } from "../../../errors.js";
import type { JsonValue } from "../../json.js";
import { canonicalText } from "./canonical.js";
import { isMultiple } from "./decimal.js";
import { fail, numberText, valueText } from "./failure.js";
import {
  type Keyword,
  numberIn,
  textIn,
  textsIn,
  unexpected,
} from "./keyword.js";
import { Run } from "./run.js";
import type { Check } from "./schema.js";

const typeNames = [
  "null",
  "boolean",
  "object",
  "array",
  "number",
  "integer",
  "string",
];
const maxShownValues = 8;

/** `type` */
export const typeKeyword: Keyword = (use) => {
  const wanted = typeof use.value === "string" ? [use.value] : textsIn(use);
  if (wanted.length === 0 || wanted.some((name) => !typeNames.includes(name)))
    throw unexpected(use, `one or more of ${typeNames.join(", ")}`);
  const integers = wanted.includes("integer");
  return (value, place) => {
    const got = typeName(value);
    if (wanted.includes(got)) return null;
    if (integers && Number.isInteger(value)) return null;
    return fail(place, () => `got ${got}, want ${wanted.join(" or ")}`);
  };
};

/** `const` */
export const constKeyword: Keyword = ({ value }) => anyOfValues([value]);

/** `enum` */
export const enumKeyword: Keyword = (use) => {
  if (!Array.isArray(use.value)) throw unexpected(use, "a list");
  return anyOfValues(use.value as readonly JsonValue[]);
};

/** `multipleOf` */
export const multipleOfKeyword: Keyword = (use) => {
  const divisor = numberIn(use);
  if (divisor <= 0) throw unexpected(use, "a number above 0");
  return (value, place, run) => {
    if (typeof value !== "number") return null;
    run.spend(20);
    if (isMultiple(value, divisor)) return null;
    const expected = `a multiple of ${numberText(divisor)}`;
    return fail(place, () => `expected ${expected}, got ${numberText(value)}`);
  };
};

/**
 * `minimum`, `maximum` and their exclusive kin.
 * @param words for a message, such as `at least`
 */
export function limitKeyword(
  words: string,
  isWithin: (value: number, limit: number) => boolean,
): Keyword {
  return (use) => {
    const limit = numberIn(use);
    const expected = `${words} ${numberText(limit)}`;
    return (value, place) =>
      typeof value !== "number" || isWithin(value, limit)
        ? null
        : fail(place, () => `expected ${expected}, got ${numberText(value)}`);
  };
}

/** `pattern` */
export const patternKeyword: Keyword = (use) => {
  const pattern = use.compiler.pattern(textIn(use), use.pointer);
  return (value, place, run) =>
    typeof value !== "string" || run.matches(pattern, value)
      ? null
      : fail(place, () => `does not match pattern ${quoted(pattern.source)}`);
};

function typeName(value: JsonValue): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function anyOfValues(values: readonly JsonValue[]): Check {
  // No bound of its own: the manifest has one.
  const run = new Run(false, Infinity);
  const texts = new Set(values.map((value) => canonicalText(value, run)));
  const anyNested = values.some(isNested);
  const shown = values.slice(0, maxShownValues).map(valueText);
  if (values.length > maxShownValues) shown.push("…");
  const expected =
    values.length === 1 ? shown.join() : `one of ${shown.join(", ")}`;
  return (value, place, checking) => {
    // Writing a large object out to compare it with scalars would be work for nothing.
    const found =
      (anyNested || !isNested(value)) &&
      texts.has(canonicalText(value, checking));
    return found ? null : fail(place, () => `value must be ${expected}`);
  };
}

function isNested(value: JsonValue): boolean {
  return typeof value === "object" && value !== null;
}
