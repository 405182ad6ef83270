import { createHash } from "node:crypto";
import type { Digest } from "../ports.js";

/** Bytes that are here already, as a stream. */
// eslint-disable-next-line @typescript-eslint/require-await -- nothing to wait for
export async function* chunksOf(
  bytes: Uint8Array,
): AsyncGenerator<Uint8Array, void, undefined> {
  yield bytes;
}

/** The whole of a stream that somebody else has bounded. */
export async function collect(
  chunks: AsyncIterable<Uint8Array>,
): Promise<Uint8Array> {
  const taken: Uint8Array[] = [];
  for await (const chunk of chunks) taken.push(Buffer.from(chunk));
  return Buffer.concat(taken);
}

export function digestOf(bytes: Uint8Array): Digest {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}
