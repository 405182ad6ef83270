import { LRUCache } from "lru-cache";
import pLimit from "p-limit";
import type { Clock, RequestScope } from "../../ports.js";
import { createFlights } from "../flights.js";
import {
  type HelperAnswer,
  type HelperEnv,
  runHelper,
} from "./credential-helper.js";

/** Asks credential helpers, and remembers what they said. */
export interface CredentialHelpers {
  /**
   * As {@link runHelper}. An answer is kept for 5 minutes, a failure for 10 seconds; who asks the
   * same at once shares one run, which goes on when they have gone.
   * @throws LoaderError resolve-cancelled, still-resolving
   */
  ask(
    name: string,
    serverUrl: string,
    scope: RequestScope,
  ): Promise<HelperAnswer>;
}

const ANSWER_HOLDS_MS = 5 * 60_000;
const FAILURE_HOLDS_MS = 10_000;
const MAX_ANSWERS = 500;
/** Each is a process, and whoever names a registry starts one. */
const MAX_CONCURRENT_RUNS = 4;

interface Kept {
  readonly answer: HelperAnswer;
  readonly untilMs: number;
}

/** @param run for tests */
export function createCredentialHelpers(
  env: HelperEnv,
  clock: Clock,
  run = runHelper,
): CredentialHelpers {
  const inTurn = pLimit(MAX_CONCURRENT_RUNS);
  const kept = new LRUCache<string, Kept>({ max: MAX_ANSWERS });
  // A run keeps to its own time limit and does not reject.
  const flights = createFlights<HelperAnswer>(
    { budgetMs: Infinity, failureHoldsMs: 0 },
    clock,
  );
  return {
    async ask(name, serverUrl, scope) {
      const key = JSON.stringify([name, serverUrl]);
      const known = kept.get(key);
      if (known !== undefined && clock.monotonicMs() < known.untilMs)
        return known.answer;
      const work = async (): Promise<HelperAnswer> => {
        const answer = await inTurn(() => run(name, serverUrl, env));
        const untilMs = clock.monotonicMs() + holdsForMs(answer);
        kept.set(key, { answer, untilMs });
        return answer;
      };
      return await flights.share(key, work, scope);
    },
  };
}

function holdsForMs({ kind }: HelperAnswer): number {
  return kind === "missing" || kind === "failed"
    ? FAILURE_HOLDS_MS
    : ANSWER_HOLDS_MS;
}
