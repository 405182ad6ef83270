import { open } from "node:fs/promises";
import { READ_UNFOLLOWED } from "../open-flags.js";

/** What a record says. */
export interface RecordFile {
  readonly fields: ReadonlyMap<string, unknown>;
  readonly mtimeMs: number;
}

const MAX_BYTES = 4 * 1024;
/** Clocks of machines on one volume differ, but not by more. */
const MAX_AHEAD_MS = 5 * 60_000;
const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/u;

/**
 * Reads a JSON object from a regular file of at most 4 KiB. Throws what is wrong with it, with the
 * code ENOENT when there is none.
 */
export async function readRecord(filePath: string): Promise<RecordFile> {
  const file = await open(filePath, READ_UNFOLLOWED);
  try {
    const stats = await file.stat();
    if (!stats.isFile()) throw new Error("not a regular file");
    const buffer = Buffer.alloc(MAX_BYTES + 1);
    const { bytesRead } = await file.read(buffer, 0, buffer.length, 0);
    if (bytesRead > MAX_BYTES) throw new Error(`more than ${MAX_BYTES} bytes`);
    const value: unknown = JSON.parse(buffer.toString("utf8", 0, bytesRead));
    if (typeof value !== "object" || value === null)
      throw new Error("no JSON object");
    const fields = new Map<string, unknown>(Object.entries(value));
    return { fields, mtimeMs: stats.mtimeMs };
  } finally {
    await file.close();
  }
}

/** How records write a time, with milliseconds. */
export function timeText(unixMs: number): string {
  return new Date(unixMs).toISOString();
}

/** Reads a time of a record, in unix ms. Throws when it is none, or more than five minutes ahead. */
export function readTime(value: unknown, nowMs: number): number {
  if (typeof value !== "string" || !ISO_TIME.test(value))
    throw new Error("expected a time in UTC with milliseconds");
  const timeMs = Date.parse(value);
  if (Number.isNaN(timeMs)) throw new Error("no such time");
  if (timeMs > nowMs + MAX_AHEAD_MS) throw new Error("a time to come");
  return timeMs;
}
