import type { ByteReader } from "../byte-reader.js";
import { corrupt } from "./corrupt.js";

/** What a frame says of itself, RFC 8878 section 3.1.1.1. */
export interface FrameHeader {
  /** At most 8 MiB. */
  readonly windowBytes: number;
  /** `null` = it does not say. */
  readonly contentBytes: number | null;
  readonly hasChecksum: boolean;
}

/** What RFC 8878 wants every decoder to have, and no more: it is memory. */
const MAX_WINDOW_BYTES = 8 * 1024 * 1024;

/**
 * Reads what comes after the magic number. Nothing is allocated by what it says.
 * @throws LoaderError artifact-invalid, also for a window above 8 MiB and for a dictionary
 */
export async function readFrameHeader(
  reader: ByteReader,
): Promise<FrameHeader> {
  const flags = await littleEndian(reader, 1);
  if ((flags & 8) !== 0) throw corrupt("a reserved bit is set");
  const isSingleSegment = (flags & 0x20) !== 0;
  const descriptor = isSingleSegment ? 0 : await littleEndian(reader, 1);
  const dictionary = await littleEndian(reader, [0, 1, 2, 4][flags & 3] ?? 0);
  if (dictionary !== 0)
    throw corrupt(`it needs the dictionary ${dictionary}, there are none`);
  const contentBytes = await readContentSize(
    reader,
    flags >> 6,
    isSingleSegment,
  );
  const windowBytes = isSingleSegment
    ? (contentBytes ?? 0)
    : windowOf(descriptor);
  if (windowBytes > MAX_WINDOW_BYTES) {
    throw corrupt(
      `its window has ${windowBytes} bytes, at most ${MAX_WINDOW_BYTES} are allowed`,
    );
  }
  return { windowBytes, contentBytes, hasChecksum: (flags & 4) !== 0 };
}

/** An unsigned number of `count` bytes; one above 2^53 comes out rounded. */
export async function littleEndian(
  reader: ByteReader,
  count: number,
): Promise<number> {
  const bytes = await reader.take(count);
  if (bytes.length < count) throw corrupt("it is cut short");
  return bytes.reduceRight((value, byte) => value * 256 + byte, 0);
}

async function readContentSize(
  reader: ByteReader,
  flag: number,
  isSingleSegment: boolean,
): Promise<number | null> {
  switch (flag) {
    case 0:
      return isSingleSegment ? littleEndian(reader, 1) : null;
    case 1:
      return 256 + (await littleEndian(reader, 2));
    default:
      return littleEndian(reader, flag === 2 ? 4 : 8);
  }
}

function windowOf(descriptor: number): number {
  const base = 2 ** (10 + (descriptor >> 3));
  return base + (base / 8) * (descriptor & 7);
}
