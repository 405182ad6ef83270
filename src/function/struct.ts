import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

import { FunctionError } from "./error.js";
import { readMapEntry } from "./map-entry.js";
import { contentOf } from "./value-content.js";
import { bytesValues, decodeText, type WireRange } from "./wire.js";

/** How a Struct or Value is decoded, and what a refusal calls it. */
export interface StructRules {
  /** For example `the Input`. */
  readonly subject: string;
  /** Objects and lists that a value may lie in. */
  readonly maxDepth: number;
  /**
   * Values that are decoded at most, those of a key that a later one replaces included: they take
   * tens of times their encoded size in memory.
   */
  readonly maxValues: number;
  /**
   * Of an object or list at this key of the outermost object only its kind is read: it comes out
   * empty, however deep it is.
   */
  readonly opaqueKey?: string;
}

// google.protobuf.Struct and ListValue
export const structFieldsNumber = 1;
export const listValuesNumber = 1;

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

function mergedValue(
  decoding: Decoding,
  ranges: readonly WireRange[],
  depth: number,
  content: "decode" | "skip" = "decode",
): JsonValue {
  countValue(decoding, depth);
  const { bytes } = decoding;
  const found = contentOf(bytes, ranges);
  switch (found.kind) {
    case "null":
      return null;
    case "number":
      return decodeNumber(decoding, found.scalar);
    case "string":
      return decodeText(bytes, found.scalar);
    case "bool":
      return bytes
        .subarray(found.scalar.start, found.scalar.end)
        .some((byte) => (byte & 0x7f) !== 0);
    case "struct": {
      const target = emptyObject();
      if (content === "skip") return target;
      for (const piece of found.pieces)
        mergeStruct(decoding, target, piece, depth + 1);
      return target;
    }
    case "list": {
      const target: JsonValue[] = [];
      if (content === "skip") return target;
      for (const piece of found.pieces)
        mergeList(decoding, target, piece, depth + 1);
      return target;
    }
  }
}

function countValue(decoding: Decoding, depth: number): void {
  const { subject, maxDepth, maxValues, opaqueKey } = decoding.rules;
  const outside = opaqueKey === undefined ? "" : ` outside ${opaqueKey}`;
  if (depth > maxDepth) {
    throw unreadable(
      subject,
      `it nests deeper than ${maxDepth} levels${outside}`,
    );
  }
  decoding.valueCount += 1;
  if (decoding.valueCount > maxValues) {
    throw unreadable(subject, `it has more than ${maxValues} values${outside}`);
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
