import type { Stats } from "node:fs";
import { lstat, readdir, rmdir, unlink, lutimes } from "node:fs/promises";
import path from "node:path";
import type { Clock, Logger } from "../../ports.js";
import { errnoOf } from "../../errors.js";
import { isLeftover } from "./temporary-file.js";

/** A directory of files that can be fetched or compiled again. */
export interface SweptDirectory {
  /** What the report calls it, for example `blob`. */
  readonly kind: string;
  /** Absolute. */
  readonly directory: string;
  /** Whether the directories in it belong to it, as under `compiled/`. Default false. */
  readonly recursive?: boolean;
}

export interface SweepOptions {
  readonly directories: readonly SweptDirectory[];
  /** What they may hold together; 0 = no bound. */
  readonly maxBytes: number;
  /** Whether a file of this name, such as `sha256-…`, was used lately: it stays, and counts as used now. */
  readonly inUse: (fileName: string) => boolean;
  /** A file written, touched or used within this time stays; more than 0. */
  readonly keepMs: number;
  /**
   * The one directory within the recursive ones that this process writes to: the others go when
   * nothing was written to them for a day. `null` = unknown, and all of them stay.
   */
  readonly currentCompiledDir: string | null;
}

export interface SweepReport {
  /** What is left, by kind. */
  readonly bytesByKind: Readonly<Record<string, number>>;
  readonly removedFiles: number;
  readonly removedBytes: number;
}

const CACHED_PREFIX = "sha256-";
const DAY_MS = 86_400_000;

interface FoundFile {
  readonly kind: string;
  readonly name: string;
  readonly filePath: string;
  readonly sizeBytes: number;
  readonly mtimeMs: number;
}

interface Found {
  readonly files: readonly FoundFile[];
  /** Directories within the recursive ones, with the kind of those. */
  readonly subdirectories: readonly SweptDirectory[];
}

/**
 * Removes what a killed process left behind an hour ago or more, directories of other engine
 * versions that are no longer written to, and, when the rest has more than `maxBytes`, those of its
 * files that were used the longest time ago, until it has nine tenths of that.
 *
 * Looks at files named `sha256-*` and `.tmp-*` only and follows no link. Several processes may sweep
 * at once. What cannot be removed is left. Never rejects.
 */
export async function sweepCache(
  options: SweepOptions,
  clock: Clock,
  logger: Logger,
): Promise<SweepReport> {
  const nowMs = clock.nowMs();
  let removedFiles = 0;
  let removedBytes = 0;

  /** Whether it is gone. */
  async function remove(file: FoundFile): Promise<boolean> {
    try {
      const stats = await lstat(file.filePath);
      // It was put to use since it was listed.
      if (stats.mtimeMs !== file.mtimeMs) return false;
      await unlink(file.filePath);
      removedFiles += 1;
      removedBytes += file.sizeBytes;
      return true;
    } catch (error) {
      return isGone(error, file.filePath, logger);
    }
  }

  /** The next sweep, and that of another process, sees when it was used, too. */
  async function touched(file: FoundFile): Promise<FoundFile> {
    if (!options.inUse(file.name)) return file;
    const nowS = nowMs / 1000;
    await lutimes(file.filePath, nowS, nowS).catch((error: unknown) =>
      isGone(error, file.filePath, logger),
    );
    return { ...file, mtimeMs: nowMs };
  }

  /** The files of `directory` that are to be counted, without the leftovers, which it removes. */
  async function filesIn(
    swept: SweptDirectory,
    isOfOthers = false,
  ): Promise<Found> {
    const files: FoundFile[] = [];
    const subdirectories: SweptDirectory[] = [];
    for (const name of await namesIn(swept.directory, logger)) {
      const filePath = path.join(swept.directory, name);
      const stats = await statsOf(filePath, logger);
      if (stats?.isDirectory() === true && swept.recursive === true)
        subdirectories.push({ kind: swept.kind, directory: filePath });
      if (stats?.isFile() !== true) continue;
      const { mtimeMs, size: sizeBytes } = stats;
      const file = { kind: swept.kind, name, filePath, sizeBytes, mtimeMs };
      if (isLeftover(name, mtimeMs, nowMs)) await remove(file);
      else if (name.startsWith(CACHED_PREFIX))
        files.push(isOfOthers ? file : await touched(file));
    }
    return { files, subdirectories };
  }

  /** The files of a directory within a recursive one; none when it was out of use and is emptied. */
  async function filesOfVersion(
    swept: SweptDirectory,
  ): Promise<readonly FoundFile[]> {
    // Before leftovers are removed, which is a write, too.
    const stats = await statsOf(swept.directory, logger);
    const current = options.currentCompiledDir;
    const isOurs =
      current === null || swept.directory === path.resolve(current);
    const { files } = await filesIn(swept, !isOurs);
    if (isOurs) return files;
    const times = [stats?.mtimeMs ?? nowMs, ...files.map((f) => f.mtimeMs)];
    if (times.some((timeMs) => nowMs - timeMs <= DAY_MS)) return files;
    const left: FoundFile[] = [];
    for (const file of files) if (!(await remove(file))) left.push(file);
    // Fails when anything else lies there, which is then not ours to remove.
    await rmdir(swept.directory).catch((error: unknown) =>
      isGone(error, swept.directory, logger),
    );
    return left;
  }

  /** Returns what is left of `files`. */
  async function makeRoom(
    files: readonly FoundFile[],
  ): Promise<readonly FoundFile[]> {
    const { keepMs, maxBytes } = options;
    let totalBytes = sizeOf(files);
    if (maxBytes === 0 || totalBytes <= maxBytes) return files;
    const left: FoundFile[] = [];
    for (const file of files.toSorted((a, b) => a.mtimeMs - b.mtimeMs)) {
      const stays =
        totalBytes <= maxBytes * 0.9 || nowMs - file.mtimeMs < keepMs;
      if (stays || !(await remove(file))) left.push(file);
      else totalBytes -= file.sizeBytes;
    }
    if (totalBytes > maxBytes)
      logger.warn(
        { bytes: totalBytes, maxBytes },
        "what is in use and what is new in the cache has more bytes than --max-cache-size",
      );
    return left;
  }

  const files: FoundFile[] = [];
  for (const swept of options.directories) {
    const found = await filesIn(swept);
    files.push(...found.files);
    for (const subdirectory of found.subdirectories)
      files.push(...(await filesOfVersion(subdirectory)));
  }
  const left = await makeRoom(files);
  const bytesByKind = Object.fromEntries(
    options.directories.map(({ kind }) => [
      kind,
      sizeOf(left.filter((file) => file.kind === kind)),
    ]),
  );
  return { bytesByKind, removedFiles, removedBytes };
}

function sizeOf(files: readonly FoundFile[]): number {
  return files.reduce((bytes, { sizeBytes }) => bytes + sizeBytes, 0);
}

/** Nothing, too, when `directory` is none, or a link to one. */
async function namesIn(
  directory: string,
  logger: Logger,
): Promise<readonly string[]> {
  const stats = await statsOf(directory, logger);
  if (stats?.isDirectory() !== true) return [];
  try {
    return await readdir(directory);
  } catch (error) {
    isGone(error, directory, logger);
    return [];
  }
}

async function statsOf(
  filePath: string,
  logger: Logger,
): Promise<Stats | null> {
  try {
    return await lstat(filePath);
  } catch (error) {
    isGone(error, filePath, logger);
    return null;
  }
}

/** Whether `error` says that there is nothing at `filePath`; logs it when it says something else. */
function isGone(error: unknown, filePath: string, logger: Logger): boolean {
  const reason = errnoOf(error);
  if (reason === "ENOENT") return true;
  logger.debug({ path: filePath, reason }, "cannot sweep a place in the cache");
  return false;
}
