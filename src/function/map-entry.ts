import { addPiece } from "./pieces.js";
import { decodeText, WireReader, wireType, type WireRange } from "./wire.js";

/** The number of a map entry's key; that of its value is 2. */
export const entryKeyNumber = 1;
const entryValueNumber = 2;

/** Stays what it is, however much is taken from it. */
const unbounded: FieldBudget = { fields: Infinity };

/** An entry of a protobuf map with text for keys. */
export interface MapEntry {
  /** The last one; "" when there is none. */
  readonly key: string;
  /** Every piece of the value, wherever it stands. Messages merge, of scalars the last counts. */
  readonly values: readonly WireRange[];
}

/**
 * Reads one map entry as decoders do. Of several entries with one key the last counts, whole.
 * @throws FunctionError wire-malformed, also when the value comes in more pieces than are kept
 */
export function readMapEntry(bytes: Uint8Array, entry: WireRange): MapEntry {
  const values: WireRange[] = [];
  const reader = new WireReader(bytes, entry);
  let keyStart = 0;
  let keyEnd = 0;
  while (reader.next()) {
    if (reader.wireType !== wireType.bytes) continue;
    if (reader.fieldNumber === entryKeyNumber) {
      keyStart = reader.valueStart;
      keyEnd = reader.valueEnd;
    }
    if (reader.fieldNumber === entryValueNumber)
      addPiece(values, reader.value(), "value");
  }
  // Once and not for each: an entry may have millions.
  const key = decodeText(bytes, { start: keyStart, end: keyEnd });
  return { key, values };
}

/** What is left of the fields that may be looked at; those that share one take from one another. */
export interface FieldBudget {
  fields: number;
}

/**
 * Where the key of an entry is, undecoded: the last one, as decoders have it, and an empty range when
 * there is none. Undefined when the entry has more fields than `budget` has left.
 * @throws FunctionError wire-malformed
 */
export function findEntryKey(
  bytes: Uint8Array,
  entry: WireRange,
  budget: FieldBudget,
): WireRange | undefined {
  const reader = new WireReader(bytes, entry);
  let start = 0;
  let end = 0;
  while (reader.next()) {
    if (budget.fields === 0) return undefined;
    budget.fields -= 1;
    if (reader.wireType !== wireType.bytes) continue;
    if (reader.fieldNumber !== entryKeyNumber) continue;
    start = reader.valueStart;
    end = reader.valueEnd;
  }
  return { start, end };
}

/**
 * Whether `key`, in UTF-8, is what {@link readMapEntry} would read as the entry's. Decodes nothing:
 * a key that is not UTF-8 is just another one.
 * @throws FunctionError wire-malformed
 */
export function entryHasKey(
  bytes: Uint8Array,
  entry: WireRange,
  key: Uint8Array,
): boolean {
  // Cannot hold it: of millions of empty entries none is opened.
  if (entry.end - entry.start < key.length) return false;
  const found = findEntryKey(bytes, entry, unbounded);
  if (found === undefined || found.end - found.start !== key.length)
    return false;
  for (const [at, byte] of key.entries())
    if (bytes[found.start + at] !== byte) return false;
  return true;
}
