/** A source of bytes that tells how far it was read, and whether it was closed. */
export interface ChunkSource {
  readonly chunks: AsyncIterable<Uint8Array>;
  readBytes(): number;
  isClosed(): boolean;
}

/** @param makeChunks what to deliver, maybe without end */
export function chunkSource(
  makeChunks: () => Iterable<Uint8Array>,
): ChunkSource {
  let bytes = 0;
  let closed = false;
  async function* deliver() {
    try {
      for (const chunk of makeChunks()) {
        // As from a socket: later.
        await Promise.resolve();
        bytes += chunk.length;
        yield chunk;
      }
    } finally {
      closed = true;
    }
  }
  return {
    chunks: deliver(),
    readBytes: () => bytes,
    isClosed: () => closed,
  };
}

/** Cuts `bytes` into chunks. */
export function* pieces(
  bytes: Uint8Array,
  chunkBytes = 1000,
): Generator<Uint8Array> {
  for (let i = 0; i < bytes.length; i += chunkBytes)
    yield bytes.subarray(i, i + chunkBytes);
}

export async function collect(
  chunks: AsyncIterable<Uint8Array>,
): Promise<Buffer> {
  const all: Uint8Array[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return Buffer.concat(all);
}
