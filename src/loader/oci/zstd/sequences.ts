import { type BackwardBits, backwardBits } from "./bits.js";
import { corrupt } from "./corrupt.js";
import {
  fseState,
  type FseTable,
  oneSymbolTable,
  readFseTable,
} from "./fse.js";
import type { History } from "./history.js";
import {
  CODES,
  type CodeName,
  LITERAL_LENGTH_BASES,
  LITERAL_LENGTH_BITS,
  MATCH_LENGTH_BASES,
  MATCH_LENGTH_BITS,
  MAX_OFFSET_CODE,
} from "./sequence-codes.js";

/** What the sequences of a frame's later blocks may use again. */
interface SequenceState {
  tables: Partial<Record<CodeName, FseTable>>;
  /** The last three offsets, latest first. */
  offsets: readonly [number, number, number];
}

/** At the beginning of a frame. */
export function firstSequenceState(): SequenceState {
  return { tables: {}, offsets: [1, 4, 8] };
}

/**
 * Reads a block's sequences section, RFC 8878 section 3.1.1.3.2, and appends to the history what it
 * makes of the literals. A block's work is bounded by what it may make.
 * @throws LoaderError artifact-invalid
 */
export function runSequences(
  view: DataView,
  start: number,
  end: number,
  literals: Uint8Array,
  state: SequenceState,
  history: History,
  maxBytes: number,
): void {
  const { count, next } = readCount(view, start, end);
  let used = 0;
  if (count === 0) {
    if (next !== end) throw corrupt("a block has more bytes than it needs");
  } else {
    const bits = readTables(view, next, end, state);
    used = runAll(bits, count, literals, state, history, maxBytes);
  }
  if (history.blockBytes() + literals.length - used > maxBytes)
    throw corrupt("a block is too long");
  history.append(literals, used, literals.length);
}

/** Returns how many literals were used. */
function runAll(
  bits: BackwardBits,
  count: number,
  literals: Uint8Array,
  state: SequenceState,
  history: History,
  maxBytes: number,
): number {
  const { tables } = state;
  const lengths = fseState(tableOf(tables.literalLengths), bits);
  const offsets = fseState(tableOf(tables.offsets), bits);
  const matches = fseState(tableOf(tables.matchLengths), bits);
  let used = 0;
  for (let i = 0; i < count; i++) {
    if (i > 0) {
      lengths.advance();
      matches.advance();
      offsets.advance();
    }
    const offsetCode = offsets.symbol();
    if (offsetCode > MAX_OFFSET_CODE)
      throw corrupt("a match lies too far back");
    const offsetValue = (1 << offsetCode) + bits.read(offsetCode);
    const match = extended(
      matches.symbol(),
      MATCH_LENGTH_BASES,
      MATCH_LENGTH_BITS,
      bits,
    );
    const length = extended(
      lengths.symbol(),
      LITERAL_LENGTH_BASES,
      LITERAL_LENGTH_BITS,
      bits,
    );
    if (
      bits.left() < 0 ||
      used + length > literals.length ||
      history.blockBytes() + length + match > maxBytes
    ) {
      throw corrupt("a sequence asks for more than there is");
    }
    history.append(literals, used, used + length);
    used += length;
    history.appendMatch(nextOffset(state, offsetValue, length), match);
  }
  if (bits.left() !== 0) throw corrupt("sequences do not fill their stream");
  return used;
}

function extended(
  code: number,
  bases: Uint32Array,
  lengths: Uint8Array,
  bits: BackwardBits,
): number {
  return (bases[code] ?? 0) + bits.read(lengths[code] ?? 0);
}

/** Values up to 3 mean an offset used before, RFC 8878 section 3.1.1.5. */
function nextOffset(
  state: SequenceState,
  value: number,
  literalLength: number,
): number {
  const [first, second, third] = state.offsets;
  if (value > 3) {
    state.offsets = [value - 3, first, second];
    return value - 3;
  }
  const choice = literalLength === 0 ? value + 1 : value;
  if (choice === 1) return first;
  if (choice === 2) {
    state.offsets = [second, first, third];
    return second;
  }
  const offset = choice === 3 ? third : first - 1;
  if (offset === 0) throw corrupt("a match has no offset");
  state.offsets = [offset, first, second];
  return offset;
}

function readCount(
  view: DataView,
  start: number,
  end: number,
): { readonly count: number; readonly next: number } {
  const byte = (i: number) => {
    if (start + i >= end) throw corrupt("a block is cut short");
    return view.getUint8(start + i);
  };
  const first = byte(0);
  if (first < 128) return { count: first, next: start + 1 };
  if (first < 255)
    return { count: ((first - 128) << 8) + byte(1), next: start + 2 };
  return { count: byte(1) + (byte(2) << 8) + 0x7f00, next: start + 3 };
}

/** Sets the state's tables and returns the bits that follow them. */
function readTables(
  view: DataView,
  start: number,
  end: number,
  state: SequenceState,
): BackwardBits {
  if (start >= end) throw corrupt("a block is cut short");
  const modes = view.getUint8(start);
  if ((modes & 3) !== 0) throw corrupt("a reserved bit is set");
  let next = start + 1;
  for (const code of CODES) {
    const mode = (modes >> code.modeShift) & 3;
    switch (mode) {
      case 0:
        state.tables[code.name] = code.predefined;
        break;
      case 1: {
        const symbol = next < end ? view.getUint8(next) : Infinity;
        if (symbol > code.maxSymbol) throw corrupt("there is no such code");
        state.tables[code.name] = oneSymbolTable(symbol);
        next += 1;
        break;
      }
      case 2: {
        const described = readFseTable(view, next, end, code);
        state.tables[code.name] = described.table;
        next = described.end;
        break;
      }
      default:
        tableOf(state.tables[code.name]);
    }
  }
  return backwardBits(view, next, end);
}

function tableOf(table: FseTable | undefined): FseTable {
  if (table === undefined) throw corrupt("a block reuses no table");
  return table;
}
