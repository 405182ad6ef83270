import { FunctionError } from "./error.js";
import { entryKeyNumber, readMapEntry } from "./map-entry.js";
import { piecesOf, tooMany } from "./pieces.js";
import type { ScannedRequest } from "./request.js";
import {
  bytesValues,
  decodeText,
  WireReader,
  wireType,
  type WireRange,
} from "./wire.js";

/** A step credential: its values by their keys. */
export type CredentialData = ReadonlyMap<string, Uint8Array>;

/** Keys of the step credentials that are read, all together; a Secret has 1 MiB at most. */
export const maxDataKeys = 16_384;

/** Names that one entry of `credentials` may have; encoders write one. */
export const maxEntryNames = 8;

/**
 * The request as a module may see it: without the step credentials that are not in `granted`, and
 * otherwise the caller's own bytes, in their order. Copies only when there is one to remove.
 *
 * What is kept is kept whole, a value that another replaces included: an entry is kept only when
 * each name in it is granted, so all its values belong to a granted credential, whichever name goes
 * with which value; and of several entries of one granted name all are kept. Whatever else has the
 * number of `credentials` goes, whether decoders look at it or not.
 * @throws FunctionError wire-malformed when an entry cannot be told granted or not
 */
export function withholdCredentials(
  request: ScannedRequest,
  granted: ReadonlySet<string>,
): Uint8Array {
  const { bytes } = request;
  const withheld = request.credentials.filter(
    (field) => !isGranted(bytes, field, granted),
  );
  return withheld.length === 0 ? bytes : without(bytes, withheld);
}

/**
 * Those of the named step credentials that the request carries, as a decoder reads them. The values
 * are the request's own bytes, not copies.
 * @throws FunctionError wire-malformed, also when they have more keys than {@link maxDataKeys}
 */
export function readCredentials(
  request: ScannedRequest,
  names: Iterable<string>,
): ReadonlyMap<string, CredentialData> {
  const { bytes } = request;
  const wanted = new Set(names);
  if (wanted.size === 0) return new Map();
  const found = new Map<string, readonly WireRange[]>();
  for (const field of request.credentials) {
    const entry = entryOf(bytes, field);
    if (entry === undefined) continue;
    const { key, values } = readMapEntry(bytes, entry);
    if (wanted.has(key)) found.set(key, values);
  }
  const reading = { bytes, keyCount: 0 };
  return new Map(
    [...found].map(([name, pieces]) => [name, readData(reading, pieces)]),
  );
}

const credentialsDataNumber = 1;
const dataEntriesNumber = 1;

/** The entry in a field with the number of `credentials`; none when decoders skip the field. */
function entryOf(bytes: Uint8Array, field: WireRange): WireRange | undefined {
  const reader = new WireReader(bytes, field);
  reader.next();
  return reader.wireType === wireType.bytes ? reader.value() : undefined;
}

/**
 * Decoders go by the last name in an entry and by "" when there is none. A sloppy one may go by the
 * first, or by what has the number of a name and is no text: then nobody can say whose it is.
 */
function isGranted(
  bytes: Uint8Array,
  field: WireRange,
  granted: ReadonlySet<string>,
): boolean {
  // Most requests: what is not forwarded need not be understood.
  if (granted.size === 0) return false;
  const entry = entryOf(bytes, field);
  if (entry === undefined) return false;
  let nameCount = 0;
  const reader = new WireReader(bytes, entry);
  while (reader.next()) {
    if (reader.fieldNumber !== entryKeyNumber) continue;
    if (reader.wireType !== wireType.bytes) return false;
    nameCount += 1;
    if (nameCount > maxEntryNames) throw tooMany("key", maxEntryNames);
    if (!granted.has(decodeText(bytes, reader.value()))) return false;
  }
  return nameCount > 0 || granted.has("");
}

/** One slice for what is between two ranges, none where they touch. */
function without(bytes: Uint8Array, removed: readonly WireRange[]): Uint8Array {
  const kept: Uint8Array[] = [];
  let keptFrom = 0;
  for (const { start, end } of removed) {
    if (start > keptFrom) kept.push(bytes.subarray(keptFrom, start));
    keptFrom = end;
  }
  kept.push(bytes.subarray(keptFrom));
  return Buffer.concat(kept);
}

interface Reading {
  readonly bytes: Uint8Array;
  keyCount: number;
}

/** From the pieces of one Credentials message. */
function readData(
  reading: Reading,
  credentials: readonly WireRange[],
): CredentialData {
  const { bytes } = reading;
  const data = new Map<string, Uint8Array>();
  for (const piece of piecesOf(
    bytes,
    credentials,
    credentialsDataNumber,
    "credential_data",
  )) {
    for (const entry of bytesValues(bytes, piece, dataEntriesNumber)) {
      countKey(reading);
      const { key, values } = readMapEntry(bytes, entry);
      const { start, end } = values.at(-1) ?? { start: 0, end: 0 };
      data.set(key, bytes.subarray(start, end));
    }
  }
  return data;
}

function countKey(reading: Reading): void {
  reading.keyCount += 1;
  if (reading.keyCount <= maxDataKeys) return;
  throw new FunctionError(
    "wire-malformed",
    `the step's credentials have more than ${maxDataKeys} keys`,
  );
}
