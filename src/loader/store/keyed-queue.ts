/** Runs work of one key one after the other, and of different keys at once. */
export type KeyedQueue = <T>(key: string, work: () => Promise<T>) => Promise<T>;

/** An empty queue; keys without work take no room. */
export function createKeyedQueue(): KeyedQueue {
  const last = new Map<string, Promise<unknown>>();
  return async (key, work) => {
    const result = (last.get(key) ?? Promise.resolve()).then(work);
    // Whether one fails is no business of the next.
    const settled = result.catch(() => undefined);
    last.set(key, settled);
    try {
      return await result;
    } finally {
      if (last.get(key) === settled) last.delete(key);
    }
  };
}
