import { LRUCache } from "lru-cache";
import type { Clock, RequestScope } from "../../ports.js";
import { whenOver } from "../../request-scope.js";
import { refuse } from "../refuse.js";

/** What is sent along after a registry has asked for it. */
export interface Grant {
  /** A secret: the value of an `Authorization` header. */
  readonly authorization: string;
  /** Whether it is a credential, or was got with one. */
  readonly usedCredential: boolean;
  /** On `Clock.monotonicMs`. */
  readonly expiresAtMs: number;
  /** What it came from; grants with the same one do the same. */
  readonly source: string;
}

/** Remembers grants, by what they are for. */
export interface GrantMemory {
  /** `undefined` when there is none, or it has expired. */
  recall(key: string): Grant | undefined;
  remember(key: string, grant: Grant): void;
  /** Forgets this very grant; one that has taken its place stays. */
  forget(key: string, grant: Grant | undefined): void;
  /**
   * What `start` makes, which is not called while what it made for the same `source` is on its way.
   * The wait ends with the caller's scope, and the work goes on for the others.
   * @param waitingFor names it in messages
   * @throws LoaderError resolve-cancelled, registry-unreachable, and what `start` throws
   */
  share(
    source: string,
    waitingFor: string,
    scope: RequestScope,
    start: () => Promise<Grant>,
  ): Promise<Grant>;
}

const MAX_GRANTS = 1000;

/** A memory of at most 1000 grants, empty. */
export function createGrantMemory(clock: Clock): GrantMemory {
  const known = new LRUCache<string, Grant>({ max: MAX_GRANTS });
  const flights = new Map<string, Promise<Grant>>();
  return {
    recall(key) {
      const grant = known.get(key);
      const isUsable =
        grant !== undefined && clock.monotonicMs() < grant.expiresAtMs;
      return isUsable ? grant : undefined;
    },
    remember(key, grant) {
      known.set(key, grant);
    },
    forget(key, grant) {
      if (known.peek(key) === grant) known.delete(key);
    },
    share(source, waitingFor, scope, start) {
      let flight = flights.get(source);
      if (flight === undefined) {
        flight = start().finally(() => flights.delete(source));
        flights.set(source, flight);
      }
      return untilOver(flight, waitingFor, scope, clock);
    },
  };
}

function untilOver<T>(
  result: Promise<T>,
  waitingFor: string,
  scope: RequestScope,
  clock: Clock,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = whenOver(scope, clock, (why) => {
      reject(
        why === "cancelled"
          ? refuse(
              "resolve-cancelled",
              `the request ended while it waited for ${waitingFor}`,
            )
          : refuse(
              "registry-unreachable",
              `the request's deadline came while it waited for ${waitingFor}`,
            ),
      );
    });
    result.then(resolve, reject).finally(stop);
  });
}
