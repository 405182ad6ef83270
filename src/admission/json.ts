/** What `JSON.parse` returns. */
export type JsonValue =
  null | boolean | number | string | readonly JsonValue[] | JsonObject;

/** Only own properties count. */
export interface JsonObject {
  readonly [name: string]: JsonValue;
}

/** Whether `value` is an object, not a list or null. */
export function isJsonObject(
  value: JsonValue | undefined,
): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
