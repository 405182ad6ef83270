import { randomBytes } from "node:crypto";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
} from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";

import { errorText, escaped } from "../errors.js";
import type { Clock, Digest, Logger } from "../ports.js";
import { EngineError } from "./error.js";

const PRIVATE_MODE = 0o700;
const OTHERS_MODE_BITS = 0o077;
const TEMPORARY_PREFIX = ".tmp-";
/** Another process may be compiling into a younger one. */
const LEFTOVER_AGE_MS = 3_600_000;

/** Where compiled artifacts lie: one directory per engine compatibility hash. */
export interface ArtifactStore {
  /** Absolute. */
  readonly directory: string;
  /** The artifact's final path; it may not exist. */
  pathOf(digest: Digest): string;
  /** A fresh path in the same directory for the compiler to write to. */
  temporaryPath(): string;
  /** Removes a temporary file, if it is there. */
  discard(temporaryPath: string): Promise<void>;
  /**
   * Moves on to a directory under the system's temporary one, because this one cannot be written.
   * @throws EngineError load-failed when that cannot be made either
   */
  fallBack(reason: string): void;
  /** Removes the fallback directory, if there is one. */
  close(): void;
}

/**
 * Opens `<cacheDir>/compiled/<hash>`, creating what is missing, and sweeps leftovers.
 *
 * The directory must be ours and closed to others: who can write to it could swap what the
 * compiler wrote before it is authenticated.
 * @throws EngineError load-failed
 */
export function openArtifactStore(
  cacheDir: string,
  compatibilityHash: string,
  trustCacheDir: boolean,
  clock: Clock,
  logger: Logger,
): ArtifactStore {
  let directory = openPrivateDir(cacheDir, compatibilityHash, trustCacheDir);
  let fallback: string | null = null;
  sweep(directory, clock.nowMs(), logger);

  return {
    get directory() {
      return directory;
    },
    pathOf: (digest) => join(directory, digest.replace(":", "-")),
    temporaryPath: () =>
      join(directory, TEMPORARY_PREFIX + randomBytes(12).toString("hex")),
    discard: async (path) => {
      await rm(path, { force: true });
    },
    fallBack(reason) {
      if (fallback !== null) return;
      try {
        fallback = mkdtempSync(join(tmpdir(), "function-wasm-artifacts-"));
      } catch (thrown) {
        throw new EngineError(
          "load-failed",
          `cannot store artifacts: ${errorText(thrown)}`,
        );
      }
      logger.warn(
        { directory, fallback, reason },
        "cannot write to the cache directory, artifacts go to a temporary one",
      );
      directory = fallback;
    },
    close() {
      if (fallback !== null) rmSync(fallback, { recursive: true, force: true });
    },
  };
}

function openPrivateDir(
  cacheDir: string,
  compatibilityHash: string,
  trusted: boolean,
): string {
  const compiled = resolve(cacheDir, "compiled");
  const directory = join(compiled, compatibilityHash);
  attempt(
    () => {
      makeDirs(directory);
    },
    directory,
    "cannot be made",
  );
  // Who can write to it could put another `compiled` in place; a key would notice.
  if (trusted) requirePrivate(cacheDir, trusted);
  for (const path of [compiled, directory]) requirePrivate(path, trusted);
  return directory;
}

/** Says what src/loader says of its directories, so that the same cause has the same words. */
function attempt<T>(call: () => T, path: string, failure: string): T {
  try {
    return call();
  } catch (cause) {
    throw new EngineError(
      "load-failed",
      `cannot open the cache directory (--cache-dir): \`${escaped(path, 400)}\` ${failure} (${errorText(cause)})`,
      { cause },
    );
  }
}

/** Node's own recursive mkdir never returns where the system will not make a directory, as in /proc. */
function makeDirs(path: string): void {
  if (existsSync(path)) return;
  makeDirs(dirname(path));
  try {
    mkdirSync(path, { mode: PRIVATE_MODE });
  } catch (thrown) {
    // Another process may have made it meanwhile.
    if (!existsSync(path)) throw thrown;
  }
}

/**
 * A directory that others could write to is closed to them. That is too late when its contents are
 * to be trusted without a key.
 */
function requirePrivate(path: string, trusted: boolean): void {
  const stat = attempt(() => lstatSync(path), path, "cannot be looked at");
  const refuse = (got: string): never => {
    throw new EngineError(
      "load-failed",
      `the cache directory (--cache-dir) cannot be used: expected \`${path}\` to be a directory ` +
        `of this process's user with mode 0700, got ${got}`,
    );
  };
  if (!stat.isDirectory()) refuse("no directory");
  if (stat.uid !== process.geteuid?.()) refuse(`owner ${String(stat.uid)}`);
  if ((stat.mode & OTHERS_MODE_BITS) === 0) return;
  if (trusted)
    refuse(
      `mode 0${(stat.mode & 0o777).toString(8)}, which --trust-cache-dir forbids`,
    );
  attempt(
    () => {
      chmodSync(path, PRIVATE_MODE);
    },
    path,
    "is open to others and cannot be closed",
  );
}

/** Best effort: on a disk that cannot be written, leftovers are no reason not to start. */
function sweep(directory: string, nowMs: number, logger: Logger): void {
  for (const name of readdirSync(directory)) {
    if (!name.startsWith(TEMPORARY_PREFIX)) continue;
    const path = join(directory, name);
    try {
      const stat = lstatSync(path, { throwIfNoEntry: false });
      if (stat !== undefined && nowMs - stat.mtimeMs > LEFTOVER_AGE_MS)
        rmSync(path, { force: true });
    } catch (thrown) {
      logger.debug(
        { path, reason: errorText(thrown) },
        "cannot remove a leftover",
      );
    }
  }
}
