import type { RequestScope } from "../../ports.js";
import { AdmissionError } from "../error.js";

/** Node's longest timer; what would fire later is as good as never. */
const maxTimerMs = 2_147_483_647;

/**
 * Waits for work that others may wait for, too, but no longer than a request lasts.
 * @param onLeave called when the request ends before the work does
 * @throws AdmissionError policy-unavailable, then
 */
export function waitWithin<T>(
  work: Promise<T>,
  scope: RequestScope,
  monotonicMs: () => number,
  onLeave: () => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      stopListening();
    };
    const leave = (error: AdmissionError): void => {
      stop();
      onLeave();
      reject(error);
    };
    const leftMs = scope.deadlineAtMs - monotonicMs();
    const timer =
      leftMs > maxTimerMs
        ? undefined
        : setTimeout(() => {
            leave(waitEnded("deadline exceeded"));
          }, leftMs);
    const stopListening = scope.onCancel(() => {
      leave(waitEnded("the caller cancelled the request"));
    });
    void work.then(resolve, reject).finally(stop);
  });
}

/** Why nothing need be begun for a request; null while it lasts. */
export function whyOver(
  scope: RequestScope,
  monotonicMs: () => number,
): AdmissionError | null {
  if (scope.cancelled) return waitEnded("the caller cancelled the request");
  if (scope.deadlineAtMs <= monotonicMs())
    return waitEnded("deadline exceeded");
  return null;
}

function waitEnded(why: string): AdmissionError {
  return new AdmissionError(
    "policy-unavailable",
    `waiting for the policy engine: ${why}`,
  );
}
