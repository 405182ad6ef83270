import type { PathSegment } from "../admission/index.js";
import { readMapEntry } from "./map-entry.js";
import { listValuesNumber, structFieldsNumber, valueField } from "./struct.js";
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
  let container: Container = { kind: "struct", pieces: struct };
  let pieces: readonly WireRange[] = [];
  for (const [at, segment] of path.entries()) {
    if (at > 0) container = containerOf(bytes, pieces);
    const value = child(bytes, container, segment);
    if (value === undefined) return { kind: "missing", at };
    pieces = value;
  }
  return { kind: "found", pieces };
}

/** The pieces of a Struct or ListValue, which merge; of a value of another kind there are none. */
interface Container {
  readonly kind: "struct" | "list" | "none";
  readonly pieces: readonly WireRange[];
}

function child(
  bytes: Uint8Array,
  { kind, pieces }: Container,
  segment: PathSegment,
): readonly WireRange[] | undefined {
  if (kind === "struct" && typeof segment === "string")
    return entryAt(bytes, pieces, segment);
  if (kind === "list" && typeof segment === "number")
    return elementAt(bytes, pieces, segment);
  return undefined;
}

/** Values of one key do not merge across entries: the last entry counts. */
function entryAt(
  bytes: Uint8Array,
  struct: readonly WireRange[],
  wanted: string,
): readonly WireRange[] | undefined {
  let found: readonly WireRange[] | undefined;
  for (const piece of struct) {
    for (const entry of bytesValues(bytes, piece, structFieldsNumber)) {
      const { key, values } = readMapEntry(bytes, entry);
      if (key === wanted) found = values;
    }
  }
  return found;
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

/** The last kind wins; an object or list that follows one of its own kind adds to it. */
function containerOf(
  bytes: Uint8Array,
  value: readonly WireRange[],
): Container {
  let kind: Container["kind"] = "none";
  let pieces: WireRange[] = [];
  for (const piece of value) {
    const reader = new WireReader(bytes, piece);
    while (reader.next()) {
      const next = kindOf(reader);
      if (next === undefined) continue;
      if (next !== kind) pieces = [];
      if (next !== "none") pieces.push(reader.value());
      kind = next;
    }
  }
  return { kind, pieces };
}

/** Undefined for a field that is none of a Value's. */
function kindOf(reader: WireReader): Container["kind"] | undefined {
  switch (reader.fieldNumber * 8 + reader.wireType) {
    case valueField.struct * 8 + wireType.bytes:
      return "struct";
    case valueField.list * 8 + wireType.bytes:
      return "list";
    case valueField.null * 8 + wireType.varint:
    case valueField.number * 8 + wireType.fixed64:
    case valueField.string * 8 + wireType.bytes:
    case valueField.bool * 8 + wireType.varint:
      return "none";
    default:
      return undefined;
  }
}
