import {
  accessSync,
  constants,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";

import { about, attempt } from "./attempt.mjs";
import { readImageArchive } from "./image-archive.mjs";
import { XpkgError } from "./xpkg-error.mjs";

/** @import { Image } from "./image.mjs" */

/** A Buffer of Node 20 is no larger, and no sane image is. */
const MAX_ARCHIVE_BYTES = 2 * 1024 * 1024 * 1024 - 1;

/**
 * The image of an archive that a flag names.
 *
 * @param {string} flag as in `--image`
 * @param {string} file
 * @returns {Image}
 * @throws {XpkgError} with flag and file, when it cannot be read, is 2 GiB or larger, or holds no image
 */
export function readImage(flag, file) {
  const archive = about(flag, () =>
    attempt("read", file, () => {
      if (statSync(file).size > MAX_ARCHIVE_BYTES) {
        throw new XpkgError(`${file} is too large: expected less than 2 GiB`);
      }
      return readFileSync(file);
    }),
  );
  return about(`${flag} ${file}`, () => readImageArchive(archive));
}

/**
 * Refuses a file of `--output` whose directory is not there or cannot be written, before any work is
 * done for it.
 *
 * @param {string} file
 * @throws {XpkgError} with flag and file
 */
export function checkOutput(file) {
  const dir = path.dirname(file);
  about("--output", () => {
    attempt("write", file, () => {
      accessSync(dir, constants.W_OK);
    });
  });
}

/**
 * Writes a file of `--output`.
 *
 * @param {string} file
 * @param {Buffer} bytes
 * @throws {XpkgError} with flag and file
 */
export function writeOutput(file, bytes) {
  about("--output", () => {
    attempt("write", file, () => {
      writeFileSync(file, bytes);
    });
  });
}
