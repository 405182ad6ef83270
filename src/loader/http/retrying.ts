import type { Clock, RequestScope } from "../../ports.js";
import { LoaderError } from "../error.js";
import { retryAfterOf } from "./retry-after.js";
import type { HttpRequest, HttpResponse, Send } from "./transport.js";

/** What repeating needs of the outside world. */
export interface RetryOptions {
  readonly clock: Clock;
  /** Waits; throws LoaderError resolve-cancelled when the scope is cancelled. */
  readonly sleep: (ms: number, scope: RequestScope) => Promise<void>;
  /** From 0 to 1, as Math.random. */
  readonly random: () => number;
}

const MAX_ATTEMPTS = 3;
const FIRST_PAUSE_MS = 200;
/** Whatever the deadline: nobody waits longer for one answer. */
const MAX_PAUSE_MS = 60_000;
/** What must be left of the time for an attempt to make sense. */
const ATTEMPT_MS = 100;
/** A failure that took this long is no hiccup: who waits should hear of it. */
const SLOW_MS = 2_000;
const PASSING_STATUSES = [408, 429, 500, 502, 503, 504];

type Outcome =
  | { readonly kind: "answer"; readonly response: HttpResponse }
  | { readonly kind: "failure"; readonly error: unknown };

/**
 * Sends a request again when it failed in a way that may pass: no connection, or a status 408, 429,
 * 500, 502, 503 or 504. Not when it took two seconds to get no answer at all. At most three attempts, never for POST and PATCH, and never when the pause,
 * or the one that `Retry-After` asks for, does not fit before the scope's deadline. Then the last
 * answer is given back, whatever its status, or the last error thrown.
 * @throws what `send` and `sleep` throw
 */
export function retrying(send: Send, options: RetryOptions): Send {
  return async (request, scope) => {
    for (let attempt = 1; ; attempt++) {
      const startedAtMs = options.clock.monotonicMs();
      const outcome = await attemptOnce(send, request, scope);
      const isSlow =
        outcome.kind === "failure" &&
        options.clock.monotonicMs() - startedAtMs >= SLOW_MS;
      const mayRepeat =
        attempt < MAX_ATTEMPTS &&
        isRepeatable(request) &&
        mayPass(outcome) &&
        !isSlow;
      const pauseMs = pauseAfter(outcome, attempt, options);
      const leftMs = scope.deadlineAtMs - options.clock.monotonicMs();
      if (!mayRepeat || pauseMs > MAX_PAUSE_MS || pauseMs + ATTEMPT_MS > leftMs)
        return unwrap(outcome);
      if (outcome.kind === "answer") await outcome.response.discard();
      await options.sleep(pauseMs, scope);
    }
  };
}

async function attemptOnce(
  send: Send,
  request: HttpRequest,
  scope: RequestScope,
): Promise<Outcome> {
  try {
    return { kind: "answer", response: await send(request, scope) };
  } catch (error) {
    return { kind: "failure", error };
  }
}

function isRepeatable({ method }: HttpRequest): boolean {
  return method !== "POST" && method !== "PATCH";
}

function mayPass(outcome: Outcome): boolean {
  return outcome.kind === "answer"
    ? PASSING_STATUSES.includes(outcome.response.status)
    : outcome.error instanceof LoaderError &&
        outcome.error.code === "registry-unreachable";
}

/** Half of it is chance, so that those who failed together do not come back together. */
function pauseAfter(
  outcome: Outcome,
  attempt: number,
  { clock, random }: RetryOptions,
): number {
  const backoffMs = FIRST_PAUSE_MS * 2 ** (attempt - 1) * (0.5 + random() / 2);
  const asked =
    outcome.kind === "answer" ? retryAfterOf(outcome.response) : null;
  if (asked === null) return backoffMs;
  const askedMs =
    asked.kind === "delay" ? asked.delayMs : asked.atMs - clock.nowMs();
  return Math.max(backoffMs, askedMs);
}

function unwrap(outcome: Outcome): HttpResponse {
  if (outcome.kind === "failure") throw outcome.error;
  return outcome.response;
}
