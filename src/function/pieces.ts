import { FunctionError } from "./error.js";
import { bytesValues, type WireRange } from "./wire.js";

/**
 * Pieces that one message may come in. Decoders merge any number, encoders write one; and each that
 * is kept takes tens of times the two bytes it may have on the wire.
 */
export const maxPieces = 64;

/**
 * Adds one more piece of the field `name` to those that have been found.
 * @throws FunctionError wire-malformed when there are more than `max`
 */
export function addPiece(
  pieces: WireRange[],
  piece: WireRange,
  name: string,
  max = maxPieces,
): void {
  if (pieces.length === max) throw tooMany(name, max);
  pieces.push(piece);
}

/**
 * All values of the bytes field `name` in the pieces of one message.
 * @throws FunctionError wire-malformed, also when there are more than {@link maxPieces}
 */
export function piecesOf(
  bytes: Uint8Array,
  message: readonly WireRange[],
  fieldNumber: number,
  name: string,
): WireRange[] {
  const pieces: WireRange[] = [];
  for (const range of message) {
    for (const piece of bytesValues(bytes, range, fieldNumber))
      addPiece(pieces, piece, name);
  }
  return pieces;
}

/** Of a field that is there too often for a request anybody means. */
export function tooMany(name: string, max: number): FunctionError {
  return new FunctionError(
    "wire-malformed",
    `the field ${name} occurs more than ${max} times in one message`,
  );
}
