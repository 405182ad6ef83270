import { createHash } from "node:crypto";
import type { Digest } from "../../../../src/ports.js";

export function digestOf(content: string | Uint8Array): Digest {
  return `sha256:${createHash("sha256").update(content).digest("hex")}`;
}

export function fileNameOf(content: string | Uint8Array): string {
  return digestOf(content).replace(":", "-");
}

/** `texts` as a server would send them. */
export async function* chunksOf(
  ...texts: readonly string[]
): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield await Promise.resolve(Buffer.from(text));
}
