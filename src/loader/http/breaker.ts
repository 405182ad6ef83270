import { LRUCache } from "lru-cache";
import type { Clock } from "../../ports.js";
import { isUnreachable, type LoaderError } from "../error.js";
import { refuse } from "../refuse.js";
import type { Send } from "./transport.js";

/** How long a server that gave no answer is left alone. */
const OPEN_MS = 5_000;
/** A deadline that comes sooner says nothing about the server. */
const FAIR_CHANCE_MS = 2_000;
/** Timers may fire a little before their time. */
const EARLY_MS = 50;
const MAX_SERVERS = 1_000;

/**
 * Leaves a server that gave no answer alone for a while, so that a registry in a black hole costs
 * one request its time, and not every one. A status, whatever it says, is an answer.
 */
export function breaking(send: Send, clock: Clock): Send {
  const silent = new LRUCache<
    string,
    { readonly error: LoaderError; readonly atMs: number }
  >({ max: MAX_SERVERS });
  return async (request, scope) => {
    const server = request.url.origin;
    const known = silent.get(server);
    if (known !== undefined) {
      const ageMs = clock.monotonicMs() - known.atMs;
      if (ageMs < OPEN_MS) {
        throw refuse(
          "registry-unreachable",
          `${known.error.message} (${Math.round(ageMs / 1000)} s ago, asked again after ${OPEN_MS / 1000} s)`,
          known.error,
        );
      }
      silent.delete(server);
    }
    const askedAtMs = clock.monotonicMs();
    try {
      return await send(request, scope);
    } catch (thrown) {
      const nowMs = clock.monotonicMs();
      // Who sent us here a moment before the deadline must not get this server a bad name.
      const hadTime =
        nowMs < scope.deadlineAtMs - EARLY_MS ||
        nowMs - askedAtMs >= FAIR_CHANCE_MS;
      if (isUnreachable(thrown) && hadTime)
        silent.set(server, { error: thrown, atMs: clock.monotonicMs() });
      throw thrown;
    }
  };
}
