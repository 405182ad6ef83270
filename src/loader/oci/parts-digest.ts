import { hash } from "node:crypto";

/** The hex of a sha256 that is the same for the same parts in the same order only. */
export function partsDigest(parts: Iterable<string | Uint8Array>): string {
  const pieces: Uint8Array[] = [];
  for (const part of parts) {
    const bytes = typeof part === "string" ? Buffer.from(part) : part;
    // Its length first, or else one text could be parted in two ways.
    pieces.push(Buffer.from(`${bytes.length}:`), bytes);
  }
  // In one call: each one costs as much as the hash of a small credential.
  return hash("sha256", Buffer.concat(pieces), "hex");
}
