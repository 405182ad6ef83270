import { buildFseTable, type FseTable } from "./fse.js";

/** What the three numbers of a sequence are. */
export type CodeName = "literalLengths" | "offsets" | "matchLengths";

interface Code {
  readonly name: CodeName;
  readonly maxAccuracyLog: number;
  readonly maxSymbol: number;
  readonly predefined: FseTable;
  /** Where its mode lies in the byte of modes. */
  readonly modeShift: number;
}

// RFC 8878 section 3.1.1.3.2.2.
const LITERAL_LENGTHS: Code = {
  name: "literalLengths",
  maxAccuracyLog: 9,
  maxSymbol: 35,
  predefined: buildFseTable(
    [
      4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2,
      3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1,
    ],
    6,
  ),
  modeShift: 6,
};
const OFFSETS: Code = {
  name: "offsets",
  maxAccuracyLog: 8,
  maxSymbol: 31,
  predefined: buildFseTable(
    [
      1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
      -1, -1, -1, -1, -1,
    ],
    5,
  ),
  modeShift: 4,
};
const MATCH_LENGTHS: Code = {
  name: "matchLengths",
  maxAccuracyLog: 9,
  maxSymbol: 52,
  predefined: buildFseTable(
    [
      1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
      1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1,
      -1, -1, -1, -1,
    ],
    6,
  ),
  modeShift: 2,
};

/** In the order in which a block describes them. */
export const CODES: readonly Code[] = [LITERAL_LENGTHS, OFFSETS, MATCH_LENGTHS];

/** How many bits are added to each code's first length, RFC 8878 section 3.1.1.3.2.1.1. */
export const LITERAL_LENGTH_BITS = Uint8Array.of(
  ...Array.from({ length: 16 }, () => 0),
  ...[1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
);
/** As {@link LITERAL_LENGTH_BITS}. */
export const MATCH_LENGTH_BITS = Uint8Array.of(
  ...Array.from({ length: 32 }, () => 0),
  ...[1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
);
/** Each code's first length. */
export const LITERAL_LENGTH_BASES = basesOf(LITERAL_LENGTH_BITS, 0);
/** Each code's first length. */
export const MATCH_LENGTH_BASES = basesOf(MATCH_LENGTH_BITS, 3);
/** More bits would point beyond any window that is allowed. */
export const MAX_OFFSET_CODE = 24;

/** Each code's lengths begin where those of the code before it end. */
function basesOf(bits: Uint8Array, first: number): Uint32Array {
  const bases = new Uint32Array(bits.length);
  let next = first;
  for (const [code, count] of bits.entries()) {
    bases[code] = next;
    next += 1 << count;
  }
  return bases;
}
