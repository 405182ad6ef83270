import { type BackwardBits, type ForwardBits, forwardBits } from "./bits.js";
import { corrupt } from "./corrupt.js";

/** A decoding table of finite state entropy, RFC 8878 section 4.1. A state is an index. */
export interface FseTable {
  /** How many bits the first state has. */
  readonly accuracyLog: number;
  readonly symbols: Uint8Array;
  /** How many bits, added to the base, make the next state. */
  readonly bits: Uint8Array;
  readonly bases: Uint16Array;
}

/** Of what a table may be. */
interface FseBounds {
  readonly maxAccuracyLog: number;
  readonly maxSymbol: number;
}

/** Where a decoder stands; every state it takes is one of its table. */
interface FseState {
  symbol(): number;
  advance(): void;
}

export function fseState(table: FseTable, bits: BackwardBits): FseState {
  let state = bits.read(table.accuracyLog);
  return {
    symbol: () => table.symbols[state] ?? 0,
    advance() {
      const base = table.bases[state] ?? 0;
      state = base + bits.read(table.bits[state] ?? 0);
    },
  };
}

/** The table that has one symbol and needs no bits for it. */
export function oneSymbolTable(symbol: number): FseTable {
  return {
    accuracyLog: 0,
    symbols: Uint8Array.of(symbol),
    bits: new Uint8Array(1),
    bases: new Uint16Array(1),
  };
}

/**
 * Reads a table's description.
 * @throws LoaderError artifact-invalid
 */
export function readFseTable(
  view: DataView,
  start: number,
  end: number,
  { maxAccuracyLog, maxSymbol }: FseBounds,
): { readonly table: FseTable; readonly end: number } {
  const bits = forwardBits(view, start, end);
  const accuracyLog = 5 + bits.read(4);
  if (accuracyLog > maxAccuracyLog) throw corrupt("a table is too large");
  const counts: number[] = [];
  let remaining = 1 << accuracyLog;
  while (remaining > 0 && counts.length <= maxSymbol) {
    const count = readCount(bits, remaining);
    counts.push(count);
    remaining -= Math.abs(count);
    if (count !== 0) continue;
    let zeros: number;
    do {
      zeros = bits.read(2);
      for (let i = 0; i < zeros; i++) counts.push(0);
    } while (zeros === 3 && counts.length <= maxSymbol);
  }
  if (remaining !== 0 || counts.length > maxSymbol + 1)
    throw corrupt("a table does not add up");
  return { table: buildFseTable(counts, accuracyLog), end: bits.nextByte() };
}

/** The smaller values take one bit less. */
function readCount(bits: ForwardBits, remaining: number): number {
  const length = 32 - Math.clz32(remaining + 1);
  const value = bits.read(length);
  const lowMask = (1 << (length - 1)) - 1;
  const threshold = (1 << length) - 2 - remaining;
  if ((value & lowMask) < threshold) {
    bits.unreadOne();
    return (value & lowMask) - 1;
  }
  return (value > lowMask ? value - threshold : value) - 1;
}

/**
 * @param counts of states by symbol, -1 = one state at the end of the table; as many as there are
 * states, all in all
 */
export function buildFseTable(
  counts: readonly number[],
  accuracyLog: number,
): FseTable {
  const size = 1 << accuracyLog;
  const symbols = new Uint8Array(size);
  const nextStates = new Uint16Array(counts.length);
  let high = size;
  for (const [symbol, count] of counts.entries()) {
    nextStates[symbol] = Math.abs(count);
    if (count === -1) symbols[--high] = symbol;
  }
  // Visits every position below `high` once, because the counts add up to the size.
  const step = (size >> 1) + (size >> 3) + 3;
  let position = 0;
  for (const [symbol, count] of counts.entries()) {
    for (let i = 0; i < count; i++) {
      symbols[position] = symbol;
      do position = (position + step) & (size - 1);
      while (position >= high);
    }
  }
  const bits = new Uint8Array(size);
  const bases = new Uint16Array(size);
  for (const [state, symbol] of symbols.entries()) {
    const next = nextStates[symbol] ?? 0;
    nextStates[symbol] = next + 1;
    const count = accuracyLog - (31 - Math.clz32(next));
    bits[state] = count;
    bases[state] = (next << count) - size;
  }
  return { accuracyLog, symbols, bits, bases };
}
