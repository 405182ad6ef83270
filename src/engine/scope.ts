import type { Clock, RequestScope } from "../ports.js";

/** Node's longest timer; a later deadline is as good as none. */
const MAX_TIMER_MS = 2_147_483_647;

/** Waits for the end of a request's time, until stopped. */
export interface ScopeWatch {
  /** Resolves when the deadline passes or the caller goes away; never rejects. */
  readonly promise: Promise<"deadline" | "cancelled">;
  /** Ends the wait; the promise then stays pending. */
  stop(): void;
}

/** Watches deadline and cancellation of a request. */
export function whenOver(scope: RequestScope, clock: Clock): ScopeWatch {
  let stop = () => undefined as void;
  const promise = new Promise<"deadline" | "cancelled">((resolve) => {
    const onAbort = () => {
      resolve("cancelled");
    };
    const delayMs = scope.deadlineAtMs - clock.monotonicMs();
    const timer =
      delayMs > MAX_TIMER_MS
        ? undefined
        : setTimeout(() => {
            resolve("deadline");
          }, Math.max(0, delayMs));
    if (scope.signal.aborted) onAbort();
    else scope.signal.addEventListener("abort", onAbort, { once: true });
    stop = () => {
      clearTimeout(timer);
      scope.signal.removeEventListener("abort", onAbort);
    };
  });
  return {
    promise,
    stop: () => {
      stop();
    },
  };
}
