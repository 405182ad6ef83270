import type {
  NativeEngine,
  NativeModule,
  RunDone,
  RunReport,
} from "./native.js";

/** What one run may use. Milliseconds and bytes. */
export interface RunBounds {
  readonly timeoutMs: number;
  /** May be infinite. */
  readonly deadlineInMs: number;
  readonly memoryLimitBytes: number;
}

/** Called once when the sandbox is done with a run. */
export type RunEnded = (
  response: Uint8Array | null,
  report: RunReport | null,
) => void;

/** The runs under way in the sandbox. */
export interface NativeRuns {
  /** For the addon: settles a run by its number. Never throws. */
  readonly done: RunDone;
  /**
   * Starts a run and returns its number. `ended` is called later, never from inside.
   * @throws what the addon throws
   */
  start(
    native: NativeEngine,
    module: NativeModule,
    request: Uint8Array,
    bounds: RunBounds,
    ended: RunEnded,
  ): number;
  /** Cancels every run; resolves once the sandbox is done with all, or after `waitMs`. */
  cancelAll(native: NativeEngine, waitMs: number): Promise<void>;
}

/** Numbers are 32 bits on the other side. */
const MAX_ID = 0xffff_ffff;

/** Makes an empty set of runs. `onError` hears what an `ended` throws. */
export function createNativeRuns(
  onError: (thrown: unknown) => void,
): NativeRuns {
  const pending = new Map<number, RunEnded>();
  let lastId = 0;
  let whenIdle = (): void => undefined;

  return {
    done(id, response, report) {
      const ended = pending.get(id);
      pending.delete(id);
      try {
        ended?.(response, report);
      } catch (thrown) {
        onError(thrown);
      }
      if (pending.size === 0) whenIdle();
    },
    start(native, module, request, bounds, ended) {
      const id = freeId();
      native.run(
        id,
        module,
        request,
        bounds.timeoutMs,
        bounds.deadlineInMs,
        bounds.memoryLimitBytes,
      );
      pending.set(id, ended);
      return id;
    },
    async cancelAll(native, waitMs) {
      if (pending.size === 0) return;
      for (const id of pending.keys()) native.cancel(id);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, waitMs);
        whenIdle = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    },
  };

  function freeId(): number {
    do lastId = lastId === MAX_ID ? 0 : lastId + 1;
    while (pending.has(lastId));
    return lastId;
  }
}
