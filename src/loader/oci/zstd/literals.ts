import { corrupt } from "./corrupt.js";
import {
  type HuffmanTable,
  readHuffmanStream,
  readHuffmanTable,
} from "./huffman.js";

/** The literals of a block, and what the next block may use again. */
interface Literals {
  readonly bytes: Uint8Array;
  /** Where what follows them begins. */
  readonly end: number;
  readonly table: HuffmanTable | null;
}

const RAW = 0;
const REPEATED_BYTE = 1;
const WITH_TREE = 2;

/**
 * Reads a block's literals section, RFC 8878 section 3.1.1.3.1.
 * @param previous the tree of an earlier block of the frame
 * @throws LoaderError artifact-invalid
 */
export function readLiterals(
  view: DataView,
  end: number,
  maxBytes: number,
  previous: HuffmanTable | null,
): Literals {
  const type = byteAt(view, 0, end) & 3;
  if (type === RAW || type === REPEATED_BYTE)
    return plainLiterals(view, end, maxBytes, type, previous);

  const sizeFormat = (view.getUint8(0) >> 2) & 3;
  const headerBytes = [3, 3, 4, 5][sizeFormat] ?? 0;
  const sizeBits = [10, 10, 14, 18][sizeFormat] ?? 0;
  const header = littleEndian(view, headerBytes, end);
  const length = Math.floor(header / 2 ** 4) % 2 ** sizeBits;
  const start = headerBytes;
  const stop = start + Math.floor(header / 2 ** (4 + sizeBits));
  if (length > maxBytes || stop > end) throw corrupt("literals are too long");

  const tree =
    type === WITH_TREE
      ? readHuffmanTable(view, start, stop)
      : { table: previous, end: start };
  if (tree.table === null) throw corrupt("a block reuses no Huffman tree");
  const bytes = new Uint8Array(length);
  const read = sizeFormat === 0 ? readHuffmanStream : readFourStreams;
  read(view, tree.end, stop, tree.table, bytes);
  return { bytes, end: stop, table: tree.table };
}

function plainLiterals(
  view: DataView,
  end: number,
  maxBytes: number,
  type: typeof RAW | typeof REPEATED_BYTE,
  table: HuffmanTable | null,
): Literals {
  const sizeFormat = (view.getUint8(0) >> 2) & 3;
  const headerBytes = [1, 2, 1, 3][sizeFormat] ?? 0;
  const header = littleEndian(view, headerBytes, end);
  const length = header >> (headerBytes === 1 ? 3 : 4);
  const stop = headerBytes + (type === RAW ? length : 1);
  if (length > maxBytes || stop > end) throw corrupt("literals are too long");
  const bytes = new Uint8Array(length);
  if (type === RAW)
    bytes.set(
      new Uint8Array(view.buffer, view.byteOffset + headerBytes, length),
    );
  else bytes.fill(view.getUint8(headerBytes));
  return { bytes, end: stop, table };
}

/** A quarter of the output from each; how long the first three are comes before them. */
function readFourStreams(
  view: DataView,
  start: number,
  end: number,
  table: HuffmanTable,
  output: Uint8Array,
): void {
  const jumpTableBytes = 6;
  const quarter = (output.length + 3) >> 2;
  if (start + jumpTableBytes > end || 3 * quarter > output.length)
    throw corrupt("literals are too short for four streams");
  let from = start + jumpTableBytes;
  for (let i = 0; i < 4; i++) {
    const to = i === 3 ? end : from + view.getUint16(start + 2 * i, true);
    if (to > end) throw corrupt("literals are cut short");
    const part = output.subarray(
      i * quarter,
      i === 3 ? output.length : (i + 1) * quarter,
    );
    readHuffmanStream(view, from, to, table, part);
    from = to;
  }
}

function littleEndian(view: DataView, count: number, end: number): number {
  let value = 0;
  for (let i = count - 1; i >= 0; i--)
    value = value * 256 + byteAt(view, i, end);
  return value;
}

function byteAt(view: DataView, at: number, end: number): number {
  if (at >= end) throw corrupt("a block is cut short");
  return view.getUint8(at);
}
