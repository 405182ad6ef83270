import { XpkgError } from "./xpkg-error.mjs";

/**
 * Does something with a file, and says in a sentence why the system would not.
 *
 * @template T
 * @param {"read" | "write" | "make"} verb
 * @param {string} file
 * @param {() => T} work
 * @returns {T}
 * @throws {XpkgError} with the system's error code, or what `work` throws
 */
export function attempt(verb, file, work) {
  try {
    return work();
  } catch (cause) {
    if (!(cause instanceof Error) || !("code" in cause)) throw cause;
    throw new XpkgError(`cannot ${verb} ${file}: ${String(cause.code)}`, {
      cause,
    });
  }
}

/**
 * Puts what it is about before the message of an XpkgError.
 *
 * @template T
 * @param {string} subject as in `--image base.tar`
 * @param {() => T} work
 * @returns {T}
 * @throws {XpkgError}
 */
export function about(subject, work) {
  try {
    return work();
  } catch (cause) {
    if (!(cause instanceof XpkgError)) throw cause;
    throw new XpkgError(`${subject}: ${cause.message}`, { cause });
  }
}
