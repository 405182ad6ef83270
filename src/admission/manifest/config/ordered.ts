import { isJsonObject, type JsonObject, type JsonValue } from "../../json.js";

/** An object without prototype, which has no names but its own. */
export function emptyObject(): Record<string, JsonValue> {
  return Object.create(null) as Record<string, JsonValue>;
}

/**
 * A copy that is the same whatever the order of the fields, which in a Struct on the wire is
 * random: the names of every object are in the order of the alphabet, so that its JSON is equal
 * when the value is and the first thing wrong with it is always the same.
 * @param visit sees every value before it is copied, and how deep it is; throws when it is too much
 */
export function ordered(
  value: JsonValue,
  visit: (value: JsonValue, level: number) => void,
  level = 0,
): JsonValue {
  visit(value, level);
  if (value === null || typeof value !== "object") return value;
  return isJsonObject(value)
    ? orderedFields(value, visit, level)
    : value.map((item) => ordered(item, visit, level + 1));
}

function orderedFields(
  object: JsonObject,
  visit: (value: JsonValue, level: number) => void,
  level: number,
): JsonObject {
  const copy = emptyObject();
  for (const name of Object.keys(object).sort())
    copy[name] = ordered(object[name] ?? null, visit, level + 1);
  return copy;
}
