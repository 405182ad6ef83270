import { errorText, escaped, quoted } from "../../errors.js";
import type { Parsed } from "../../ports.js";

/** What JSON can say. */
export type JsonValue =
  null | boolean | number | string | readonly JsonValue[] | JsonObject;

/** Only own properties count: ask {@link member}. */
export interface JsonObject {
  readonly [name: string]: JsonValue;
}

const MAX_LEVELS = 32;

/**
 * Reads UTF-8 JSON of at most 32 levels, without a byte order mark. An object that has a name twice
 * is refused wherever it is: two readers of the same bytes would see different artifacts.
 */
export function parseStrictJson(bytes: Uint8Array): Parsed<JsonValue> {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(
      bytes,
    );
  } catch {
    return { kind: "error", message: "it is not UTF-8" };
  }
  let value: JsonValue;
  try {
    // Deep nesting costs it no stack.
    value = JSON.parse(text) as JsonValue;
  } catch (thrown) {
    const message = `it is not JSON: ${escaped(errorText(thrown))}`;
    return { kind: "error", message };
  }
  const message = hazardIn(text);
  return message === null ? { kind: "ok", value } : { kind: "error", message };
}

/** Whether `value` is an object, not a list or null. */
export function isJsonObject(
  value: JsonValue | undefined,
): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What an object says under a name; `null` also when it says nothing, as writers in Go mean it. */
export function member(object: JsonObject, name: string): JsonValue {
  return Object.hasOwn(object, name) ? (object[name] ?? null) : null;
}

/** Strings and the characters that give JSON its structure. */
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]:]/gsu;

/** `text` is known to be JSON, so its tokens are enough. */
function hazardIn(text: string): string | null {
  /** Of every open object or list, the names it has so far. */
  const open: Set<string>[] = [];
  let lastString = "";
  for (const [token] of text.matchAll(TOKEN)) {
    if (token === "{" || token === "[") {
      open.push(new Set());
      if (open.length > MAX_LEVELS)
        return `it has more than ${MAX_LEVELS} levels`;
    } else if (token === "}" || token === "]") {
      open.pop();
    } else if (token === ":") {
      const name = JSON.parse(lastString) as string;
      if (open.at(-1)?.has(name) === true)
        return `an object has the field ${quoted(name)} twice`;
      open.at(-1)?.add(name);
    } else {
      lastString = token;
    }
  }
  return null;
}
