import { readFileSync, statSync } from "node:fs";
import { parseArgs } from "node:util";

import { XpkgError } from "./xpkg-error.mjs";

/** A Buffer of Node 20 is no larger, and no sane image is. */
const MAX_ARCHIVE_BYTES = 2 * 1024 * 1024 * 1024 - 1;

/**
 * Runs a script: what it throws for its user is printed and ends it with 1, a wrong command line
 * with 2.
 *
 * @template {import("node:util").ParseArgsConfig} C
 * @param {string} usage
 * @param {C} config
 * @param {(parsed: ReturnType<typeof parseArgs<C>>) => void} work throws UsageError or XpkgError
 */
export function runScript(usage, config, work) {
  try {
    work(parseArgs(config));
  } catch (thrown) {
    if (thrown instanceof XpkgError) {
      console.error(thrown.message);
      process.exitCode = 1;
    } else if (isUsageError(thrown)) {
      console.error(`${thrown.message}\nusage: ${usage}`);
      process.exitCode = 2;
    } else {
      throw thrown;
    }
  }
}

/** A command line that cannot be followed. */
export class UsageError extends Error {
  /** @override */
  name = "UsageError";
}

/**
 * @param {string} file
 * @returns {Buffer}
 * @throws {XpkgError} when it cannot be read, or is 2 GiB or larger
 */
export function readArchive(file) {
  try {
    if (statSync(file).size > MAX_ARCHIVE_BYTES) {
      throw new XpkgError(`${file} is too large: expected less than 2 GiB`);
    }
    return readFileSync(file);
  } catch (cause) {
    if (!(cause instanceof Error) || !("code" in cause)) throw cause;
    throw new XpkgError(`cannot read ${file}: ${String(cause.code)}`, {
      cause,
    });
  }
}

/**
 * @param {unknown} thrown
 * @returns {thrown is Error}
 */
function isUsageError(thrown) {
  return (
    thrown instanceof UsageError ||
    (thrown instanceof Error &&
      "code" in thrown &&
      String(thrown.code).startsWith("ERR_PARSE_ARGS_"))
  );
}
