import { LRUCache } from "lru-cache";
import type { Clock, Digest } from "../ports.js";
import type { AccessStore } from "./store/access-store.js";

/** Bytes, the place they are asked for at, and who asks. */
export interface Claim {
  /** A canonical location or a URL; the same bytes may be elsewhere, too. */
  readonly place: string;
  readonly digest: Digest;
  /** `anonymous`, or what stands for a credential. */
  readonly identity: string;
}

/** How far a claim is proved. */
export type Standing =
  /** What is in the cache may be served without a question. */
  | "proved"
  /** It was proved once; ask again, and serve only where nobody answers. */
  | "stale"
  | "unproved";

/**
 * Who has shown that he can get what is in the cache: content that one step pulled must not become
 * another's only because it lies here. A fence permits a place, so what counts is that the bytes
 * were delivered at that very place; and a private repository gives them to some only.
 */
export interface Access {
  standing(claim: Claim): Promise<Standing>;
  /** Whether it was ever proved, however long ago. */
  wasProved(claim: Claim): Promise<boolean>;
  /** @param isPublic whether the place gave them away without a credential */
  prove(claim: Claim, isPublic: boolean): Promise<void>;
  /** The place refused. */
  disprove(claim: Claim): Promise<void>;
  /** Whether the last answer of a place to this identity was a refusal; survives restarts. */
  wasRefused(request: Refusable): Promise<boolean>;
  setRefused(request: Refusable, isRefused: boolean): Promise<void>;
}

/** What may be refused without being known by a digest: a tag. */
export type Refusable = Omit<Claim, "digest">;

export const ANONYMOUS = "anonymous";
/** How long a place that gives no answer may leave a proof as it is. */
const STALE_HOLDS_MS = 7 * 24 * 3_600_000;
const MAX_REMEMBERED = 10_000;
const DAY_MS = 86_400_000;

interface Remembered {
  readonly provedAtMs: number;
  /** When the store was asked or told last, on `Clock.monotonicMs`: it keeps what is asked for. */
  readonly askedAtMs: number;
}

/**
 * What was given away without a credential stays proved: bytes do not become secret again. A proof
 * by credential holds for `recheckIntervalMs`.
 */
export function createAccess(
  store: AccessStore,
  recheckIntervalMs: number,
  clock: Clock,
): Access {
  /** So that most requests do not look into the store. */
  const known = new LRUCache<string, Remembered>({ max: MAX_REMEMBERED });

  let changes = 0;

  async function provedAt(claim: Claim): Promise<number | null> {
    const key = claimKey(claim);
    const remembered = known.get(key);
    const askedAtMs = clock.monotonicMs();
    if (remembered !== undefined && askedAtMs - remembered.askedAtMs < DAY_MS)
      return remembered.provedAtMs;
    const before = changes;
    const stored = await store.provedAt(claim);
    // What was disproved meanwhile must not come back.
    if (stored !== null && before === changes)
      known.set(key, { provedAtMs: stored, askedAtMs });
    return stored;
  }

  async function record(claim: Claim): Promise<void> {
    const nowMs = clock.nowMs();
    const askedAtMs = clock.monotonicMs();
    known.set(claimKey(claim), { provedAtMs: nowMs, askedAtMs });
    await store.record(claim, nowMs);
  }

  async function forget(claim: Claim): Promise<void> {
    changes += 1;
    known.delete(claimKey(claim));
    await store.forget(claim);
  }

  return {
    async standing(claim) {
      const anybodys = { ...claim, identity: ANONYMOUS };
      if (claim.identity === ANONYMOUS)
        return (await provedAt(anybodys)) === null ? "unproved" : "proved";
      // Its own proof first: it is in memory whenever the claim is made often.
      const atMs = await provedAt(claim);
      const ageMs = atMs === null ? Infinity : clock.nowMs() - atMs;
      // A clock that was set back makes no proof fresh.
      if (ageMs >= 0 && ageMs < recheckIntervalMs) return "proved";
      if ((await provedAt(anybodys)) !== null) return "proved";
      return ageMs < STALE_HOLDS_MS ? "stale" : "unproved";
    },

    async wasProved(claim) {
      const anybodys = { ...claim, identity: ANONYMOUS };
      return (
        (await provedAt(claim)) !== null || (await provedAt(anybodys)) !== null
      );
    },

    async prove(claim, isPublic) {
      await record(isPublic ? { ...claim, identity: ANONYMOUS } : claim);
    },

    disprove: forget,

    async wasRefused(request) {
      return (await provedAt(refusalOf(request))) !== null;
    },

    async setRefused(request, isRefused) {
      const refusal = refusalOf(request);
      const isSet = (await provedAt(refusal)) !== null;
      if (isSet === isRefused) return;
      await (isRefused ? record(refusal) : forget(refusal));
    },
  };
}

/** Tells claims apart in memory. */
export function claimKey({ place, digest, identity }: Claim): string {
  return `${identity} ${digest} ${place}`;
}

const NO_DIGEST: Digest = `sha256:${"0".repeat(64)}`;

/** A record like the others; no place is named so. */
function refusalOf({ place, identity }: Refusable): Claim {
  return { place: `refused ${place}`, digest: NO_DIGEST, identity };
}
