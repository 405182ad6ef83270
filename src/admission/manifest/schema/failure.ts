import { quoted } from "../../../errors.js";
import type { JsonValue } from "../../json.js";
import { pointerText, type Place } from "./place.js";

/** Why a value does not match. */
export interface Failure {
  readonly at: Place;
  /** Made when asked for: most failures are one of many alternatives and never shown. */
  readonly text: () => string;
}

const maxChars = 300;
const maxValueChars = 40;

/** A failure of what is at `at`. */
export function fail(at: Place, text: () => string): Failure {
  return { at, text };
}

/** A failure on one line of at most 300 characters: the pointer, then what is wrong. */
export function failureText({ at, text }: Failure): string {
  const line = `${pointerText(at)}: ${text()}`;
  if (line.length <= maxChars) return line;
  // Half a character is no text.
  return `${line.slice(0, maxChars - 1).replace(/[\ud800-\udbff]$/u, "")}…`;
}

/** The failure that lies deepest, the first of them: the alternative that came closest. */
export function deepest(failures: readonly Failure[]): Failure | undefined {
  let found = failures[0];
  for (const failure of failures)
    if (found !== undefined && failure.at.depth > found.at.depth)
      found = failure;
  return found;
}

/** A value as a message shows it. */
export function valueText(value: JsonValue): string {
  if (typeof value === "string") return quoted(value, maxValueChars);
  if (typeof value === "number") return numberText(value);
  if (value === null || typeof value === "boolean") return String(value);
  return Array.isArray(value) ? "a list" : "an object";
}

/** A number with all the digits a double has, where JavaScript would write zeros. */
export function numberText(value: number): string {
  return Number.isInteger(value) && Math.abs(value) < 1e21
    ? String(BigInt(value))
    : String(value);
}

/** `1 item`, `2 items`. */
export function counted(count: number, one: string, many: string): string {
  return `${numberText(count)} ${count === 1 ? one : many}`;
}
