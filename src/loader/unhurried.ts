import type { RequestScope } from "../ports.js";
import { createRequestScope } from "../request-scope.js";

/** For who waits for work that has a budget of its own, while somebody else watches the clock for him. */
export function unhurried(): RequestScope {
  return createRequestScope({ deadlineAtMs: Infinity });
}
