import { LRUCache } from "lru-cache";

import type { RequestScope } from "../../ports.js";
import { waitWithin, whyOver } from "./wait.js";

/** What some work came to, and for how long that may be relied on. */
export interface Remembered<T> {
  readonly value: T;
  /** `null` = for ever, 0 = not at all. */
  readonly holdsForMs: number | null;
}

/** Work that has been asked for. */
export interface Work<T> {
  readonly result: Promise<Remembered<T>>;
  /** Takes back work that has not begun: there will be no result. Returns false when it has begun. */
  readonly drop: () => boolean;
}

/** Remembers what work came to, by its key. */
export interface Memory<T> {
  /**
   * What work came to when it was last done for this key, or comes to now. Work that is under way is
   * shared, and dropped when the last who waits for it leaves; work that fails is not remembered.
   * @param waiter for whom; null = somebody who waits as long as it takes
   * @throws AdmissionError policy-unavailable when the waiter's request ends first
   */
  recall(
    key: string,
    begin: () => Work<T>,
    waiter: RequestScope | null,
  ): Promise<T>;
}

/** How much is remembered. */
export interface MemoryBounds<T> {
  readonly maxKeys: number;
  /** UTF-16 units, of all keys and of what `charsOf` counts. */
  readonly maxChars: number;
  /** What a value holds beside its key; default nothing. */
  readonly charsOf?: (value: T) => number;
}

/** An empty memory, which forgets what was not asked for the longest, but never work under way. */
export function createMemory<T extends object>(
  bounds: MemoryBounds<T>,
  monotonicMs: () => number,
): Memory<T> {
  const known = new LRUCache<string, T>({
    max: bounds.maxKeys,
    maxSize: bounds.maxChars,
    sizeCalculation: (value, key) =>
      key.length + (bounds.charsOf?.(value) ?? 0) + 1,
  });
  const underWay = new Map<string, SharedWork<T>>();

  function start(key: string, begin: () => Work<T>): SharedWork<T> {
    const { result, drop } = begin();
    const value = result.then((remembered) => {
      underWay.delete(key);
      remember(key, remembered);
      return remembered.value;
    });
    value.catch(() => underWay.delete(key));
    const shared = { value, drop, waiters: 0 };
    underWay.set(key, shared);
    return shared;
  }

  function remember(key: string, { value, holdsForMs }: Remembered<T>): void {
    if (holdsForMs === 0) return;
    known.set(key, value);
    if (holdsForMs === null) return;
    setTimeout(() => {
      if (known.peek(key) === value) known.delete(key);
    }, holdsForMs).unref();
  }

  return {
    recall(key, begin, waiter) {
      const value = known.get(key);
      if (value !== undefined) return Promise.resolve(value);
      const over = waiter === null ? null : whyOver(waiter, monotonicMs);
      if (over !== null) return Promise.reject(over);
      const shared = underWay.get(key) ?? start(key, begin);
      shared.waiters += 1;
      if (waiter === null) return shared.value;
      return waitWithin(shared.value, waiter, monotonicMs, () => {
        shared.waiters -= 1;
        if (shared.waiters === 0 && shared.drop()) underWay.delete(key);
      });
    },
  };
}

interface SharedWork<T> {
  readonly value: Promise<T>;
  readonly drop: () => boolean;
  /** Who waits for it now. */
  waiters: number;
}
