import { randomBytes } from "node:crypto";
import { constants, lstatSync, readdirSync, rmSync } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import path from "node:path";
import type { Logger } from "../../ports.js";
import { errnoOf } from "../../errors.js";

/** What was done last to a file that is being written; tests stop there. */
export type WriteStep = "created" | "written" | "synced" | "renamed";
export type OnStep = (step: WriteStep) => void | Promise<void>;

/** A file that gets its name when its whole content is on the disk. */
export interface TemporaryFile {
  append(chunk: Uint8Array): Promise<void>;
  /**
   * Makes it the file `filePath` in the same directory, in place of one that is there already.
   * @param isStillWanted asked last; false = nothing is done
   * @returns whether it was done
   */
  publish(
    filePath: string,
    isStillWanted?: () => Promise<boolean>,
  ): Promise<boolean>;
  /** Removes what was not published. Never rejects. */
  discard(): Promise<void>;
}

const PREFIX = ".tmp-";
/** Another process may be writing to a younger one. */
const LEFTOVER_AGE_MS = 3_600_000;
const OPEN_FLAGS =
  constants.O_WRONLY |
  constants.O_CREAT |
  constants.O_EXCL |
  constants.O_NOFOLLOW;
const PRIVATE_MODE = 0o600;

/** Makes an empty one that only this user can read. Throws what the operating system says. */
export async function createTemporaryFile(
  directory: string,
  onStep: OnStep = () => undefined,
): Promise<TemporaryFile> {
  const temporaryPath = path.join(directory, temporaryName());
  const handle = await open(temporaryPath, OPEN_FLAGS, PRIVATE_MODE);
  let isPublished = false;
  await onStep("created");
  return {
    // Writes on where it stopped, and all of it.
    append: (chunk) => handle.writeFile(chunk),
    async publish(filePath, isStillWanted = () => Promise.resolve(true)) {
      await onStep("written");
      await handle.sync();
      await handle.close();
      await onStep("synced");
      if (!(await isStillWanted())) return false;
      await rename(temporaryPath, filePath);
      isPublished = true;
      await onStep("renamed");
      await syncDirectory(directory);
      return true;
    },
    async discard() {
      await handle.close().catch(ignore);
      if (!isPublished) await rm(temporaryPath, { force: true }).catch(ignore);
    },
  };
}

/**
 * Writes all of `<directory>/<name>` or nothing. Throws what the operating system says.
 * @param isStillWanted asked when the content is on the disk; false = nothing is done
 * @returns whether it was done
 */
export async function replaceFile(
  directory: string,
  name: string,
  content: string,
  onStep?: OnStep,
  isStillWanted?: () => Promise<boolean>,
): Promise<boolean> {
  const file = await createTemporaryFile(directory, onStep);
  try {
    await file.append(Buffer.from(content));
    return await file.publish(path.join(directory, name), isStillWanted);
  } finally {
    await file.discard();
  }
}

/** A name that nobody else has. */
export function temporaryName(): string {
  return PREFIX + randomBytes(12).toString("hex");
}

/** Whether a file is what a process left behind that was killed while writing. */
export function isLeftover(
  name: string,
  mtimeMs: number,
  nowMs: number,
): boolean {
  return name.startsWith(PREFIX) && nowMs - mtimeMs > LEFTOVER_AGE_MS;
}

/** Removes the files in `directory` that `isUseless`; what cannot be removed stays. Never throws. */
export function removeFiles(
  directory: string,
  isUseless: (name: string, mtimeMs: number) => boolean,
  logger: Logger,
): void {
  try {
    for (const name of readdirSync(directory)) {
      const filePath = path.join(directory, name);
      const stats = lstatSync(filePath, { throwIfNoEntry: false });
      if (stats === undefined || stats.isDirectory()) continue;
      // By force: another process may have removed it meanwhile.
      if (isUseless(name, stats.mtimeMs)) rmSync(filePath, { force: true });
    }
  } catch (error) {
    logger.debug(
      { directory, reason: errnoOf(error) },
      "cannot remove what is no longer needed from the cache",
    );
  }
}

/** Best effort: what would be lost is a name, and whoever misses it asks the source again. */
async function syncDirectory(directory: string): Promise<void> {
  const flags = constants.O_RDONLY | constants.O_DIRECTORY;
  const handle = await open(directory, flags).catch(ignore);
  await handle?.sync().catch(ignore);
  await handle?.close().catch(ignore);
}

function ignore(): undefined {
  return undefined;
}
