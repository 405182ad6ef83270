import type { Clock, RequestScope } from "../ports.js";

/** Node's longest timer; what would fire later is as good as never. */
const MAX_TIMER_MS = 2_147_483_647;

/** Calls `fire` after `delayMs`, unless the function it returns is called before. */
export function startTimer(delayMs: number, fire: () => void): () => void {
  if (delayMs > MAX_TIMER_MS) return () => undefined;
  const timer = setTimeout(fire, Math.max(0, delayMs));
  return () => {
    clearTimeout(timer);
  };
}

/**
 * Calls `over` once, when the request's deadline passes or its caller goes away, unless the
 * function it returns is called before. When that has happened already it calls later, too, never
 * from inside.
 */
export function whenOver(
  scope: RequestScope,
  clock: Clock,
  over: (why: "deadline" | "cancelled") => void,
): () => void {
  const stopTimer = startTimer(
    scope.cancelled ? 0 : scope.deadlineAtMs - clock.monotonicMs(),
    () => {
      end(scope.cancelled ? "cancelled" : "deadline");
    },
  );
  const stopListening = scope.onCancel(() => {
    end("cancelled");
  });
  return stop;

  function stop(): void {
    stopTimer();
    stopListening();
  }

  function end(why: "deadline" | "cancelled"): void {
    stop();
    over(why);
  }
}
