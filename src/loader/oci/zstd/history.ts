import { corrupt } from "./corrupt.js";

/** The last bytes of a frame's content, to which matches point back. */
export interface History {
  /** Forgets the frame before. */
  begin(windowBytes: number): void;
  /** Makes room for a block. */
  beginBlock(maxBytes: number): void;
  append(bytes: Uint8Array, from: number, to: number): void;
  appendRepeated(byte: number, count: number): void;
  /**
   * Appends what is `offset` bytes back, which may run into what it appends.
   * @throws LoaderError artifact-invalid when that is before the frame or outside of its window
   */
  appendMatch(offset: number, count: number): void;
  /** How many bytes the block has so far. */
  blockBytes(): number;
  /** A copy of the block's bytes. */
  block(): Uint8Array;
}

/** One buffer for all frames: what a frame claims costs nothing until it has content. */
export function createHistory(): History {
  let buffer = new Uint8Array(0);
  let windowBytes = 0;
  let end = 0;
  let blockStart = 0;

  /** Slides once per window, not per block. */
  function makeRoom(count: number) {
    if (end + count <= buffer.length) return;
    const capacity = 2 * windowBytes + count;
    const kept = buffer.subarray(Math.max(0, end - windowBytes), end);
    if (buffer.length < capacity) {
      const grown = new Uint8Array(
        Math.min(capacity, Math.max(2 * buffer.length, kept.length + count)),
      );
      grown.set(kept);
      buffer = grown;
    } else {
      buffer.set(kept);
    }
    end = kept.length;
  }

  return {
    begin(bytes) {
      windowBytes = bytes;
      end = 0;
      blockStart = 0;
    },
    beginBlock(maxBytes) {
      makeRoom(maxBytes);
      blockStart = end;
    },
    append(bytes, from, to) {
      for (let i = from; i < to; i++) buffer[end++] = bytes[i] ?? 0;
    },
    appendRepeated(byte, count) {
      buffer.fill(byte, end, end + count);
      end += count;
    },
    appendMatch(offset, count) {
      if (offset > end || offset > windowBytes)
        throw corrupt("a match lies too far back");
      const to = end + count;
      for (let from = end - offset; end < to; from++)
        buffer[end++] = buffer[from] ?? 0;
    },
    blockBytes: () => end - blockStart,
    block: () => buffer.slice(blockStart, end),
  };
}
