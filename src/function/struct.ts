import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

import { FunctionError } from "./error.js";
import { readMapEntry } from "./map-entry.js";
import {
  bytesValues,
  decodeText,
  WireReader,
  wireType,
  type WireRange,
} from "./wire.js";

/** How a Struct or Value is decoded, and what a refusal calls it. */
export interface StructRules {
  /** For example `the Input`. */
  readonly subject: string;
  /** Objects and lists that a value may lie in. */
  readonly maxDepth: number;
  /**
   * Of an object or list at this key of the outermost object only its kind is read: it comes out
   * empty, however deep it is.
   */
  readonly opaqueKey?: string;
}

/**
 * Values that are decoded at most, those that later ones replace included: they take tens of times
 * their encoded size in memory.
 */
export const maxStructValues = 100_000;

// google.protobuf.Struct and ListValue
export const structFieldsNumber = 1;
export const listValuesNumber = 1;

/** Numbers of the google.protobuf.Value fields. */
export const valueField = {
  null: 1,
  number: 2,
  string: 3,
  bool: 4,
  struct: 5,
  list: 6,
} as const;

/**
 * Decodes a `google.protobuf.Struct` whose bytes are `ranges`, one after the other.
 *
 * It follows the decoder's rules (the last key wins, repeated messages merge, a value may come
 * before its key) and its objects have no prototype, so `__proto__` is a key like any other: the
 * generated decoder would drop it.
 * @throws FunctionError wire-malformed, input-unreadable
 */
export function decodeStruct(
  bytes: Uint8Array,
  ranges: readonly WireRange[],
  rules: StructRules,
): JsonObject {
  const target = emptyObject();
  const decoding = { bytes, rules, valueCount: 0 };
  for (const range of ranges) mergeStruct(decoding, target, range, 1);
  return target;
}

/**
 * As {@link decodeStruct}, for a `google.protobuf.Value`; one without a kind is null.
 * @throws FunctionError wire-malformed, input-unreadable
 */
export function decodeValue(
  bytes: Uint8Array,
  ranges: readonly WireRange[],
  rules: StructRules,
): JsonValue {
  return mergedValue({ bytes, rules, valueCount: 0 }, ranges, 0);
}

/** Why a Struct or Value cannot be decoded although it is one. */
export function unreadable(subject: string, reason: string): FunctionError {
  return new FunctionError(
    "input-unreadable",
    `cannot read ${subject}: ${reason}`,
  );
}

interface Decoding {
  readonly bytes: Uint8Array;
  readonly rules: StructRules;
  valueCount: number;
}

function mergeStruct(
  decoding: Decoding,
  target: JsonObject,
  range: WireRange,
  depth: number,
): void {
  const { bytes, rules } = decoding;
  for (const entry of bytesValues(bytes, range, structFieldsNumber)) {
    const { key, values } = readMapEntry(bytes, entry);
    const content = depth === 1 && key === rules.opaqueKey ? "skip" : "decode";
    target[key] = mergedValue(decoding, values, depth, content);
  }
}

/** The last kind wins; an object or list that follows one of its own kind adds to it. */
function mergedValue(
  decoding: Decoding,
  ranges: readonly WireRange[],
  depth: number,
  content: "decode" | "skip" = "decode",
): JsonValue {
  const { subject, maxDepth, opaqueKey } = decoding.rules;
  if (depth > maxDepth) {
    const outside = opaqueKey === undefined ? "" : ` outside ${opaqueKey}`;
    throw unreadable(
      subject,
      `it nests deeper than ${maxDepth} levels${outside}`,
    );
  }
  decoding.valueCount += 1;
  if (decoding.valueCount > maxStructValues) {
    throw unreadable(subject, `it has more than ${maxStructValues} values`);
  }
  let value: JsonValue = null;
  for (const range of ranges) {
    const reader = new WireReader(decoding.bytes, range);
    while (reader.next())
      value = valueAfter(decoding, value, reader, depth, content);
  }
  return value;
}

function valueAfter(
  decoding: Decoding,
  value: JsonValue,
  reader: WireReader,
  depth: number,
  content: "decode" | "skip",
): JsonValue {
  const { bytes } = decoding;
  const range = reader.value();
  switch (reader.fieldNumber * 8 + reader.wireType) {
    case valueField.null * 8 + wireType.varint:
      return null;
    case valueField.number * 8 + wireType.fixed64:
      return decodeNumber(decoding, range);
    case valueField.string * 8 + wireType.bytes:
      return decodeText(bytes, range);
    case valueField.bool * 8 + wireType.varint:
      return bytes
        .subarray(range.start, range.end)
        .some((byte) => (byte & 0x7f) !== 0);
    case valueField.struct * 8 + wireType.bytes: {
      const target = isObject(value) ? value : emptyObject();
      if (content === "decode") mergeStruct(decoding, target, range, depth + 1);
      return target;
    }
    case valueField.list * 8 + wireType.bytes: {
      const target = Array.isArray(value) ? value : [];
      if (content === "decode") mergeList(decoding, target, range, depth + 1);
      return target;
    }
    default:
      return value;
  }
}

function mergeList(
  decoding: Decoding,
  target: JsonValue[],
  range: WireRange,
  depth: number,
): void {
  for (const item of bytesValues(decoding.bytes, range, listValuesNumber))
    target.push(mergedValue(decoding, [item], depth));
}

function decodeNumber({ bytes, rules }: Decoding, range: WireRange): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const number = view.getFloat64(range.start, true);
  if (!Number.isFinite(number))
    throw unreadable(rules.subject, `it holds ${number}, which is no JSON`);
  return number;
}

function emptyObject(): JsonObject {
  return Object.create(null) as JsonObject;
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
