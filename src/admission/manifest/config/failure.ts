import type { ErrorObject } from "ajv";

import { escaped } from "../../../errors.js";
import { isJsonObject, type JsonValue } from "../../json.js";
import { sentence } from "./sentence.js";
import type { Work } from "./work.js";

const maxChars = 300;
const maxPointerChars = 120;

/**
 * Of ajv's errors for a value those that the message needs: the last, which is the verdict, and
 * before it, when the verdict is that no alternative matches, the one that came closest. That is
 * the error that lies deepest, the first of them.
 * @throws Uncheckable
 */
export function summary(
  errors: readonly ErrorObject[],
  value: JsonValue,
  work: Work,
): ErrorObject[] {
  // It follows those of its then or else and says no more.
  const found = errors.filter(({ keyword }) => keyword !== "if");
  const verdict = found.pop();
  if (verdict === undefined) return [];
  const closest = hasAlternatives(verdict) ? deepest(found, work) : undefined;
  const few = closest === undefined ? [verdict] : [closest, verdict];
  // A name has no place in the config where it could be found again.
  if (typeof value === "string") for (const error of few) error.data ??= value;
  return few;
}

/**
 * A {@link summary} on one line of at most 300 characters, for example
 * `/greeting: got number, want string`.
 */
export function failureText(
  errors: readonly ErrorObject[],
  config: JsonValue,
): string {
  const verdict = errors.at(-1);
  if (verdict === undefined) throw new Error("a failure has an error");
  const closest = errors.length > 1 ? errors[0] : undefined;
  const line = `${pointerText(verdict)}: ${textOf(verdict, config)}${why(verdict, closest, config)}`;
  if (line.length <= maxChars) return line;
  // Half a character is no text.
  return `${line.slice(0, maxChars - 1).replace(/[\ud800-\udbff]$/u, "")}…`;
}

/** Whether the errors before it are what came of several schemas, or of one for another value. */
function hasAlternatives({ keyword, params }: ErrorObject): boolean {
  if (keyword === "oneOf") return params["passingSchemas"] === null;
  return keyword === "anyOf" || keyword === "propertyNames";
}

function deepest(
  errors: readonly ErrorObject[],
  work: Work,
): ErrorObject | undefined {
  let found: ErrorObject | undefined;
  let foundLevels = -1;
  for (const error of errors) {
    work.spendChars(error.instancePath.length);
    const levels = error.instancePath.split("/").length;
    if (levels <= foundLevels) continue;
    found = error;
    foundLevels = levels;
  }
  return found;
}

function why(
  verdict: ErrorObject,
  closest: ErrorObject | undefined,
  config: JsonValue,
): string {
  if (closest === undefined) return "";
  const text = textOf(closest, config);
  return verdict.keyword === "propertyNames"
    ? `: ${text}`
    : `: ${pointerText(closest)}: ${text}`;
}

function textOf(error: ErrorObject, config: JsonValue): string {
  const { keyword, params, instancePath, propertyName, data } = error;
  const value = data ?? propertyName ?? valueAt(config, instancePath);
  return sentence({ keyword, params, value: value as JsonValue });
}

/** Cut to what a message can hold; the config itself is `/`. */
function pointerText({ instancePath }: ErrorObject): string {
  return escaped(instancePath === "" ? "/" : instancePath, maxPointerChars);
}

function valueAt(config: JsonValue, pointer: string): JsonValue {
  let value: JsonValue | undefined = config;
  for (const key of pointer.split("/").slice(1)) {
    const name = key.replaceAll("~1", "/").replaceAll("~0", "~");
    if (Array.isArray(value)) value = (value as JsonValue[])[Number(name)];
    else if (isJsonObject(value)) value = value[name];
  }
  return value ?? null;
}
