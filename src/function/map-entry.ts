import { decodeText, WireReader, wireType, type WireRange } from "./wire.js";

/** The number of a map entry's key; that of its value is 2. */
export const entryKeyNumber = 1;
const entryValueNumber = 2;

/** An entry of a protobuf map with text for keys. */
export interface MapEntry {
  /** The last one; "" when there is none. */
  readonly key: string;
  /** Every piece of the value, wherever it stands. Messages merge, of scalars the last counts. */
  readonly values: readonly WireRange[];
}

/**
 * Reads one map entry as decoders do. Of several entries with one key the last counts, whole.
 * @throws FunctionError wire-malformed
 */
export function readMapEntry(bytes: Uint8Array, entry: WireRange): MapEntry {
  let key = "";
  const values: WireRange[] = [];
  const reader = new WireReader(bytes, entry);
  while (reader.next()) {
    if (reader.wireType !== wireType.bytes) continue;
    if (reader.fieldNumber === entryKeyNumber)
      key = decodeText(bytes, reader.value());
    if (reader.fieldNumber === entryValueNumber) values.push(reader.value());
  }
  return { key, values };
}
