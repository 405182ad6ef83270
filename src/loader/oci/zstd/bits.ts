import { corrupt } from "./corrupt.js";

/** Reads a range of bytes from its last bit to its first, as entropy-coded streams are read. */
export interface BackwardBits {
  /** The next 0 to 25 bits; past the end they are zeros. */
  read(count: number): number;
  /** As `read`, but the bits stay next. */
  peek(count: number): number;
  /** How many bits are left; negative when more were read than there are. */
  left(): number;
}

/** How far a view must go on after the bits to be read, which are read four bytes at a time. */
export const SLACK_BYTES = 3;

/**
 * @param view goes on for {@link SLACK_BYTES} after `end`
 * @throws LoaderError artifact-invalid when there is no bit that marks where to begin
 */
export function backwardBits(
  view: DataView,
  start: number,
  end: number,
): BackwardBits {
  const last = end > start ? view.getUint8(end - 1) : 0;
  if (last === 0) throw corrupt("a bit stream has no beginning");
  /** The highest bit that is set is the mark and belongs to nobody. */
  let left = (end - start) * 8 - 1 - (Math.clz32(last) - 24);

  function peek(count: number): number {
    const low = left - count;
    if (low >= 0) {
      const word = view.getUint32(start + (low >> 3), true);
      return (word >>> (low & 7)) & ((1 << count) - 1);
    }
    if (left <= 0) return 0;
    return (view.getUint32(start, true) & ((1 << left) - 1)) << -low;
  }

  return {
    peek,
    read(count) {
      const bits = peek(count);
      left -= count;
      return bits;
    },
    left: () => left,
  };
}

/** Reads bytes from the first bit to the last, as table descriptions are read. */
export interface ForwardBits {
  /** The next 0 to 16 bits. */
  read(count: number): number;
  /** Gives a bit back. */
  unreadOne(): void;
  /** The offset of the first byte that nothing was read of. */
  nextByte(): number;
}

/** @throws LoaderError artifact-invalid, in `nextByte`, when more was read than there is */
export function forwardBits(
  view: DataView,
  start: number,
  end: number,
): ForwardBits {
  let position = 0;
  return {
    read(count) {
      const at = start + (position >> 3);
      // There are no bits to be had there, which nextByte will tell.
      const word = at < end ? view.getUint32(at, true) : 0;
      const bits = (word >>> (position & 7)) & ((1 << count) - 1);
      position += count;
      return bits;
    },
    unreadOne() {
      position -= 1;
    },
    nextByte() {
      const next = start + ((position + 7) >> 3);
      if (next > end) throw corrupt("a table is cut short");
      return next;
    },
  };
}
