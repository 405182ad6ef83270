import { createHash } from "node:crypto";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import path from "node:path";

/**
 * The files below `dir` with the hash of what is in each, sorted by name. Build output that people
 * leave there (`target/`) is not looked at.
 *
 * @param {string} dir
 * @returns {Record<string, string>} path relative to `dir`, with `/` -> sha256 in hex
 */
export function hashFiles(dir) {
  /** @type {Record<string, string>} */
  const hashes = {};
  for (const file of filesBelow(dir, "").sort()) {
    hashes[file] = sha256(readFileSync(path.join(dir, file)));
  }
  return hashes;
}

/**
 * @param {string | Uint8Array} bytes
 * @returns {string} sha256 in hex
 */
export function sha256(bytes) {
  return createHash("sha256").update(bytes).digest("hex");
}

/**
 * What a small text file holds, or null when there is none.
 *
 * @param {string} file
 * @returns {string | null}
 */
export function readText(file) {
  return existsSync(file) ? readFileSync(file, "utf8") : null;
}

/**
 * @param {string} root
 * @param {string} below
 * @returns {string[]}
 */
function filesBelow(root, below) {
  return readdirSync(path.join(root, below), { withFileTypes: true }).flatMap(
    (entry) => {
      const name = path.posix.join(below, entry.name);
      if (entry.isDirectory()) {
        return entry.name === "target" ? [] : filesBelow(root, name);
      }
      return entry.isFile() ? [name] : [];
    },
  );
}
