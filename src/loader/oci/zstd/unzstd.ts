import { ownTurn } from "../../turns.js";
import type { ByteReader } from "../byte-reader.js";
import { SLACK_BYTES } from "./bits.js";
import { corrupt } from "./corrupt.js";
import {
  type FrameHeader,
  littleEndian,
  readFrameHeader,
} from "./frame-header.js";
import { createHistory, type History } from "./history.js";
import type { HuffmanTable } from "./huffman.js";
import { readLiterals } from "./literals.js";
import { firstSequenceState, runSequences } from "./sequences.js";

const FRAME = 0xfd2fb528;
/** The last four bits are anything. */
const SKIPPABLE_FRAME = 0x184d2a50;
const CHECKSUM_BYTES = 4;
const MAX_BLOCK_BYTES = 128 * 1024;
/** A block that makes less than this costs as much as one that makes it. */
const LEAST_BLOCK_BYTES = 8 * 1024;

/** Whether these bytes begin a zstd frame. */
export function isZstd(head: Uint8Array): boolean {
  if (head.length < 4) return false;
  const magic = Buffer.from(head).readUInt32LE(0);
  return magic === FRAME || isSkippable(magic);
}

/**
 * Expands zstd (RFC 8878), of one frame or several, no faster than it is read. Written for bytes
 * that mean harm: a window is at most 8 MiB, a block makes at most 128 KiB and works no longer than
 * that takes, and others have their turn in between. Checksums of the content are not looked at:
 * the layer's digest has vouched for its bytes.
 * @param maxExpandedBytes only bounds the number of blocks
 * @throws LoaderError artifact-invalid
 */
export async function* unzstd(
  reader: ByteReader,
  maxExpandedBytes: number,
): AsyncGenerator<Uint8Array> {
  const history = createHistory();
  const countBlock = blockCounter(1000 + maxExpandedBytes / LEAST_BLOCK_BYTES);
  while ((await reader.peek(1)).length > 0) {
    const magic = await littleEndian(reader, 4);
    await countBlock();
    if (magic === FRAME) {
      const header = await readFrameHeader(reader);
      yield* frameContent(reader, header, history, countBlock);
    } else if (isSkippable(magic)) {
      await skip(reader, await littleEndian(reader, 4));
    } else {
      throw corrupt("something else follows it");
    }
  }
}

async function* frameContent(
  reader: ByteReader,
  header: FrameHeader,
  history: History,
  countBlock: () => Promise<void>,
): AsyncGenerator<Uint8Array> {
  const { windowBytes, contentBytes, hasChecksum } = header;
  const decode = blockDecoder(windowBytes, history);
  let bytes = 0;
  for (let isLast = false; !isLast;) {
    await countBlock();
    const blockHeader = await littleEndian(reader, 3);
    isLast = (blockHeader & 1) === 1;
    const block = await decode(
      reader,
      (blockHeader >> 1) & 3,
      blockHeader >> 3,
    );
    bytes += block.length;
    if (block.length > 0) yield block;
  }
  if (contentBytes !== null && contentBytes !== bytes)
    throw corrupt(`a frame has ${bytes} bytes and claims ${contentBytes}`);
  if (hasChecksum) await littleEndian(reader, CHECKSUM_BYTES);
}

/** Decodes the blocks of one frame, which build on each other. */
function blockDecoder(windowBytes: number, history: History) {
  const maxBytes = Math.min(windowBytes, MAX_BLOCK_BYTES);
  const sequences = firstSequenceState();
  let huffman: HuffmanTable | null = null;
  history.begin(windowBytes);

  return async (
    reader: ByteReader,
    type: number,
    sizeBytes: number,
  ): Promise<Uint8Array> => {
    if (sizeBytes > maxBytes) throw corrupt("a block is too long");
    history.beginBlock(maxBytes);
    switch (type) {
      case 0: {
        const bytes = await takeBlock(reader, sizeBytes);
        history.append(bytes, 0, sizeBytes);
        break;
      }
      case 1:
        history.appendRepeated(await littleEndian(reader, 1), sizeBytes);
        break;
      case 2: {
        const padded = new Uint8Array(sizeBytes + SLACK_BYTES);
        padded.set(await takeBlock(reader, sizeBytes));
        const view = new DataView(padded.buffer);
        const literals = readLiterals(view, sizeBytes, maxBytes, huffman);
        huffman = literals.table;
        runSequences(
          view,
          literals.end,
          sizeBytes,
          literals.bytes,
          sequences,
          history,
          maxBytes,
        );
        break;
      }
      default:
        throw corrupt("a block is of a reserved type");
    }
    return history.block();
  };
}

async function takeBlock(
  reader: ByteReader,
  sizeBytes: number,
): Promise<Uint8Array> {
  const bytes = await reader.take(sizeBytes);
  if (bytes.length < sizeBytes) throw corrupt("it is cut short");
  return bytes;
}

async function skip(reader: ByteReader, count: number): Promise<void> {
  for (let left = count; left > 0;) {
    const chunk = await reader.takeSome(left);
    if (chunk === null) throw corrupt("it is cut short");
    left -= chunk.length;
  }
}

function blockCounter(maxBlocks: number): () => Promise<void> {
  let blocks = 0;
  return async () => {
    blocks += 1;
    if (blocks > maxBlocks)
      throw corrupt(`it has more than ${Math.floor(maxBlocks)} blocks`);
    await ownTurn();
  };
}

function isSkippable(magic: number): boolean {
  return magic - (magic % 16) === SKIPPABLE_FRAME;
}
