import { createHash } from "node:crypto";
import type { BigIntStats } from "node:fs";
import { type FileHandle, lstat, open, unlink } from "node:fs/promises";
import type { Digest } from "../../ports.js";
import { errnoOf } from "../../errors.js";
import { READ_UNFOLLOWED } from "../open-flags.js";

/** What a file that should have a certain content has. */
export type Verification =
  | { readonly kind: "ok"; readonly sizeBytes: number }
  | { readonly kind: "absent" }
  | { readonly kind: "unreadable"; readonly reason: string }
  /** It held something else, and was removed if the operating system let it be. */
  | { readonly kind: "mismatch"; readonly got: Digest };

/** About a millisecond of hashing, after which other requests have their turn. */
const CHUNK_BYTES = 256 * 1024;

/**
 * Reads the regular file `filePath` to its end and compares it with `digest`. Never rejects.
 * @param maxBytes a file above this is unreadable
 * @param take gets the content piece by piece, in memory that is written over afterwards, before it
 *   is known to be the right one
 */
export async function verifyFile(
  filePath: string,
  digest: Digest,
  maxBytes: number,
  take: (chunk: Uint8Array) => void,
): Promise<Verification> {
  let file: FileHandle | undefined;
  try {
    file = await open(filePath, READ_UNFOLLOWED);
    const stats = await file.stat({ bigint: true });
    if (!stats.isFile())
      return { kind: "unreadable", reason: "not a regular file" };
    if (stats.size > maxBytes)
      return { kind: "unreadable", reason: `more than ${maxBytes} bytes` };
    const { got, sizeBytes } = await readAll(file, Number(stats.size), take);
    if (got === digest) return { kind: "ok", sizeBytes };
    await remove(filePath, stats);
    return { kind: "mismatch", got };
  } catch (error) {
    const reason = errnoOf(error);
    return reason === "ENOENT"
      ? { kind: "absent" }
      : { kind: "unreadable", reason };
  } finally {
    await file?.close().catch(() => undefined);
  }
}

/** No more than the file had when it was opened: one that grows is not what it should be anyway. */
async function readAll(
  file: FileHandle,
  maxBytes: number,
  take: (chunk: Uint8Array) => void,
): Promise<{ got: Digest; sizeBytes: number }> {
  const hash = createHash("sha256");
  const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, maxBytes + 1));
  let sizeBytes = 0;
  while (sizeBytes <= maxBytes) {
    const { bytesRead } = await file.read(buffer, 0, buffer.length, sizeBytes);
    if (bytesRead === 0) break;
    const chunk = buffer.subarray(0, bytesRead);
    hash.update(chunk);
    take(chunk);
    sizeBytes += bytesRead;
  }
  return { got: `sha256:${hash.digest("hex")}`, sizeBytes };
}

/** Another process may have put the right file there meanwhile, and be about to use it. */
async function remove(filePath: string, read: BigIntStats): Promise<void> {
  try {
    const now = await lstat(filePath, { bigint: true });
    if (now.dev === read.dev && now.ino === read.ino) await unlink(filePath);
  } catch {
    // It will be read, found wrong and tried again.
  }
}
