import { createHash } from "node:crypto";

/** The hex of a sha256 that is the same for the same parts in the same order only. */
export function partsDigest(parts: Iterable<string | Uint8Array>): string {
  const hash = createHash("sha256");
  for (const part of parts) {
    const bytes = typeof part === "string" ? Buffer.from(part) : part;
    // Its length first, or else one text could be parted in two ways.
    hash.update(`${bytes.length}:`).update(bytes);
  }
  return hash.digest("hex");
}
