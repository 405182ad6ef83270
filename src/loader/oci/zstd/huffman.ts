import { backwardBits } from "./bits.js";
import { corrupt } from "./corrupt.js";
import { fseState, readFseTable } from "./fse.js";

/** A decoding table, RFC 8878 section 4.2: the next `maxBits` bits are an index into it. */
export interface HuffmanTable {
  readonly maxBits: number;
  readonly symbols: Uint8Array;
  /** How many of the bits the symbol's code has. */
  readonly bits: Uint8Array;
}

const MAX_BITS = 11;
/** The weight of one more follows from theirs. */
const MAX_WEIGHTS = 255;
const WEIGHT_BOUNDS = { maxAccuracyLog: 6, maxSymbol: MAX_BITS };

/**
 * Reads a tree's description.
 * @throws LoaderError artifact-invalid
 */
export function readHuffmanTable(
  view: DataView,
  start: number,
  end: number,
): { readonly table: HuffmanTable; readonly end: number } {
  if (start >= end) throw corrupt("a Huffman tree is missing");
  const header = view.getUint8(start);
  const first = start + 1;
  const areCompressed = header < 128;
  const count = header - 127;
  const last = first + (areCompressed ? header : (count + 1) >> 1);
  if (last > end) throw corrupt("a Huffman tree is cut short");
  const weights = areCompressed
    ? compressedWeights(view, first, last)
    : plainWeights(view, first, count);
  return { table: buildTable(weights), end: last };
}

/**
 * Fills `output` from the bytes between `start` and `end`, which must be used up by that.
 * @throws LoaderError artifact-invalid
 */
export function readHuffmanStream(
  view: DataView,
  start: number,
  end: number,
  { maxBits, symbols, bits: lengths }: HuffmanTable,
  output: Uint8Array,
): void {
  const bits = backwardBits(view, start, end);
  for (let i = 0; i < output.length; i++) {
    const index = bits.peek(maxBits);
    output[i] = symbols[index] ?? 0;
    bits.read(lengths[index] ?? 0);
  }
  if (bits.left() !== 0) throw corrupt("literals do not fill their stream");
}

function plainWeights(view: DataView, start: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => {
    const byte = view.getUint8(start + (i >> 1));
    return i % 2 === 0 ? byte >> 4 : byte & 15;
  });
}

/** By two states that take turns, until the bits run out. */
function compressedWeights(
  view: DataView,
  start: number,
  end: number,
): number[] {
  const description = readFseTable(view, start, end, WEIGHT_BOUNDS);
  const bits = backwardBits(view, description.end, end);
  let current = fseState(description.table, bits);
  let other = fseState(description.table, bits);
  const weights: number[] = [];
  // A table whose states need no bits would never come to an end.
  while (weights.length < MAX_WEIGHTS - 1) {
    weights.push(current.symbol());
    current.advance();
    if (bits.left() < 0) {
      weights.push(other.symbol());
      return weights;
    }
    [current, other] = [other, current];
  }
  throw corrupt("a Huffman tree has too many weights");
}

function buildTable(weights: readonly number[]): HuffmanTable {
  let sum = 0;
  for (const weight of weights) {
    if (weight > MAX_BITS) throw corrupt("a Huffman code is too long");
    sum += weight === 0 ? 0 : 1 << (weight - 1);
  }
  const maxBits = 32 - Math.clz32(sum);
  const missing = (1 << maxBits) - sum;
  if (sum === 0 || maxBits > MAX_BITS || (missing & (missing - 1)) !== 0)
    throw corrupt("a Huffman tree does not add up");
  const all = [...weights, 32 - Math.clz32(missing)];

  const symbols = new Uint8Array(1 << maxBits);
  const bits = new Uint8Array(1 << maxBits);
  let next = 0;
  for (let weight = 1; weight <= maxBits; weight++) {
    for (const [symbol, its] of all.entries()) {
      if (its !== weight) continue;
      const end = next + (1 << (weight - 1));
      symbols.fill(symbol, next, end);
      bits.fill(maxBits + 1 - weight, next, end);
      next = end;
    }
  }
  return { maxBits, symbols, bits };
}
