import { describe, fieldPath, invalid, invalidAt } from "../fields.js";
import type { JsonValue } from "../json.js";

/** Names of credentials and of keys in them: what Kubernetes allows. */
export const maxNameChars = 253;

/** Characters that end a line, or that a terminal obeys instead of showing. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;

/**
 * The text at `path`: one line of 1 to `maxChars` characters.
 * @throws AdmissionError input-invalid
 */
export function lineOf(
  value: JsonValue,
  path: string,
  maxChars: number,
): string {
  if (typeof value !== "string") {
    // What YAML takes for a number or a boolean, as in `version: 1.0`.
    const hint =
      typeof value === "number" || typeof value === "boolean"
        ? ": put it in quotes"
        : "";
    throw invalidAt(path, `expected a string, got ${describe(value)}${hint}`);
  }
  if (value === "") throw invalid(`${path} is empty`);
  if (value.length > maxChars) {
    throw invalid(
      `${path} is ${String(value.length)} characters long, expected at most ${String(maxChars)}`,
    );
  }
  if (INVISIBLE.test(value)) {
    throw invalidAt(
      path,
      `expected one line without control characters, got ${describe(value)}`,
    );
  }
  return value;
}

/**
 * What is in the required field `name` of the object at `path`.
 * @throws AdmissionError input-invalid
 */
export function required(
  value: JsonValue | undefined,
  path: string,
  name: string,
): JsonValue {
  if (value !== undefined) return value;
  throw invalid(`${fieldPath(path, name)} is required`);
}

/**
 * The list at `path`, of at most `maxItems`; empty when absent.
 * @throws AdmissionError input-invalid
 */
export function listOf(
  value: JsonValue | undefined,
  path: string,
  maxItems: number,
): readonly JsonValue[] {
  if (value === undefined) return [];
  if (!Array.isArray(value))
    throw invalidAt(path, `expected a list, got ${describe(value)}`);
  if (value.length > maxItems) {
    throw invalidAt(
      path,
      `expected at most ${String(maxItems)} items, got ${String(value.length)}`,
    );
  }
  return value as readonly JsonValue[];
}

/**
 * Refuses a text that comes twice.
 * @param pathOf the path of the item at an index
 * @throws AdmissionError input-invalid
 */
export function refuseTwice(
  texts: readonly string[],
  pathOf: (index: number) => string,
): void {
  const seen = new Map<string, number>();
  for (const [index, text] of texts.entries()) {
    const first = seen.get(text);
    if (first !== undefined) {
      throw invalidAt(
        pathOf(index),
        `${describe(text)} is in ${pathOf(first)} already`,
      );
    }
    seen.set(text, index);
  }
}
