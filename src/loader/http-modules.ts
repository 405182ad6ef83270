import { LRUCache } from "lru-cache";
import { escaped } from "../errors.js";
import type {
  Digest,
  FoundModule,
  HttpUrl,
  ManifestBytes,
  ModuleFile,
  ModuleSource,
  RedirectFence,
  RequestScope,
  SourceParsers,
} from "../ports.js";
import { createRequestScope } from "../request-scope.js";
import { ANONYMOUS, type Access } from "./access.js";
import type { BlobOrigin, Blobs } from "./blobs.js";
import { streamBounded } from "./http/bounded-body.js";
import { following } from "./http/redirects.js";
import { refusalOf } from "./http/status.js";
import type { Send } from "./http/transport.js";
import {
  MAX_MODULE_MANIFEST_BYTES,
  type ManifestBlobs,
} from "./manifest-blobs.js";
import { namingSource } from "./naming.js";
import { refuse } from "./refuse.js";

/** What a step names on a web server. */
export type HttpSource = Extract<ModuleSource, { type: "HTTP" }>;

/** A module that was found, and how to have its manifest. */
export interface FoundOnServer {
  readonly module: FoundModule;
  /** `null` = the step names none. Nobody may write to its bytes. */
  readManifest(scope: RequestScope): Promise<ManifestBytes | null>;
}

/** Finds modules on web servers. */
export interface HttpModules {
  /**
   * A module that was not delivered from its URL before is fetched whole, even when bytes of that
   * digest are here: a fence permits a URL, and this is how it is known what is behind it.
   * @param fence null = the Input's author chose the URL, who is trusted with where it leads
   * @throws LoaderError, its reason alone
   */
  resolve(
    source: HttpSource,
    fence: RedirectFence | null,
    description: string,
    scope: RequestScope,
  ): Promise<FoundOnServer>;
}

/** What {@link createHttpModules} works with. */
export interface HttpModulesParts {
  readonly send: Send;
  readonly access: Access;
  readonly blobs: Blobs;
  readonly manifests: ManifestBlobs;
  readonly parseUrl: SourceParsers["parseHttpUrl"];
  readonly maxModuleBytes: number;
}

/** A URL and the digest of what is to be behind it. */
interface Target {
  readonly url: HttpUrl;
  readonly digest: Digest;
}

const MAX_REMEMBERED = 1_000;

export function createHttpModules(parts: HttpModulesParts): HttpModules {
  const { send, access, blobs, manifests, maxModuleBytes } = parts;
  /** Where a delivery was sent on to, by what was asked for. */
  const hopsOf = new LRUCache<string, readonly HttpUrl[]>({
    max: MAX_REMEMBERED,
  });

  function originOf(
    target: Target,
    maxBytes: number,
    fence: RedirectFence | null,
    mustDeliver: boolean,
  ): BlobOrigin {
    return {
      type: "http",
      // A fetch under one fence is none under another.
      key: `${fence?.key ?? ""} ${target.url.href}`,
      mustDeliver,
      async fetch(scope) {
        const hops: HttpUrl[] = [];
        const get = following(send, async (url) => {
          const hop = canonical(url, parts.parseUrl);
          await fence?.admit(hop);
          hops.push(hop);
        });
        const url = new URL(target.url.href);
        const response = await get(
          { method: "GET", url, headers: {}, body: null },
          scope,
        );
        if (response.status !== 200)
          throw await refusalOf(response, escaped(response.url.host), () => "");
        hopsOf.set(keyOf(target), hops);
        return streamBounded(
          response,
          maxBytes,
          escaped(target.url.location, 512),
        );
      },
    };
  }

  /** Whether the URL delivered these bytes before, by a way that the fence permits. */
  async function isProved(
    target: Target,
    fence: RedirectFence | null,
  ): Promise<boolean> {
    const { url, digest } = target;
    const claim = { digest, identity: ANONYMOUS };
    const direct = await access.standing({ ...claim, place: url.href });
    if (direct === "proved") return true;
    const place = redirectedPlace(url);
    if ((await access.standing({ ...claim, place })) !== "proved") return false;
    if (fence === null) return true;
    const hops = hopsOf.get(keyOf(target));
    if (hops === undefined) return false;
    for (const hop of hops) await fence.admit(hop);
    return true;
  }

  async function prove(target: Target): Promise<void> {
    const { url, digest } = target;
    const hops = hopsOf.get(keyOf(target)) ?? [];
    const place = hops.length === 0 ? url.href : redirectedPlace(url);
    await access.prove({ place, digest, identity: ANONYMOUS }, true);
  }

  async function readManifest(
    target: Target,
    fence: RedirectFence | null,
    scope: RequestScope,
  ): Promise<ManifestBytes> {
    const proved = await isProved(target, fence);
    const maxBytes = MAX_MODULE_MANIFEST_BYTES;
    const origin = originOf(target, maxBytes, fence, !proved);
    const bytes = await manifests.obtain(target.digest, "file", origin, scope);
    if (!proved) await prove(target);
    return bytes;
  }

  return {
    async resolve(source, fence, description, scope) {
      const { digest } = source;
      const proved = await isProved(source, fence);
      const origin = originOf(source, maxModuleBytes, fence, !proved);
      if (!proved) {
        await blobs.obtain(digest, origin, scope);
        await prove(source);
      }
      return {
        module: {
          digest,
          description,
          locate: () =>
            namingSource(description, async (): Promise<ModuleFile> => {
              const here = { ...origin, mustDeliver: false };
              const blob = await blobs.obtain(digest, here, unhurried());
              return { ...blob, description };
            }),
        },
        async readManifest(asking) {
          return source.manifest === null
            ? null
            : await readManifest(source.manifest, fence, asking);
        },
      };
    },
  };
}

function canonical(url: URL, parseUrl: SourceParsers["parseHttpUrl"]): HttpUrl {
  const parsed = parseUrl(url.href);
  if (parsed.kind === "ok") return parsed.value;
  throw refuse(
    "redirect-refused",
    `${escaped(url.host)}: redirect to what is no module's URL: ${parsed.message}`,
  );
}

function keyOf({ url, digest }: Target): string {
  return `${digest} ${url.href}`;
}

/** Tells a delivery by another server from the URL's own. A URL has no blank in it. */
function redirectedPlace({ href }: HttpUrl): string {
  return `${href} redirected`;
}

function unhurried(): RequestScope {
  return createRequestScope({ deadlineAtMs: Infinity });
}
