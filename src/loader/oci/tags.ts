import { LRUCache } from "lru-cache";
import type {
  Clock,
  Digest,
  LogFields,
  Logger,
  Metrics,
  OciReference,
  RequestScope,
  Warning,
} from "../../ports.js";
import { isRefusal, isUnreachable, type LoaderError } from "../error.js";
import { createFlights, FAILURE_HOLDS_MS } from "../flights.js";
import type { Access, Refusable } from "../access.js";
import { RESOLVE_BUDGET_MS } from "../limits.js";
import { refuse } from "../refuse.js";
import type { PointerStore } from "../store/pointer-store.js";
import {
  identified,
  type FreshManifest,
  type Image,
  type Images,
} from "./images.js";
import type { Puller, Registry } from "./registry.js";

/** A reference whose tag is to be followed. */
export interface TagReference extends OciReference {
  readonly tag: string;
}

/** What a tag leads to. */
export interface ResolvedTag {
  readonly image: Image;
  /** What users should know: the registry gave no answer. `null` = nothing. */
  readonly warning: Warning | null;
}

/** Follows tags, in lock-step with the digest a step expects. */
export interface Tags {
  /**
   * @param expected what the tag must lead to; null = whatever it leads to
   * @throws LoaderError, its reason alone; expected-digest-mismatch
   */
  resolve(
    ref: TagReference,
    expected: Digest | null,
    puller: Puller,
    scope: RequestScope,
  ): Promise<ResolvedTag>;
}

/** What the operator set. */
export interface TagOptions {
  /** How long a resolution may be used again; 0 = every request asks. */
  readonly resolveIntervalMs: number;
  /**
   * How old a resolution may be that is used because nobody answers; 0 = it never is, by the
   * operator's word; null = whoever asks has no use for one.
   */
  readonly maxStalenessMs: number | null;
  /** Whether that is what --max-tag-staleness says, which messages then name; true by default. */
  readonly isStalenessFlag?: boolean;
}

/** What {@link createTags} works with. */
export interface TagsParts {
  readonly registry: Registry;
  readonly images: Images;
  readonly access: Access;
  readonly pointers: PointerStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

const MAX_REMEMBERED = 10_000;

/** What a tag led to, and when it was asked for. */
interface Reusable {
  readonly digest: Digest;
  readonly askedAtMs: number;
}

/** A tag whose registry gives no answer. */
interface Outage {
  readonly digest: Digest;
  isSaid: boolean;
}

/** A tag's manifest, and when it was asked for. */
interface Resolution {
  readonly manifest: FreshManifest;
  readonly askedAtUnixMs: number;
  readonly askedAtMs: number;
}

export function createTags(options: TagOptions, parts: TagsParts): Tags {
  const { registry, images, access, pointers, clock, logger, metrics } = parts;
  const flights = createFlights<Resolution>(
    {
      budgetMs: RESOLVE_BUDGET_MS,
      failureHoldsMs: FAILURE_HOLDS_MS,
      // Whoever asks for a tag wants to know what it is now, if there is anybody to tell.
      isRemembered: isUnreachable,
    },
    clock,
  );
  const reusable = new LRUCache<string, Reusable>({ max: MAX_REMEMBERED });
  /** What each tag is served with while nobody answers, and whether users know. */
  const outages = new LRUCache<string, Outage>({ max: MAX_REMEMBERED });
  /** The digest that each tag led to last. */
  const seen = new LRUCache<string, Digest>({ max: MAX_REMEMBERED });

  async function ask(
    ref: TagReference,
    puller: Puller,
    scope: RequestScope,
  ): Promise<Resolution> {
    const resolution = await flights.share(
      askedKey(ref, puller),
      async (own) => {
        const askedAtUnixMs = clock.nowMs();
        const askedAtMs = clock.monotonicMs();
        const delivered = await registry.manifest(ref.tag, puller, own);
        const manifest = identified(delivered, puller.at);
        return { manifest, askedAtUnixMs, askedAtMs };
      },
      scope,
    );
    metrics.tagResolved("registry");
    return resolution;
  }

  /** What the tag led to a moment ago, if that may be used again. */
  async function reuse(
    ref: TagReference,
    expected: Digest | null,
    puller: Puller,
  ): Promise<ResolvedTag | null> {
    const known = reusable.get(askedKey(ref, puller));
    if (known === undefined) return null;
    if (clock.monotonicMs() - known.askedAtMs >= options.resolveIntervalMs)
      return null;
    // Tag and expectation may have moved together since.
    if (expected !== null && expected !== known.digest) return null;
    const { digest } = known;
    const { at, identity } = puller;
    // Asking for the tag asks about access, too, and that must be done now and then.
    const claim = { place: at.location, digest, identity };
    if ((await access.standing(claim)) !== "proved") return null;
    const image = await images.cached(digest, puller);
    if (image === null) return null;
    metrics.tagResolved("cache");
    return { image, warning: null };
  }

  /** The registry answered. */
  async function accept(
    ref: TagReference,
    expected: Digest | null,
    { manifest, askedAtMs, askedAtUnixMs }: Resolution,
    puller: Puller,
  ): Promise<ResolvedTag> {
    const { digest } = manifest;
    if (expected !== null && digest !== expected)
      throw otherThanExpected(manifest, expected);
    const image = await images.keep(manifest, puller);
    if (options.resolveIntervalMs > 0)
      reusable.set(askedKey(ref, puller), { digest, askedAtMs });
    await access.setRefused(tagOf(ref, puller), false);
    const key = pointerKey(ref);
    outages.delete(expectedKey(ref));
    if (outages.delete(key))
      logger.info({ ref: key, digest }, "the registry answers again");
    const before = seen.get(key);
    if (before !== undefined && before !== digest)
      logger.info({ ref: key, digest, before }, "a tag was moved");
    seen.set(key, digest);
    // With an expectation the pointer is never asked, and must not be moved either.
    if (expected === null) await pointers.write(key, digest, askedAtUnixMs);
    return { image, warning: null };
  }

  /** The registry gave no answer, and the step says which digest it wants. */
  async function fallBackToExpected(
    ref: TagReference,
    expected: Digest,
    cause: LoaderError,
    puller: Puller,
  ): Promise<ResolvedTag> {
    const image = await images.cached(expected, puller);
    if (image === null) {
      throw refuse(
        "registry-unreachable",
        `${cause.message}; module.oci.expectedDigest ${expected} is not in the cache for this step${await whatElse(ref, expected)}`,
        cause,
      );
    }
    metrics.tagResolved("cache");
    const key = expectedKey(ref);
    if (outages.get(key)?.digest !== expected) {
      outages.set(key, { digest: expected, isSaid: true });
      logger.info(
        { ref: pointerKey(ref), digest: expected, reason: cause.message },
        "the registry gives no answer, the expected digest is in the cache",
      );
    }
    return { image, warning: null };
  }

  async function whatElse(
    ref: TagReference,
    expected: Digest,
  ): Promise<string> {
    const pointer = await pointers.read(pointerKey(ref));
    return pointer === null || pointer.digest === expected
      ? ""
      : `, and the tag led to ${pointer.digest} when it was last resolved`;
  }

  /** The registry gave no answer, and any digest will do: the one the tag led to last. */
  async function fallBackToPointer(
    ref: TagReference,
    cause: LoaderError,
    puller: Puller,
  ): Promise<ResolvedTag> {
    const key = pointerKey(ref);
    const unreachable = (why: string) =>
      refuse("registry-unreachable", `${cause.message}; ${why}`, cause);
    if (options.maxStalenessMs === null) throw cause;
    if (options.maxStalenessMs === 0)
      throw unreachable("--max-tag-staleness 0 allows no earlier resolution");
    const pointer = await pointers.read(key);
    if (pointer === null)
      throw unreachable("no earlier resolution of the tag is known");
    const { digest } = pointer;
    const ageMs = Math.max(0, clock.nowMs() - pointer.resolvedAtMs);
    const age = `${Math.round(ageMs / 1000)} s`;
    if (ageMs > options.maxStalenessMs) {
      const maxSeconds = options.maxStalenessMs / 1000;
      throw unreachable(
        options.isStalenessFlag === false
          ? `the tag led to ${digest} ${age} ago, too long ago to go by (at most ${maxSeconds} s): try again when the registry answers, or pin a digest`
          : `the tag led to ${digest} ${age} ago, --max-tag-staleness allows ${maxSeconds} s`,
      );
    }
    const image = await images.cached(digest, puller);
    if (image === null)
      throw unreachable(
        `the tag led to ${digest} ${age} ago, which is not in the cache for this step`,
      );
    metrics.tagResolved("pointer");
    const outage = outageOf(key, digest, { ageMs, reason: cause.message });
    if (outage.isSaid) return { image, warning: null };
    const text = `${key}: ${cause.message}; using ${digest}, which the tag led to ${age} ago`;
    return {
      image,
      warning: {
        text,
        said() {
          outage.isSaid = true;
        },
      },
    };
  }

  function outageOf(key: string, digest: Digest, fields: LogFields): Outage {
    const known = outages.get(key);
    if (known?.digest === digest) return known;
    const outage = { digest, isSaid: false };
    outages.set(key, outage);
    logger.warn(
      { ref: key, digest, ...fields },
      "the registry gives no answer, a tag's last known digest is used",
    );
    return outage;
  }

  /** What this puller had under the tag is not his any more, whatever happens to the registry next. */
  async function disown(
    ref: TagReference,
    expected: Digest | null,
    puller: Puller,
    refusal: LoaderError,
  ): Promise<void> {
    reusable.delete(askedKey(ref, puller));
    await access.setRefused(tagOf(ref, puller), true);
    if (puller.credential === null) return;
    if (refusal.code !== "registry-auth-failed") return;
    const pointer = await pointers.read(pointerKey(ref));
    for (const digest of [expected, pointer?.digest ?? null])
      if (digest !== null) await images.refused(digest, puller);
  }

  return {
    async resolve(ref, expected, puller, scope) {
      const reused = await reuse(ref, expected, puller);
      if (reused !== null) return reused;
      let resolution: Resolution;
      try {
        resolution = await ask(ref, puller, scope);
      } catch (thrown) {
        if (!isUnreachable(thrown)) {
          if (isRefusal(thrown)) await disown(ref, expected, puller, thrown);
          throw thrown;
        }
        // An outage makes no reference exist again.
        if (await access.wasRefused(tagOf(ref, puller)))
          throw stillRefused(thrown);
        return expected === null
          ? await fallBackToPointer(ref, thrown, puller)
          : await fallBackToExpected(ref, expected, thrown, puller);
      }
      return await accept(ref, expected, resolution, puller);
    },
  };
}

function askedKey(ref: TagReference, { identity }: Puller): string {
  return `${identity} ${pointerKey(ref)}`;
}

/** Canonical; also tells tags apart in messages. */
function pointerKey({ location, tag }: TagReference): string {
  return `${location}:${tag}`;
}

/** Steps that expect a digest and such that do not are told apart in what was said. */
function expectedKey(ref: TagReference): string {
  return `expected ${pointerKey(ref)}`;
}

function tagOf(ref: TagReference, { identity }: Puller): Refusable {
  return { place: pointerKey(ref), identity };
}

function otherThanExpected(
  { digest, sentOnTo }: FreshManifest,
  expected: Digest,
): LoaderError {
  const to = sentOnTo === null ? digest : `what is not that, on ${sentOnTo}`;
  return refuse(
    "expected-digest-mismatch",
    `the tag leads to ${to}, module.oci.expectedDigest is ${expected}`,
  );
}

function stillRefused(cause: LoaderError): LoaderError {
  return refuse(
    "registry-unreachable",
    `${cause.message}; when it last answered, it refused`,
    cause,
  );
}
