import { quoted } from "../../errors.js";
import { badArchive } from "./bad-archive.js";

/** Headers, and the room that data take up, come in blocks of this size. */
export const BLOCK_BYTES = 512;

/** What one header block says, before any extended header has its say. */
export interface TarHeader {
  readonly name: string;
  /** One character, `0` for a regular file; old archives have a NUL there. */
  readonly typeflag: string;
  readonly sizeBytes: number;
}

/** Keeps a byte order mark: a name that begins with one is another name. */
const UTF8 = new TextDecoder("utf-8", { ignoreBOM: true });

const POSIX = "ustar\0" + "00";
const GNU = "ustar  \0";
const V7 = "\0".repeat(8);

const ZEROS = new Uint8Array(64 * 1024);

/**
 * Reads a POSIX, GNU or V7 header (pax, IEEE Std 1003.1). Anything that two readers could read in
 * two ways is refused.
 * @param block 512 bytes
 * @throws LoaderError artifact-invalid
 */
export function parseTarHeader(block: Uint8Array): TarHeader {
  if (octal(block, 148, 8) !== checksum(block))
    throw badArchive("has a header with a wrong checksum");
  const magic = latin1(block, 257, 8);
  if (magic !== POSIX && magic !== GNU && magic !== V7)
    throw badArchive(`is of an unknown kind (magic ${quoted(magic)})`);
  const name = text(block, 0, 100);
  const prefix = magic === POSIX ? text(block, 345, 155) : "";
  const sizeBytes = octal(block, 124, 12);
  if (sizeBytes === null) {
    throw badArchive(
      `has an entry ${quoted(name)} whose size is not written in octal digits`,
    );
  }
  return {
    name: prefix === "" ? name : `${prefix}/${name}`,
    typeflag: latin1(block, 156, 1),
    sizeBytes,
  };
}

/** Whether there is nothing but zeros; two blocks of them end an archive. */
export function isZero(bytes: Uint8Array): boolean {
  for (let i = 0; i < bytes.length; i += ZEROS.length) {
    const part = bytes.subarray(i, i + ZEROS.length);
    if (Buffer.compare(part, ZEROS.subarray(0, part.length)) !== 0)
      return false;
  }
  return true;
}

/** The text up to the first NUL. */
export function textUpToNul(bytes: Uint8Array): string {
  const end = bytes.indexOf(0);
  return UTF8.decode(end === -1 ? bytes : bytes.subarray(0, end));
}

function text(block: Uint8Array, start: number, length: number): string {
  return textUpToNul(block.subarray(start, start + length));
}

function latin1(block: Uint8Array, start: number, length: number): string {
  return Buffer.from(block.subarray(start, start + length)).toString("latin1");
}

/** `null` for all else, such as GNU's base-256, which only sizes far above any module's need. */
function octal(
  block: Uint8Array,
  start: number,
  length: number,
): number | null {
  const digits = /^ *(?<digits>[0-7]+)[ \0]*$/u.exec(
    latin1(block, start, length),
  )?.groups?.["digits"];
  return digits === undefined ? null : Number.parseInt(digits, 8);
}

/** The sum of the bytes, its own field taken for blanks. */
function checksum(block: Uint8Array): number {
  const blank = 0x20;
  return block.reduce(
    (sum, byte, i) => sum + (i >= 148 && i < 156 ? blank : byte),
    0,
  );
}
