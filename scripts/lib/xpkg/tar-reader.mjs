import { XpkgError } from "./xpkg-error.mjs";

/**
 * @typedef {{ path: string, kind: "file" | "directory" | "other", mode: number, bytes: Buffer }} ReadEntry
 *   `path` is without `./` at its start and `/` at its end; `bytes` is a view of the archive
 */

const BLOCK = 512;
const NEWLINE = 10;
const MAX_ENTRIES = 1_000_000;
const MAX_NAME_BYTES = 1024 * 1024;
/** What other readers take an entry's bytes or name from, and this one does not. */
/** Others, such as file capabilities, may be binary. */
const TEXT_KEY = /^(?:path|linkpath|uname|gname)$/;
const UNREAD_KEY = /^(?:size$|GNU\.sparse(?=\.))/;

/**
 * Reads a tar archive (ustar, with the long names of pax and GNU) to its end.
 *
 * @param {Buffer} archive
 * @returns {ReadEntry[]}
 * @throws {XpkgError} when it is cut off or damaged, or means something else to other readers
 */
export function readTar(archive) {
  /** @type {ReadEntry[]} */
  const entries = [];
  /** @type {string | null} */
  let paxName = null;
  /** @type {string | null} */
  let gnuName = null;
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
    if (type === "x") {
      paxName = paxPath(bytes);
      continue;
    }
    if (type === "L") {
      gnuName = text(bytes);
      continue;
    }
    if (type === "g") {
      refuseForAll(bytes);
      continue;
    }
    if (paxName !== null && gnuName !== null) {
      throw new XpkgError("the tar archive has an entry with two long names");
    }
    entries.push({
      path: normal(paxName ?? gnuName ?? headerName(block)),
      kind: kindOf(type),
      mode: readNumber(block, 100, 8),
      bytes,
    });
    paxName = null;
    gnuName = null;
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
 * @returns {string | null} of several the last, as GNU tar has it; null = that of the entry's header
 */
function paxPath(records) {
  const path = paxRecords(records).get("path");
  if (path === "") {
    // For some readers that is the header's, for GNU tar none.
    throw new XpkgError("the tar archive has a pax header with an empty path");
  }
  return path ?? null;
}

/**
 * Other readers use what stands here for every entry to come.
 *
 * @param {Buffer} records
 */
function refuseForAll(records) {
  if (paxRecords(records).has("path")) {
    throw new XpkgError(
      "the tar archive has a global pax header with path, which is not read here: write it without",
    );
  }
}

/**
 * @param {Buffer} records
 * @returns {Map<string, string>}
 */
function paxRecords(records) {
  if (records.length > MAX_NAME_BYTES) {
    throw new XpkgError("the tar archive is damaged: a pax header is too long");
  }
  /** @type {Map<string, string>} */
  const found = new Map();
  for (let offset = 0; offset < records.length;) {
    const space = records.indexOf(" ", offset);
    const digits = records.toString("latin1", offset, Math.max(space, offset));
    const end = offset + Number(digits);
    const equals = records.indexOf("=", space);
    if (
      !/^[1-9]\d{0,6}$/.test(digits) ||
      equals === -1 ||
      equals >= end ||
      records[end - 1] !== NEWLINE
    ) {
      throw new XpkgError("the tar archive is damaged: a pax header is none");
    }
    const key = records.toString("utf8", space + 1, equals);
    const textEnd = TEXT_KEY.test(key) ? end : equals;
    if (records.subarray(space, textEnd).includes(0)) {
      throw new XpkgError("the tar archive is damaged: a pax header is none");
    }
    const [unread] = UNREAD_KEY.exec(key) ?? [];
    if (unread !== undefined) {
      throw new XpkgError(
        `the tar archive has a pax header with ${unread}, which is not read here: write it without`,
      );
    }
    found.set(key, records.toString("utf8", equals + 1, end - 1));
    offset = end;
  }
  return found;
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
