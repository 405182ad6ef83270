import { quoted } from "../errors.js";
import { findEntryKey } from "./map-entry.js";
import { maxScannedFields, responseField } from "./response-fields.js";
import { decodeText, WireReader, wireType, type WireRange } from "./wire.js";

/**
 * The `count` largest desired resources of a response with their sizes, for a message; "" when it
 * has none. Of what the bound on scanned fields lets it see.
 * @throws FunctionError wire-malformed
 */
export function describeLargestResources(
  response: Uint8Array,
  count: number,
): string {
  return largestEntries(response, count)
    .map((entry) => {
      const name = quoted(keyOf(response, entry), 64);
      return `${name} ${sizeOf(entry)} bytes`;
    })
    .join(", ");
}

const stateResourcesNumber = 2;

function largestEntries(response: Uint8Array, count: number): WireRange[] {
  let largest: WireRange[] = [];
  let scanned = 0;
  const reader = new WireReader(response);
  while (scanned++ < maxScannedFields && reader.next()) {
    if (
      reader.fieldNumber !== responseField.desired ||
      reader.wireType !== wireType.bytes
    )
      continue;
    const state = new WireReader(response, reader.value());
    while (scanned++ < maxScannedFields && state.next()) {
      if (
        state.fieldNumber !== stateResourcesNumber ||
        state.wireType !== wireType.bytes
      )
        continue;
      const entry = state.value();
      if (sizeOf(entry) <= sizeOf(largest[count - 1])) continue;
      largest = [...largest, entry]
        .sort((a, b) => sizeOf(b) - sizeOf(a))
        .slice(0, count);
    }
  }
  return largest;
}

function sizeOf(range: WireRange | undefined): number {
  return range === undefined ? 0 : range.end - range.start;
}

function keyOf(response: Uint8Array, range: WireRange): string {
  const key = findEntryKey(response, range, { fields: maxScannedFields });
  return key === undefined ? "" : decodeText(response, key);
}
