import { setTimeout as delay } from "node:timers/promises";

/** Something done again and again. */
export interface Repeated {
  /** How often it was done. */
  count(): number;
  /** Ends it, and waits for the one under way. @throws what `act` threw */
  stop(): Promise<void>;
}

/** Does `act(1)`, `act(2)`, … one at a time, with `everyMs` before each. */
export function repeat(
  everyMs: number,
  act: (turn: number) => Promise<void>,
): Repeated {
  const stopping = new AbortController();
  let count = 0;
  async function run(): Promise<void> {
    const { signal } = stopping;
    for (;;) {
      await delay(everyMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      await act(count + 1);
      count++;
    }
  }
  const running = run();
  // It is told to who stops it.
  running.catch(() => undefined);
  return {
    count: () => count,
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
