import { createHash } from "node:crypto";
import type { BigIntStats } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import type { Digest } from "../ports.js";
import { errnoOf } from "../errors.js";
import type { LoaderErrorCode } from "./error.js";
import { READ_UNFOLLOWED } from "./open-flags.js";

/** A digest, or why there is none. */
export type HashResult =
  | { readonly kind: "ok"; readonly digest: Digest }
  | {
      readonly kind: "refused";
      readonly code: LoaderErrorCode;
      readonly reason: string;
      readonly cause?: unknown;
    };

/** For a caller that went away before the digest was known. */
export const CANCELLED = {
  kind: "refused",
  code: "resolve-cancelled",
  reason: "the request ended while the file was being read",
} as const satisfies HashResult;

/** About a millisecond of hashing, after which other requests have their turn. */
const CHUNK_BYTES = 256 * 1024;

const CHANGED = {
  kind: "refused",
  code: "module-changed",
  reason: "the file changed while it was being read",
} as const satisfies HashResult;

/**
 * The sha256 of a regular file whose `lstat` gave `stats`. Reads no more than the bytes it had then,
 * and refuses a file that is another one, or has been written to, when opened or when read.
 */
export async function hashFile(
  filePath: string,
  stats: BigIntStats,
  signal: AbortSignal,
): Promise<HashResult> {
  let file: FileHandle | undefined;
  try {
    file = await open(filePath, READ_UNFOLLOWED);
    if (!isUnchanged(stats, await file.stat({ bigint: true }))) return CHANGED;
    const result = await hashContent(file, Number(stats.size), signal);
    return isUnchanged(stats, await file.stat({ bigint: true }))
      ? result
      : CHANGED;
  } catch (error) {
    return openOrReadFailed(error);
  } finally {
    await file?.close();
  }
}

/** What tells two states of a file apart, as far as the operating system can. */
const STATE = ["dev", "ino", "size", "mtimeNs", "ctimeNs"] as const;

/** Text that is the same for the same state of the same file only. */
export function fileStateKey(stats: BigIntStats): string {
  return STATE.map((name) => stats[name]).join(":");
}

/** Whether `now` is of a regular file in the state that `before` is of. */
export function isUnchanged(before: BigIntStats, now: BigIntStats): boolean {
  return now.isFile() && STATE.every((name) => before[name] === now[name]);
}

async function hashContent(
  file: FileHandle,
  sizeBytes: number,
  signal: AbortSignal,
): Promise<HashResult> {
  const hash = createHash("sha256");
  const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, sizeBytes));
  for (let offset = 0; offset < sizeBytes;) {
    if (signal.aborted) return CANCELLED;
    const wanted = Math.min(buffer.length, sizeBytes - offset);
    const { bytesRead } = await file.read(buffer, 0, wanted, offset);
    if (bytesRead === 0) return CHANGED;
    hash.update(buffer.subarray(0, bytesRead));
    offset += bytesRead;
  }
  return { kind: "ok", digest: `sha256:${hash.digest("hex")}` };
}

function openOrReadFailed(cause: unknown): HashResult {
  const errno = errnoOf(cause);
  // It was there, and no link, when its state was read a moment ago.
  if (errno === "ENOENT" || errno === "ELOOP") return CHANGED;
  const reason = `the file cannot be read (${errno})`;
  return { kind: "refused", code: "module-unreadable", reason, cause };
}
