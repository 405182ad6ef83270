import { XpkgError } from "./xpkg-error.mjs";

/**
 * @typedef {{ path: string, kind: "file" | "directory" | "other", mode: number, bytes: Buffer }} ReadEntry
 *   `path` is without `./` at its start and `/` at its end; `bytes` is a view of the archive
 */

const BLOCK = 512;
const MAX_ENTRIES = 1_000_000;
const MAX_NAME_BYTES = 1024 * 1024;

/**
 * Reads a tar archive (ustar, with the long names of pax and GNU) to its end.
 *
 * @param {Buffer} archive
 * @returns {ReadEntry[]}
 * @throws {XpkgError} when it is cut off or damaged
 */
export function readTar(archive) {
  /** @type {ReadEntry[]} */
  const entries = [];
  /** @type {string | null} */
  let longName = null;
  let offset = 0;
  while (!isEnd(archive, offset)) {
    const block = archive.subarray(offset, offset + BLOCK);
    checkSum(block);
    const sizeBytes = readNumber(block, 124, 12);
    const start = offset + BLOCK;
    if (start + sizeBytes > archive.length) {
      throw new XpkgError("the tar archive is cut off");
    }
    const bytes = archive.subarray(start, start + sizeBytes);
    offset = start + Math.ceil(sizeBytes / BLOCK) * BLOCK;

    const type = String.fromCharCode(block[156] ?? 0);
    if (type === "x" || type === "L") {
      longName = type === "x" ? (paxPath(bytes) ?? longName) : text(bytes);
      continue;
    }
    if (type === "g") continue;
    entries.push({
      path: normal(longName ?? headerName(block)),
      kind: kindOf(type),
      mode: readNumber(block, 100, 8),
      bytes,
    });
    longName = null;
    if (entries.length > MAX_ENTRIES) {
      throw new XpkgError("the tar archive has too many entries");
    }
  }
  return entries;
}

/**
 * @param {Buffer} archive
 * @param {number} offset
 * @returns {boolean}
 */
function isEnd(archive, offset) {
  if (offset + BLOCK > archive.length) {
    throw new XpkgError("the tar archive is cut off");
  }
  return archive.subarray(offset, offset + BLOCK).every((byte) => byte === 0);
}

/** @param {Buffer} block */
function checkSum(block) {
  const sum = block.reduce(
    (total, byte, index) => total + (index >= 148 && index < 156 ? 32 : byte),
    0,
  );
  if (sum !== readNumber(block, 148, 8)) {
    throw new XpkgError("the tar archive is damaged: a header's sum is wrong");
  }
}

/**
 * @param {Buffer} block
 * @param {number} offset
 * @param {number} width
 * @returns {number}
 */
function readNumber(block, offset, width) {
  const digits = text(block.subarray(offset, offset + width)).trim();
  if (!/^[0-7]*$/.test(digits)) {
    throw new XpkgError(
      "the tar archive is damaged: a header's number is none",
    );
  }
  return digits === "" ? 0 : Number.parseInt(digits, 8);
}

/**
 * @param {Buffer} block
 * @returns {string}
 */
function headerName(block) {
  const name = text(block.subarray(0, 100));
  const isUstar = text(block.subarray(257, 263)).startsWith("ustar");
  const prefix = isUstar ? text(block.subarray(345, 500)) : "";
  return prefix === "" ? name : `${prefix}/${name}`;
}

/**
 * @param {Buffer} records as in `25 path=some/where/else\n`
 * @returns {string | null}
 */
function paxPath(records) {
  if (records.length > MAX_NAME_BYTES) {
    throw new XpkgError("the tar archive is damaged: a pax header is too long");
  }
  for (let offset = 0; offset < records.length;) {
    const space = records.indexOf(" ", offset);
    const length = Number(records.toString("utf8", offset, space));
    if (space === -1 || !Number.isInteger(length) || length < 1) {
      throw new XpkgError("the tar archive is damaged: a pax header is none");
    }
    const record = records.toString("utf8", space + 1, offset + length - 1);
    if (record.startsWith("path=")) return record.slice("path=".length);
    offset += length;
  }
  return null;
}

/**
 * @param {string} type
 * @returns {ReadEntry["kind"]}
 */
function kindOf(type) {
  switch (type) {
    case "0":
    case "\0":
      return "file";
    case "5":
      return "directory";
    default:
      return "other";
  }
}

/**
 * @param {string} path
 * @returns {string}
 */
function normal(path) {
  return path.replace(/^(?:\.\/)+/, "").replace(/\/+$/, "");
}

/**
 * @param {Buffer} bytes
 * @returns {string} up to the first NUL
 */
function text(bytes) {
  const end = bytes.indexOf(0);
  return bytes.toString("utf8", 0, end === -1 ? bytes.length : end);
}
