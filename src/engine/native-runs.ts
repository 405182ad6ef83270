import type { EnvVariable } from "../ports.js";
import type {
  NativeEngine,
  NativeModule,
  RunDone,
  RunReport,
} from "./native.js";

/** What one run may use, and what it is given. Milliseconds and bytes. */
export interface RunBounds {
  readonly timeoutMs: number;
  /** May be infinite. */
  readonly deadlineInMs: number;
  readonly memoryLimitBytes: number;
  readonly env: readonly EnvVariable[];
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
  /**
   * Cancels every run; resolves once the sandbox is done with all, or after `waitMs`. Those that are
   * left then end as cancelled: a sandbox that is closed next tells nobody any more.
   */
  cancelAll(native: NativeEngine, waitMs: number): Promise<void>;
}

/** Numbers are 32 bits on the other side. */
const MAX_ID = 0xffff_ffff;

/**
 * Makes an empty set of runs. `onError` hears what an `ended` throws. Numbers follow on `lastId`,
 * and after `maxId` they start again.
 */
export function createNativeRuns(
  onError: (thrown: unknown) => void,
  { lastId = 0, maxId = MAX_ID } = {},
): NativeRuns {
  const pending = new Map<number, RunEnded>();
  let whenIdle = (): void => undefined;

  return {
    done: settle,
    start(native, module, request, bounds, ended) {
      const id = freeId();
      native.run(
        id,
        module,
        request,
        bounds.timeoutMs,
        bounds.deadlineInMs,
        bounds.memoryLimitBytes,
        bounds.env,
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
      for (const id of [...pending.keys()]) settle(id, null, CANCELLED);
    },
  };

  function settle(...[id, response, report]: Parameters<RunDone>): void {
    const ended = pending.get(id);
    pending.delete(id);
    try {
      ended?.(response, report);
    } catch (thrown) {
      tell(thrown);
    }
    if (pending.size === 0) whenIdle();
  }

  function tell(thrown: unknown): void {
    try {
      onError(thrown);
    } catch {
      // The log itself is broken, and what escapes from here would end the process.
    }
  }

  function freeId(): number {
    do lastId = lastId === maxId ? 0 : lastId + 1;
    while (pending.has(lastId));
    return lastId;
  }
}

const CANCELLED: RunReport = {
  failure: { kind: "cancelled", detail: "", backtrace: "" },
  lines: [],
  droppedLines: 0,
  computeMs: 0,
  peakMemoryBytes: 0,
  memoryDenials: 0,
};
