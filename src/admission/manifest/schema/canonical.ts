import { isJsonObject, type JsonObject, type JsonValue } from "../../json.js";
import type { Run } from "./run.js";

/**
 * A text that two values share when they are equal, whatever the order of their fields.
 * @throws WorkExceeded
 */
export function canonicalText(value: JsonValue, run: Run): string {
  if (value === null || typeof value !== "object") {
    const text = JSON.stringify(value);
    run.spendChars(text.length);
    return text;
  }
  run.enter();
  const text = isJsonObject(value)
    ? `{${fieldNames(value, run)
        .map((name) => fieldText(value, name, run))
        .join()}}`
    : `[${value.map((item) => canonicalText(item, run)).join()}]`;
  run.leave();
  run.spendChars(text.length);
  return text;
}

/**
 * An object's names in the order of the alphabet: that of a Struct on the wire is random, and the
 * error a config gets must not be.
 * @throws WorkExceeded
 */
export function fieldNames(value: JsonObject, run: Run): readonly string[] {
  const names = Object.keys(value);
  // Sorting takes its time.
  run.spend(names.length * 4);
  return names.sort();
}

function fieldText(object: JsonObject, name: string, run: Run): string {
  const value = object[name] ?? null;
  return `${JSON.stringify(name)}:${canonicalText(value, run)}`;
}
