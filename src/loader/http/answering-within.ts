import type { Clock, RequestScope } from "../../ports.js";
import { createRequestScope, startTimer } from "../../request-scope.js";
import { LoaderError } from "../error.js";
import { refuse } from "../refuse.js";
import type { Send } from "./transport.js";

/**
 * Gives up on a server that takes a request and does not begin to answer within `answerMs`. The
 * body of an answer that has begun may take as long as the scope says.
 */
export function answeringWithin(
  send: Send,
  answerMs: number,
  clock: Clock,
): Send {
  return async (request, scope) => {
    const answering = createRequestScope({ deadlineAtMs: scope.deadlineAtMs });
    const stopFollowing = follow(scope, () => {
      answering.cancel();
    });
    const timer = { isLate: false };
    // A deadline that comes before is the scope's own, and told by whoever watches that.
    const isSooner = answerMs < scope.deadlineAtMs - clock.monotonicMs();
    const stopTimer = startTimer(isSooner ? answerMs : Infinity, () => {
      timer.isLate = true;
      answering.cancel();
    });
    try {
      return await send(request, answering);
    } catch (thrown) {
      stopFollowing();
      const isOurs =
        timer.isLate &&
        thrown instanceof LoaderError &&
        thrown.code === "resolve-cancelled";
      if (!isOurs) throw thrown;
      throw refuse(
        "registry-unreachable",
        `${request.url.host}: no answer within ${answerMs / 1000} s`,
        thrown,
      );
    } finally {
      stopTimer();
    }
  };
}

/** Calls `listener` once when the scope is cancelled, even when it is already. */
function follow(scope: RequestScope, listener: () => void): () => void {
  if (scope.cancelled) {
    listener();
    return () => undefined;
  }
  return scope.onCancel(listener);
}
