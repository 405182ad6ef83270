import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

import { FunctionError } from "./error.js";
import { WireReader, wireType, type WireRange } from "./wire.js";

/** Levels of objects and lists that {@link decodeStruct} follows. */
export const maxStructDepth = 32;

/**
 * Decodes a `google.protobuf.Struct` whose bytes are `ranges`, one after the other.
 *
 * It follows the decoder's rules (the last key wins, repeated messages merge, a value may come
 * before its key) and its objects have no prototype, so `__proto__` is a key like any other: the
 * generated decoder would drop it. Of an object or list at `opaqueKey` only its kind is read: it
 * comes out empty, however deep it is.
 * @throws FunctionError wire-malformed, input-unreadable
 */
export function decodeStruct(
  bytes: Uint8Array,
  ranges: readonly WireRange[],
  opaqueKey: string,
): JsonObject {
  const target = emptyObject();
  for (const range of ranges) mergeStruct(target, bytes, range, 1, opaqueKey);
  return target;
}

// google.protobuf: Struct {1 fields}, its entries {1 key, 2 value}, ListValue {1 values}.
const fieldsNumber = 1;
const keyNumber = 1;
const valueNumber = 2;
const valuesNumber = 1;

// google.protobuf.Value
const nullNumber = 1;
const numberNumber = 2;
const stringNumber = 3;
const boolNumber = 4;
const structNumber = 5;
const listNumber = 6;

function mergeStruct(
  target: JsonObject,
  bytes: Uint8Array,
  range: WireRange,
  depth: number,
  opaqueKey?: string,
): void {
  const reader = new WireReader(bytes, range);
  while (reader.next()) {
    if (
      reader.fieldNumber !== fieldsNumber ||
      reader.wireType !== wireType.bytes
    )
      continue;
    const { key, values } = readEntry(bytes, reader.value());
    const content = key === opaqueKey ? "skip" : "decode";
    target[key] = decodeValue(bytes, values, depth, content);
  }
}

function readEntry(
  bytes: Uint8Array,
  range: WireRange,
): { key: string; values: WireRange[] } {
  let key = "";
  const values: WireRange[] = [];
  const reader = new WireReader(bytes, range);
  while (reader.next()) {
    if (reader.wireType !== wireType.bytes) continue;
    if (reader.fieldNumber === keyNumber)
      key = decodeText(bytes, reader.value());
    if (reader.fieldNumber === valueNumber) values.push(reader.value());
  }
  return { key, values };
}

/** The last kind wins; an object or list that follows one of its own kind adds to it. */
function decodeValue(
  bytes: Uint8Array,
  ranges: readonly WireRange[],
  depth: number,
  content: "decode" | "skip" = "decode",
): JsonValue {
  if (depth > maxStructDepth) {
    throw unreadable(
      `it nests deeper than ${maxStructDepth} levels outside config`,
    );
  }
  let value: JsonValue = null;
  for (const range of ranges) {
    const reader = new WireReader(bytes, range);
    while (reader.next())
      value = valueAfter(value, bytes, reader, depth, content);
  }
  return value;
}

function valueAfter(
  value: JsonValue,
  bytes: Uint8Array,
  reader: WireReader,
  depth: number,
  content: "decode" | "skip",
): JsonValue {
  const range = reader.value();
  switch (reader.fieldNumber * 8 + reader.wireType) {
    case nullNumber * 8 + wireType.varint:
      return null;
    case numberNumber * 8 + wireType.fixed64:
      return decodeNumber(bytes, range);
    case stringNumber * 8 + wireType.bytes:
      return decodeText(bytes, range);
    case boolNumber * 8 + wireType.varint:
      return bytes
        .subarray(range.start, range.end)
        .some((byte) => (byte & 0x7f) !== 0);
    case structNumber * 8 + wireType.bytes: {
      const target = isObject(value) ? value : emptyObject();
      if (content === "decode") mergeStruct(target, bytes, range, depth + 1);
      return target;
    }
    case listNumber * 8 + wireType.bytes: {
      const target = Array.isArray(value) ? value : [];
      if (content === "decode") mergeList(target, bytes, range, depth + 1);
      return target;
    }
    default:
      return value;
  }
}

function mergeList(
  target: JsonValue[],
  bytes: Uint8Array,
  range: WireRange,
  depth: number,
): void {
  const reader = new WireReader(bytes, range);
  while (reader.next()) {
    if (
      reader.fieldNumber !== valuesNumber ||
      reader.wireType !== wireType.bytes
    )
      continue;
    target.push(decodeValue(bytes, [reader.value()], depth));
  }
}

function decodeNumber(bytes: Uint8Array, range: WireRange): number {
  const number = new DataView(bytes.buffer, bytes.byteOffset).getFloat64(
    range.start,
    true,
  );
  if (!Number.isFinite(number))
    throw unreadable(`it holds ${number}, which is no JSON`);
  return number;
}

const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Decodes a protobuf `string`.
 * @throws FunctionError wire-malformed when it is not UTF-8
 */
export function decodeText(bytes: Uint8Array, range: WireRange): string {
  try {
    return strictUtf8.decode(bytes.subarray(range.start, range.end));
  } catch (cause) {
    const message = "not a protobuf message: a string is not UTF-8";
    throw new FunctionError("wire-malformed", message, { cause });
  }
}

function emptyObject(): JsonObject {
  return Object.create(null) as JsonObject;
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function unreadable(reason: string): FunctionError {
  return new FunctionError(
    "input-unreadable",
    `cannot read the Input: ${reason}`,
  );
}
