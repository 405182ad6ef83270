import type { Clock, RequestScope } from "../../ports.js";
import { whenOver } from "../../request-scope.js";
import type { LoaderError } from "../error.js";
import { refuse } from "../refuse.js";
import type { Phase } from "./failure.js";

/** Ends an exchange when its scope does. */
export interface ExchangeWatch {
  /** Aborted with the LoaderError that the exchange fails with. */
  readonly signal: AbortSignal;
  /** How far the exchange got, for the message. */
  phase: Phase;
  /** Ends the exchange for another reason. */
  abort(error: LoaderError): void;
  /** To be called when the exchange is over. */
  stop(): void;
}

/**
 * Watches a scope for an exchange with `host`.
 * @throws LoaderError resolve-cancelled, registry-unreachable when the scope is over already
 */
export function watchScope(
  scope: RequestScope,
  clock: Clock,
  host: string,
): ExchangeWatch {
  if (scope.cancelled) throw cancelled(host);
  const leftMs = scope.deadlineAtMs - clock.monotonicMs();
  if (leftMs <= 0)
    throw refuse("registry-unreachable", `${host}: no time is left to ask`);
  const controller = new AbortController();
  const watch: ExchangeWatch = {
    signal: controller.signal,
    phase: "headers",
    abort: (error) => controller.abort(error),
    stop: whenOver(scope, clock, (why) => {
      controller.abort(
        why === "cancelled" ? cancelled(host) : late(host, watch.phase, leftMs),
      );
    }),
  };
  return watch;
}

function cancelled(host: string): LoaderError {
  return refuse("resolve-cancelled", `${host}: the request ended meanwhile`);
}

function late(host: string, phase: Phase, afterMs: number): LoaderError {
  const what =
    phase === "headers" ? "no answer within" : "the answer did not end within";
  const seconds = Math.round(afterMs / 100) / 10;
  return refuse("registry-unreachable", `${host}: ${what} ${seconds} s`);
}
