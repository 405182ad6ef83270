import { Buffer } from "node:buffer";

import { XpkgError } from "./xpkg-error.mjs";

/**
 * @typedef {{ path: string, mode: number, bytes: Uint8Array | null }} TarEntry
 *   `path` is relative, with `/` and without one at its end; `bytes` is null for a directory
 */

const BLOCK = 512;
const NAME_BYTES = 100;
const PREFIX_BYTES = 155;
const LARGEST = 0o77777777777;

/**
 * A ustar archive of the entries in the order given. Everything is owned by root and of the year
 * 1970, so equal entries give equal bytes.
 *
 * @param {readonly TarEntry[]} entries
 * @returns {Buffer}
 * @throws {XpkgError} when a path or file is too long for ustar
 */
export function tarOf(entries) {
  const blocks = entries.flatMap((entry) => {
    const bytes = entry.bytes ?? Buffer.alloc(0);
    const padding = Buffer.alloc((BLOCK - (bytes.length % BLOCK)) % BLOCK);
    return [header(entry, bytes.length), bytes, padding];
  });
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)]);
}

/**
 * @param {TarEntry} entry
 * @param {number} sizeBytes
 * @returns {Buffer}
 */
function header(entry, sizeBytes) {
  if (sizeBytes > LARGEST) {
    throw new XpkgError(`${entry.path} is too large for a tar archive`);
  }
  const isDirectory = entry.bytes === null;
  const { prefix, name } = splitPath(entry.path, isDirectory);
  const block = Buffer.alloc(BLOCK);
  block.write(name, 0);
  writeOctal(block, entry.mode, 100, 8);
  writeOctal(block, 0, 108, 8);
  writeOctal(block, 0, 116, 8);
  writeOctal(block, sizeBytes, 124, 12);
  writeOctal(block, 0, 136, 12);
  block.write(isDirectory ? "5" : "0", 156);
  block.write("ustar\u000000", 257);
  block.write(prefix, 345);
  // The sum is taken with spaces where it will stand.
  block.fill(" ", 148, 156);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}

/**
 * @param {string} path
 * @param {boolean} isDirectory
 * @returns {{ prefix: string, name: string }}
 */
function splitPath(path, isDirectory) {
  const whole = isDirectory ? `${path}/` : path;
  if (Buffer.byteLength(whole) <= NAME_BYTES) {
    return { prefix: "", name: whole };
  }
  for (
    let slash = whole.indexOf("/");
    slash !== -1;
    slash = whole.indexOf("/", slash + 1)
  ) {
    const prefix = whole.slice(0, slash);
    const name = whole.slice(slash + 1);
    if (
      name !== "" &&
      Buffer.byteLength(prefix) <= PREFIX_BYTES &&
      Buffer.byteLength(name) <= NAME_BYTES
    ) {
      return { prefix, name };
    }
  }
  throw new XpkgError(`the path ${path} is too long for a tar archive`);
}

/**
 * @param {Buffer} block
 * @param {number} value
 * @param {number} offset
 * @param {number} width with the NUL that ends it
 */
function writeOctal(block, value, offset, width) {
  block.write(`${value.toString(8).padStart(width - 1, "0")}\0`, offset);
}
