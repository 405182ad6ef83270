import type { RequestScope } from "../../ports.js";
import { refuse } from "../refuse.js";

/**
 * Waits `ms` milliseconds.
 * @throws LoaderError resolve-cancelled, as soon as the scope is cancelled
 */
export function sleep(ms: number, scope: RequestScope): Promise<void> {
  return new Promise((resolve, reject) => {
    const leave = (): void => {
      clearTimeout(timer);
      reject(
        refuse("resolve-cancelled", "the request ended while it was waiting"),
      );
    };
    const timer = setTimeout(() => {
      unsubscribe();
      resolve();
    }, ms);
    const unsubscribe = scope.onCancel(leave);
    if (scope.cancelled) leave();
  });
}
