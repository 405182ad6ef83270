/** Takes a stream apart without holding more of it than was asked for, and the chunk it lies in. */
export interface ByteReader {
  /** The next `count` bytes, or all that are left when they are fewer; they stay next. */
  peek(count: number): Promise<Uint8Array>;
  /** As `peek`, but the bytes are taken. */
  take(count: number): Promise<Uint8Array>;
  /** The next bytes, as many as lie at hand, at most `maxBytes`; `null` = there are no more. */
  takeSome(maxBytes: number): Promise<Uint8Array | null>;
  /** Ends the stream, read to its end or not. Never rejects. */
  close(): Promise<void>;
}

const NONE = new Uint8Array(0);

/** One reader at a time, and one call at a time. What it throws is what `chunks` throws. */
export function byteReader(chunks: AsyncIterable<Uint8Array>): ByteReader {
  const iterator = chunks[Symbol.asyncIterator]();
  /** Read, but not taken. */
  let pending: Uint8Array = NONE;

  async function fill(count: number): Promise<void> {
    const parts = [pending];
    let length = pending.length;
    while (length < count) {
      const next = await iterator.next();
      if (next.done === true) break;
      parts.push(next.value);
      length += next.value.length;
    }
    // Once, however small the parts are.
    if (parts.length > 1) pending = Buffer.concat(parts, length);
  }

  function takePending(count: number): Uint8Array {
    const taken = pending.subarray(0, count);
    pending = pending.subarray(count);
    return taken;
  }

  return {
    async peek(count) {
      if (pending.length < count) await fill(count);
      return pending.subarray(0, count);
    },
    async take(count) {
      if (pending.length < count) await fill(count);
      return takePending(count);
    },
    async takeSome(maxBytes) {
      if (pending.length === 0) await fill(1);
      return pending.length === 0 ? null : takePending(maxBytes);
    },
    async close() {
      pending = NONE;
      try {
        await iterator.return?.();
      } catch {
        // Whoever closes has what it wanted, or knows better why it has not.
      }
    },
  };
}

/** All that is left, in chunks as they come. */
export async function* rest(reader: ByteReader): AsyncGenerator<Uint8Array> {
  for (;;) {
    const chunk = await reader.takeSome(Infinity);
    if (chunk === null) return;
    yield chunk;
  }
}
