import { lstat, readdir, unlink } from "node:fs/promises";
import path from "node:path";
import type { Logger } from "../../ports.js";
import { errnoOf } from "../../errors.js";

/** Pointers and proofs are small, and whoever names references makes them. */
const MAX_RECORDS = 20_000;
/** At once; the loop that everybody shares has its turn in between. */
const BATCH = 64;
const RECORD_NAME = /^[0-9a-f]{64}(?:\.json)?$/u;

/**
 * Removes the records of a directory that were written or used the longest time ago, until there
 * are at most 20,000. Never rejects.
 * @returns how many were removed
 */
export async function sweepRecords(
  directory: string,
  logger: Logger,
  maxRecords = MAX_RECORDS,
): Promise<number> {
  try {
    const names = (await readdir(directory)).filter((name) =>
      RECORD_NAME.test(name),
    );
    const surplus = names.length - maxRecords;
    if (surplus <= 0) return 0;
    const records: { filePath: string; mtimeMs: number }[] = [];
    for (let at = 0; at < names.length; at += BATCH) {
      const batch = names.slice(at, at + BATCH).map(async (name) => {
        const filePath = path.join(directory, name);
        return { filePath, mtimeMs: (await lstat(filePath)).mtimeMs };
      });
      records.push(...(await Promise.all(batch)));
    }
    records.sort((a, b) => a.mtimeMs - b.mtimeMs);
    for (const { filePath } of records.slice(0, surplus))
      await unlink(filePath);
    return surplus;
  } catch (error) {
    // Another process may be sweeping, too; the next sweep is in ten minutes.
    const reason = errnoOf(error);
    if (reason !== "ENOENT")
      logger.debug({ path: directory, reason }, "cannot sweep records");
    return 0;
  }
}
