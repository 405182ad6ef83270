import { LRUCache } from "lru-cache";

/** What some work came to, and for how long that may be relied on. */
export interface Remembered<T> {
  readonly value: T;
  /** `null` = for ever. */
  readonly holdsForMs: number | null;
}

/** Remembers what work came to, by its key. */
export interface Memory<T> {
  /**
   * What `work` came to when it was last done for this key, or comes to now. Work that is under way
   * is shared; work that fails is not remembered.
   */
  recall(key: string, work: () => Promise<Remembered<T>>): Promise<T>;
}

/**
 * An empty memory, which forgets what was not asked for the longest.
 * @param bounds how many keys it may have, and how many UTF-16 units these may have together
 */
export function createMemory<T>(bounds: {
  readonly maxKeys: number;
  readonly maxChars: number;
}): Memory<T> {
  const known = new LRUCache<string, Promise<T>>({
    max: bounds.maxKeys,
    maxSize: bounds.maxChars,
    sizeCalculation: (_, key) => key.length + 1,
  });

  return {
    recall(key, work) {
      const remembered = known.get(key);
      if (remembered !== undefined) return remembered;
      const result = work().then(({ value, holdsForMs }) => {
        if (holdsForMs !== null) setTimeout(forget, holdsForMs).unref();
        return value;
      });
      known.set(key, result);
      result.catch(forget);
      return result;

      function forget(): void {
        if (known.peek(key) === result) known.delete(key);
      }
    },
  };
}
