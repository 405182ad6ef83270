import { LRUCache } from "lru-cache";
import { escaped } from "../errors.js";
import type {
  Digest,
  FoundModule,
  HttpUrl,
  ManifestBytes,
  ModuleFile,
  ModuleSource,
  Parsed,
  RedirectFence,
  RequestScope,
} from "../ports.js";
import { ANONYMOUS, type Access } from "./access.js";
import type { BlobOrigin, Blobs, Delivery } from "./blobs.js";
import { LoaderError, type LoaderErrorCode } from "./error.js";
import { streamBounded } from "./http/bounded-body.js";
import { following } from "./http/redirects.js";
import { refusalOf } from "./http/status.js";
import type { HttpResponse, Send } from "./http/transport.js";
import { MAX_MODULE_MANIFEST_BYTES } from "./limits.js";
import type { ManifestBlobs } from "./manifest-blobs.js";
import { namingSource } from "./naming.js";
import { refuse } from "./refuse.js";
import { unhurried } from "./unhurried.js";

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
  readonly parseUrl: (text: string) => Parsed<HttpUrl>;
  readonly maxModuleBytes: number;
}

/** A URL and the digest of what is to be behind it. */
interface Target {
  readonly url: HttpUrl;
  readonly digest: Digest;
}

/** What a body may have. */
interface Bound {
  readonly maxBytes: number;
  readonly what: string;
  /** Of a body that has more. */
  readonly code: LoaderErrorCode;
}

/** Where a redirect led; null = to what a module's own URL could not be. */
type Hop = HttpUrl | null;

const MAX_REMEMBERED = 1_000;

const MANIFEST_BOUND: Bound = {
  maxBytes: MAX_MODULE_MANIFEST_BYTES,
  what: "its manifest",
  code: "module-too-large",
};

export function createHttpModules(parts: HttpModulesParts): HttpModules {
  const { send, access, blobs, manifests } = parts;
  const moduleBound: Bound = {
    maxBytes: parts.maxModuleBytes,
    what: "the file, by --max-module-size,",
    code: "module-too-large",
  };
  /** Where a delivery was sent on to, by what was asked for. */
  const hopsOf = new LRUCache<string, readonly Hop[]>({
    max: MAX_REMEMBERED,
  });

  function originOf(
    target: Target,
    bound: Bound,
    fence: RedirectFence | null,
  ): BlobOrigin {
    return {
      type: "http",
      // A fetch under one fence is none under another.
      key: `${fence?.key ?? ""} ${target.url.href}`,
      mustDeliver: async () => !(await isProved(target, fence)),
      fetch: (scope) => fetch(target, bound, fence, scope),
    };
  }

  async function fetch(
    target: Target,
    bound: Bound,
    fence: RedirectFence | null,
    scope: RequestScope,
  ): Promise<Delivery> {
    const hops: Hop[] = [];
    const get = following(send, async (url) => {
      const hop = parts.parseUrl(url.href);
      hops.push(hop.kind === "ok" ? hop.value : null);
      if (fence === null) return url;
      if (hop.kind === "error") throw noModuleUrl(url, hop.message);
      await fence.admit(hop.value);
      // What was judged is what is asked.
      return new URL(hop.value.href);
    });
    const url = new URL(target.url.href);
    const response = await get(
      { method: "GET", url, headers: {}, body: null, isBulk: true },
      scope,
    );
    if (response.status !== 200)
      throw await refusalOf(response, escaped(response.url.host), () => "");
    return {
      chunks: bounded(response, bound),
      sentOnTo: null,
      discard: () => response.discard(),
      async verified() {
        hopsOf.set(keyOf(target), hops);
        const place =
          hops.length === 0 ? target.url.href : redirectedPlace(target.url);
        const { digest } = target;
        await access.prove({ place, digest, identity: ANONYMOUS }, true);
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
    // Which ones is known until the next start.
    const hops = hopsOf.get(keyOf(target));
    if (hops === undefined) return false;
    for (const hop of hops) {
      if (hop === null) return false;
      await fence.admit(hop);
    }
    return true;
  }

  return {
    async resolve(source, fence, description, scope) {
      const { digest, manifest } = source;
      const origin = originOf(source, moduleBound, fence);
      const delivered = (await origin.mustDeliver())
        ? await blobs.obtain(digest, origin, scope)
        : null;
      const here = { ...origin, mustDeliver: () => Promise.resolve(false) };
      return {
        module: {
          digest,
          description,
          locate: () =>
            namingSource(description, async (): Promise<ModuleFile> => {
              const blob =
                delivered ?? (await blobs.obtain(digest, here, unhurried()));
              return { ...blob, description };
            }),
        },
        async readManifest(asking) {
          if (manifest === null) return null;
          return await manifests.obtain(
            manifest.digest,
            "file",
            originOf(manifest, MANIFEST_BOUND, fence),
            asking,
          );
        },
      };
    },
  };
}

/** As much of a body as may be, and the refusal of one that has more. */
async function* bounded(
  response: HttpResponse,
  { code, maxBytes, what }: Bound,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* streamBounded(response, maxBytes, what);
  } catch (thrown) {
    const isTooLarge =
      thrown instanceof LoaderError && thrown.code === "answer-too-large";
    throw isTooLarge ? refuse(code, thrown.message, thrown) : thrown;
  }
}

function noModuleUrl(url: URL, reason: string): LoaderError {
  return refuse(
    "redirect-refused",
    `${escaped(url.host)}: redirect to what is no module's URL: ${reason}`,
  );
}

function keyOf({ url, digest }: Target): string {
  return `${digest} ${url.href}`;
}

/** Tells a delivery by another server from the URL's own. A URL has no blank in it. */
function redirectedPlace({ href }: HttpUrl): string {
  return `${href} redirected`;
}
