import { LRUCache } from "lru-cache";
import type {
  Clock,
  Digest,
  Logger,
  Metrics,
  OciReference,
  RequestScope,
} from "../../ports.js";
import { LoaderError } from "../error.js";
import { createFlights } from "../flights.js";
import { refuse } from "../refuse.js";
import type { PointerStore } from "../store/pointer-store.js";
import {
  identified,
  RESOLVE_BUDGET_MS,
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
  /** What users should know: the registry gave no answer. Once per change, not once per request. */
  readonly warning: string | null;
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
  /** How old a resolution may be that is used because nobody answers; 0 = it never is. */
  readonly maxStalenessMs: number;
}

/** What {@link createTags} works with. */
export interface TagsParts {
  readonly registry: Registry;
  readonly images: Images;
  readonly pointers: PointerStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

const MAX_REMEMBERED = 10_000;

/** A tag's manifest, and when it was asked for. */
interface Resolution {
  readonly manifest: FreshManifest;
  readonly askedAtUnixMs: number;
  readonly askedAtMs: number;
}

export function createTags(options: TagOptions, parts: TagsParts): Tags {
  const { registry, images, pointers, clock, logger, metrics } = parts;
  const flights = createFlights<Resolution>(
    // Whoever asks for a tag wants to know what it is now.
    { budgetMs: RESOLVE_BUDGET_MS, failureHoldsMs: 0 },
    clock,
  );
  const reusable = new LRUCache<string, Resolution>({ max: MAX_REMEMBERED });
  /** The digest that each tag was last served with because nobody answered. */
  const warned = new LRUCache<string, Digest>({ max: MAX_REMEMBERED });
  /** What each tag was last refused with, to whom; an outage makes no reference exist again. */
  const refused = new LRUCache<string, LoaderError>({ max: MAX_REMEMBERED });
  /** The digest that each tag led to last. */
  const seen = new LRUCache<string, Digest>({ max: MAX_REMEMBERED });

  async function ask(
    ref: TagReference,
    expected: Digest | null,
    puller: Puller,
    scope: RequestScope,
  ): Promise<Resolution> {
    const key = askedKey(ref, puller);
    const known = reusable.get(key);
    if (
      known !== undefined &&
      clock.monotonicMs() - known.askedAtMs < options.resolveIntervalMs &&
      // Tag and expectation may have moved together since.
      (expected === null || expected === known.manifest.digest)
    ) {
      metrics.tagResolved("cache");
      return known;
    }
    const resolution = await flights.share(
      key,
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
    if (options.resolveIntervalMs > 0) reusable.set(key, resolution);
    return resolution;
  }

  /** The registry answered. */
  async function accept(
    ref: TagReference,
    expected: Digest | null,
    { manifest, askedAtUnixMs }: Resolution,
    puller: Puller,
  ): Promise<ResolvedTag> {
    const { digest } = manifest;
    if (expected !== null && digest !== expected) {
      throw refuse(
        "expected-digest-mismatch",
        `the tag leads to ${digest}, module.oci.expectedDigest is ${expected}`,
      );
    }
    const image = await images.keep(manifest, puller);
    refused.delete(askedKey(ref, puller));
    const key = pointerKey(ref);
    if (warned.delete(key))
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
    logger.info(
      { ref: pointerKey(ref), digest: expected, reason: cause.message },
      "the registry gives no answer, the expected digest is in the cache",
    );
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
    if (options.maxStalenessMs === 0)
      throw unreachable("--max-tag-staleness 0 allows no earlier resolution");
    const pointer = await pointers.read(key);
    if (pointer === null)
      throw unreachable("no earlier resolution of the tag is known");
    const { digest } = pointer;
    const ageMs = Math.max(0, clock.nowMs() - pointer.resolvedAtMs);
    const age = `${Math.round(ageMs / 1000)} s`;
    if (ageMs > options.maxStalenessMs) {
      throw unreachable(
        `the tag led to ${digest} ${age} ago, --max-tag-staleness allows ${options.maxStalenessMs / 1000} s`,
      );
    }
    const image = await images.cached(digest, puller);
    if (image === null)
      throw unreachable(
        `the tag led to ${digest} ${age} ago, which is not in the cache for this step`,
      );
    metrics.tagResolved("pointer");
    if (warned.get(key) === digest) return { image, warning: null };
    warned.set(key, digest);
    logger.warn(
      { ref: key, digest, ageMs, reason: cause.message },
      "the registry gives no answer, a tag's last known digest is used",
    );
    const warning = `${key}: ${cause.message}; using ${digest}, which the tag led to ${age} ago`;
    return { image, warning };
  }

  /** What this puller had under the tag is not his any more, whatever happens to the registry next. */
  async function disown(
    ref: TagReference,
    expected: Digest | null,
    puller: Puller,
    refusal: LoaderError,
  ): Promise<void> {
    refused.set(askedKey(ref, puller), refusal);
    if (puller.credential === null) return;
    if (refusal.code !== "registry-auth-failed") return;
    const pointer = await pointers.read(pointerKey(ref));
    for (const digest of [expected, pointer?.digest ?? null])
      if (digest !== null) await images.refused(digest, puller);
  }

  return {
    async resolve(ref, expected, puller, scope) {
      let resolution: Resolution;
      try {
        resolution = await ask(ref, expected, puller, scope);
      } catch (thrown) {
        if (!isUnreachable(thrown)) {
          if (isRefusal(thrown)) await disown(ref, expected, puller, thrown);
          throw thrown;
        }
        const refusal = refused.get(askedKey(ref, puller));
        if (refusal !== undefined) throw stillRefused(thrown, refusal);
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

/** No answer, and only that: a refusal or a wrong answer is never made up for by a cache. */
function isUnreachable(thrown: unknown): thrown is LoaderError {
  return (
    thrown instanceof LoaderError && thrown.code === "registry-unreachable"
  );
}

/** The registry answered, and not with what was asked for. */
function isRefusal(thrown: unknown): thrown is LoaderError {
  return (
    thrown instanceof LoaderError &&
    (thrown.code === "registry-auth-failed" ||
      thrown.code === "registry-refused" ||
      thrown.code === "module-not-found")
  );
}

function stillRefused(cause: LoaderError, refusal: LoaderError): LoaderError {
  return refuse(
    "registry-unreachable",
    `${cause.message}; when it last answered: ${refusal.message}`,
    cause,
  );
}
