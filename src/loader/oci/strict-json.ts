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
/** What takes time to read is how many values there are. Manifests have a few dozen, rarely hundreds. */
const MAX_MARKS = 10_000;

/**
 * Reads UTF-8 JSON of at most 32 levels and some thousand values, without a byte order mark. An
 * object that has a name twice is refused wherever it is: two readers of the same bytes would see
 * different artifacts.
 */
export function parseStrictJson(bytes: Uint8Array): Parsed<JsonValue> {
  if (hasTooManyMarks(bytes))
    return {
      kind: "error",
      message: `it has more than ${MAX_MARKS} brackets, colons and commas`,
    };
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

/** Of the characters that stand before or after a value, outside of strings. */
function hasTooManyMarks(bytes: Uint8Array): boolean {
  let marks = 0;
  let isInString = false;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    if (byte === QUOTE) isInString = !isInString;
    else if (isInString && byte === BACKSLASH) at += 1;
    else if (!isInString && isMark(byte)) marks += 1;
    if (marks > MAX_MARKS) return true;
  }
  return false;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
/** Curly ones differ in this bit. */
const CURLY = 0x20;
const OPENING = 0x5b;
const CLOSING = 0x5d;

function isMark(byte: number): boolean {
  const square = byte & ~CURLY;
  return (
    byte === COMMA || byte === COLON || square === OPENING || square === CLOSING
  );
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
