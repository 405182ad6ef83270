import { LRUCache } from "lru-cache";
import type { Clock } from "../../ports.js";
import { isUnreachable, type LoaderError } from "../error.js";
import { refuse } from "../refuse.js";
import type { Send } from "./transport.js";

/** How long a server that gave no answer is left alone. */
const OPEN_MS = 5_000;
/** A server that answered anybody this lately is there: a step is reconciled once a minute or so. */
const THERE_MS = 90_000;
/** A deadline that comes sooner says nothing about the server. */
const FAIR_CHANCE_MS = 2_000;
/** Timers may fire a little before their time. */
const EARLY_MS = 50;
const MAX_SERVERS = 1_000;

/** That no answer came. */
interface Silence {
  readonly error: LoaderError;
  readonly atMs: number;
}

/**
 * Leaves a server that gave no answer alone for a while, so that a registry in a black hole costs
 * one request its time, and not every one. A status, whatever it says, is an answer.
 *
 * Of a server that answers others, only the path that gets no answer is left alone: else whoever may
 * name a path that hangs, such as a proxy's to a registry of his own, could keep everybody from it.
 */
export function breaking(send: Send, clock: Clock): Send {
  const silentServers = new LRUCache<string, Silence>({ max: MAX_SERVERS });
  const silentPaths = new LRUCache<string, Silence>({ max: MAX_SERVERS });
  const answeredAtMs = new LRUCache<string, number>({ max: MAX_SERVERS });

  function refuseSilent(silent: LRUCache<string, Silence>, name: string): void {
    const known = silent.get(name);
    if (known === undefined) return;
    const ageMs = clock.monotonicMs() - known.atMs;
    if (ageMs >= OPEN_MS) {
      silent.delete(name);
      return;
    }
    throw refuse(
      "registry-unreachable",
      `${known.error.message} (${Math.round(ageMs / 1000)} s ago, asked again after ${OPEN_MS / 1000} s)`,
      known.error,
    );
  }

  return async (request, scope) => {
    const server = request.url.origin;
    const path = `${server}${request.url.pathname}`;
    refuseSilent(silentServers, server);
    refuseSilent(silentPaths, path);
    const askedAtMs = clock.monotonicMs();
    try {
      const response = await send(request, scope);
      answeredAtMs.set(server, clock.monotonicMs());
      return response;
    } catch (thrown) {
      const nowMs = clock.monotonicMs();
      // Who sent us here a moment before the deadline must not get this server a bad name.
      const hadTime =
        nowMs < scope.deadlineAtMs - EARLY_MS ||
        nowMs - askedAtMs >= FAIR_CHANCE_MS;
      if (isUnreachable(thrown) && hadTime) {
        const silence = { error: thrown, atMs: nowMs };
        const isThere =
          nowMs - (answeredAtMs.get(server) ?? -Infinity) < THERE_MS;
        if (isThere) silentPaths.set(path, silence);
        else silentServers.set(server, silence);
      }
      throw thrown;
    }
  };
}
