import { chmodSync, existsSync, lstatSync, mkdirSync, statSync } from "node:fs";
import path from "node:path";
import { errnoOf, escaped } from "../../errors.js";
import type { LoaderError } from "../error.js";
import { refuse } from "../refuse.js";

const PRIVATE_MODE = 0o700;
const OTHERS_MODE_BITS = 0o077;
const OTHERS_WRITE_BITS = 0o022;

/**
 * The absolute path of `<cacheDir>/<name>`, made when it is missing, parents too.
 *
 * It is ours and closed to others: who can write to it could say where tags lead and who may read
 * what. That it can be written is not asked: a warm cache on a read-only volume is of use.
 * @throws LoaderError cache-unwritable
 */
export function openCacheDir(cacheDir: string, name: string): string {
  const directory = path.resolve(cacheDir, name);
  attempt(() => makeDirs(directory), directory, "cannot be made");
  checkOwner(path.resolve(cacheDir));
  const stats = attempt(
    () => lstatSync(directory),
    directory,
    "cannot be looked at",
  );
  if (!stats.isDirectory()) throw cannotOpen(directory, "is no directory");
  if (stats.uid !== process.geteuid?.())
    throw cannotOpen(directory, `belongs to another user (${stats.uid})`);
  if ((stats.mode & OTHERS_MODE_BITS) !== 0) close(directory, stats.mode);
  return directory;
}

/** Whoever owns it can put another directory in the place of ours; root can anyway. */
function checkOwner(cacheDir: string): void {
  const { uid } = attempt(
    () => statSync(cacheDir),
    cacheDir,
    "cannot be looked at",
  );
  if (uid !== 0 && uid !== process.geteuid?.())
    throw cannotOpen(cacheDir, `belongs to another user (${uid})`);
}

function close(directory: string, mode: number): void {
  try {
    chmodSync(directory, PRIVATE_MODE);
  } catch (cause) {
    const errno = errnoOf(cause);
    // On a volume that is read-only here, it is enough that nobody else may write elsewhere.
    if (errno === "EROFS" && (mode & OTHERS_WRITE_BITS) === 0) return;
    const reason = `is open to others and cannot be closed (${errno})`;
    throw cannotOpen(directory, reason, cause);
  }
}

/** Node's own recursive mkdir never returns where the system will not make a directory, as in /proc. */
function makeDirs(directory: string): void {
  if (existsSync(directory)) return;
  makeDirs(path.dirname(directory));
  try {
    mkdirSync(directory, { mode: PRIVATE_MODE });
  } catch (error) {
    // Another process may have made it meanwhile.
    if (!existsSync(directory)) throw error;
  }
}

function attempt<T>(call: () => T, directory: string, failure: string): T {
  try {
    return call();
  } catch (cause) {
    throw cannotOpen(directory, `${failure} (${errnoOf(cause)})`, cause);
  }
}

function cannotOpen(
  directory: string,
  reason: string,
  cause?: unknown,
): LoaderError {
  return refuse(
    "cache-unwritable",
    `cannot open the cache directory (--cache-dir): \`${escaped(directory, 400)}\` ${reason}`,
    cause,
  );
}
