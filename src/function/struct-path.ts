import type { PathSegment } from "../admission/index.js";
import { entryHasKey, readMapEntry } from "./map-entry.js";
import { listValuesNumber, structFieldsNumber } from "./struct.js";
import { contentOf, type ValueContent } from "./value-content.js";
import { bytesValues, WireReader, wireType, type WireRange } from "./wire.js";

/** Where a value lies in a Struct. */
export type ValueLookup =
  /** The pieces of a `google.protobuf.Value`, which merge. */
  | { readonly kind: "found"; readonly pieces: readonly WireRange[] }
  /** `at` is the index of the segment that leads nowhere. */
  | { readonly kind: "missing"; readonly at: number };

/**
 * Finds the value at `path`, of one segment at least, in the `google.protobuf.Struct` whose bytes
 * are `struct`, one after the other. It sees what a decoder would, and steps over all that is not
 * on the path, however large or deep.
 * @throws FunctionError wire-malformed
 */
export function findValue(
  bytes: Uint8Array,
  struct: readonly WireRange[],
  path: readonly PathSegment[],
): ValueLookup {
  let container: ValueContent = { kind: "struct", pieces: struct };
  let pieces: readonly WireRange[] = [];
  for (const [at, segment] of path.entries()) {
    if (at > 0) container = contentOf(bytes, pieces);
    const value = child(bytes, container, segment);
    if (value === undefined) return { kind: "missing", at };
    pieces = value;
  }
  return { kind: "found", pieces };
}

function child(
  bytes: Uint8Array,
  container: ValueContent,
  segment: PathSegment,
): readonly WireRange[] | undefined {
  if (container.kind === "struct" && typeof segment === "string")
    return entryAt(bytes, container.pieces, segment);
  if (container.kind === "list" && typeof segment === "number")
    return elementAt(bytes, container.pieces, segment);
  return undefined;
}

/**
 * Values of one key do not merge across entries: the last entry counts. Keys are compared as bytes,
 * for decoding those of a large object takes longer than all else; so one that is not UTF-8 goes
 * unnoticed, as do the values that are stepped over.
 */
function entryAt(
  bytes: Uint8Array,
  struct: readonly WireRange[],
  wanted: string,
): readonly WireRange[] | undefined {
  const key = Buffer.from(wanted);
  // Half a surrogate pair has no UTF-8: it would be taken for the character it is replaced by.
  if (key.toString() !== wanted) return undefined;
  let found: WireRange | undefined;
  for (const piece of struct) {
    const reader = new WireReader(bytes, piece);
    while (reader.next()) {
      if (reader.fieldNumber !== structFieldsNumber) continue;
      if (reader.wireType !== wireType.bytes) continue;
      if (entryHasKey(bytes, reader.value(), key)) found = reader.value();
    }
  }
  return found && readMapEntry(bytes, found).values;
}

function elementAt(
  bytes: Uint8Array,
  list: readonly WireRange[],
  index: number,
): readonly WireRange[] | undefined {
  let at = 0;
  for (const piece of list) {
    for (const element of bytesValues(bytes, piece, listValuesNumber)) {
      if (at === index) return [element];
      at += 1;
    }
  }
  return undefined;
}
