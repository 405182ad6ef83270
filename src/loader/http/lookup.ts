import dns, { type LookupAddress, type LookupOptions } from "node:dns";
import type { LookupFunction } from "node:net";
import { LRUCache } from "lru-cache";
import pLimit from "p-limit";
import type { Clock } from "../../ports.js";
import { startTimer } from "../../request-scope.js";
import { errnoOf } from "../../errors.js";

/** All addresses of a host; rejects with a code, such as ENOTFOUND. */
type FindAddresses = (
  host: string,
  options: LookupOptions,
) => Promise<readonly LookupAddress[]>;

interface Known {
  readonly addresses: readonly LookupAddress[];
  readonly atMs: number;
  /** Whether the last look-up took no long time. */
  readonly isQuick: boolean;
}

const MAX_HOSTS = 1_000;
/** When what is known of a host is used, since its name's server has not answered. */
const LATE_MS = 500;
/** How long addresses may be used in the stead of an answer. */
const USABLE_MS = 10 * 60_000;
const QUICK_MS = 1_000;
/** Whoever waited longer to begin has gone: that is how long a connection may take. */
const WAIT_MS = 3_000;

/**
 * Finds addresses the system's way, without leaving everybody to whoever's names take long: the
 * system looks up two names at a time, and one whose server does not answer takes it ten seconds.
 *
 * So names that are not known to be answered quickly are looked up one at a time. A host that was
 * found in the last ten minutes, and is not found again within half a second, is where it was.
 * @param find for tests
 */
export function createLookup(
  clock: Clock,
  find: FindAddresses = findAll,
): LookupFunction {
  const known = new LRUCache<string, Known>({ max: MAX_HOSTS });
  const running = new Map<string, Promise<readonly LookupAddress[]>>();
  const oneAtATime = pLimit(1);

  async function ask(
    host: string,
    options: LookupOptions,
    askedAtMs: number,
  ): Promise<readonly LookupAddress[]> {
    const startedAtMs = clock.monotonicMs();
    if (startedAtMs - askedAtMs > WAIT_MS) throw tooManyAsk();
    try {
      const addresses = await find(host, options);
      const atMs = clock.monotonicMs();
      const isQuick = atMs - startedAtMs < QUICK_MS;
      known.set(host, { addresses, atMs, isQuick });
      return addresses;
    } catch (thrown) {
      const before = known.get(host);
      if (errnoOf(thrown) === "ENOTFOUND") known.delete(host);
      else if (before !== undefined)
        known.set(host, { ...before, isQuick: false });
      throw thrown;
    }
  }

  function share(
    host: string,
    options: LookupOptions,
  ): Promise<readonly LookupAddress[]> {
    const shared = running.get(host);
    if (shared !== undefined) return shared;
    const askedAtMs = clock.monotonicMs();
    const work = () => ask(host, options, askedAtMs);
    const isQuick = known.get(host)?.isQuick === true;
    const flight = (isQuick ? work() : oneAtATime(work)).finally(() =>
      running.delete(host),
    );
    running.set(host, flight);
    return flight;
  }

  async function addressesOf(
    host: string,
    options: LookupOptions,
  ): Promise<readonly LookupAddress[]> {
    const before = known.get(host);
    const answer = share(host, options);
    if (before === undefined || clock.monotonicMs() - before.atMs >= USABLE_MS)
      return await answer;
    let stopTimer = (): void => undefined;
    const late = new Promise<readonly LookupAddress[]>((resolve) => {
      stopTimer = startTimer(LATE_MS, () => resolve(before.addresses));
    });
    try {
      return await Promise.race([answer, late]);
    } catch (thrown) {
      // That there is no such host is an answer.
      if (errnoOf(thrown) === "EAI_AGAIN") return before.addresses;
      throw thrown;
    } finally {
      stopTimer();
    }
  }

  return (host, options, callback) => {
    addressesOf(host, options).then(
      (addresses) => {
        const [first] = addresses;
        if (options.all === true) callback(null, [...addresses]);
        else callback(null, first?.address ?? "", first?.family);
      },
      (thrown: unknown) => callback(thrown as NodeJS.ErrnoException, []),
    );
  };
}

function findAll(
  host: string,
  options: LookupOptions,
): Promise<readonly LookupAddress[]> {
  return new Promise((resolve, reject) => {
    dns.lookup(host, { ...options, all: true }, (error, addresses) => {
      if (error === null) resolve(addresses);
      else reject(error);
    });
  });
}

function tooManyAsk(): NodeJS.ErrnoException {
  return Object.assign(new Error("other names take long to look up"), {
    code: "EAI_AGAIN",
  });
}
