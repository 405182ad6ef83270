import { WasmFunctionError } from "../errors.js";
import type { Clock, RequestScope } from "../ports.js";
import { createRequestScope, whenOver } from "../request-scope.js";
import { refuse } from "./refuse.js";

/** Work that everybody who asks for the same thing at once shares. */
export interface Flights<T> {
  /**
   * Joins the work called `key`, or starts it. The work has a budget of its own, whoever began it,
   * and goes on when those who wait have gone: the next request finds what it brought. A failure is
   * remembered for a while and told to whoever asks meanwhile.
   * @throws what the work throws; LoaderError resolve-cancelled, still-resolving
   */
  share(
    key: string,
    work: (scope: RequestScope) => Promise<T>,
    scope: RequestScope,
  ): Promise<T>;
}

/** How long work may take, and how long which of its failures is remembered. */
export interface FlightsOptions {
  readonly budgetMs: number;
  readonly failureHoldsMs: number;
  /** By default every one that this program throws on purpose. */
  readonly isRemembered?: (thrown: unknown) => boolean;
}

interface Flight<T> {
  readonly done: Promise<T>;
  readonly startedAtMs: number;
  /** When its failure is forgotten; null = it has not failed. */
  failedUntilMs: number | null;
}

/** A few seconds: long enough to spare who fails, short enough to notice that he is well again. */
export const FAILURE_HOLDS_MS = 5_000;
const MAX_REMEMBERED = 1_000;

/** Flights of one kind; none is under way. */
export function createFlights<T>(
  options: FlightsOptions,
  clock: Clock,
): Flights<T> {
  // A fault of ours is no answer to the next one who asks.
  const { budgetMs, failureHoldsMs, isRemembered = isOnPurpose } = options;
  const flights = new Map<string, Flight<T>>();

  function start(
    key: string,
    work: (scope: RequestScope) => Promise<T>,
  ): Flight<T> {
    const startedAtMs = clock.monotonicMs();
    const scope = createRequestScope({ deadlineAtMs: startedAtMs + budgetMs });
    const flight: Flight<T> = {
      done: work(scope),
      startedAtMs,
      failedUntilMs: null,
    };
    flights.set(key, flight);
    flight.done.then(
      () => flights.delete(key),
      (thrown: unknown) => {
        if (!isRemembered(thrown)) {
          flights.delete(key);
          return;
        }
        flight.failedUntilMs = clock.monotonicMs() + failureHoldsMs;
        dropForgotten();
      },
    );
    return flight;
  }

  function find(key: string): Flight<T> | undefined {
    const flight = flights.get(key);
    const until = flight?.failedUntilMs ?? null;
    if (until === null || until > clock.monotonicMs()) return flight;
    flights.delete(key);
    return undefined;
  }

  /** Failures are few; somebody who makes them on purpose must not fill the memory with them. */
  function dropForgotten(): void {
    if (flights.size <= MAX_REMEMBERED) return;
    for (const [key, { failedUntilMs }] of flights) {
      if (flights.size <= MAX_REMEMBERED) return;
      if (failedUntilMs !== null) flights.delete(key);
    }
  }

  return {
    async share(key, work, scope) {
      const flight = find(key) ?? start(key, work);
      return await waitFor(flight, scope, clock);
    },
  };
}

function isOnPurpose(thrown: unknown): boolean {
  return thrown instanceof WasmFunctionError;
}

function waitFor<T>(
  { done, startedAtMs }: Flight<T>,
  scope: RequestScope,
  clock: Clock,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const stopWatching = whenOver(scope, clock, (why) => {
      const seconds = Math.round((clock.monotonicMs() - startedAtMs) / 1000);
      reject(
        why === "cancelled"
          ? refuse("resolve-cancelled", "the request was cancelled meanwhile")
          : refuse(
              "still-resolving",
              `it is still being fetched (for ${seconds} s so far): the request's deadline came first, the fetch goes on`,
            ),
      );
    });
    done.then(resolve, reject).finally(stopWatching);
  });
}
