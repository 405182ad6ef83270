import { escaped } from "../../errors.js";
import type { Digest, OciReference, RequestScope } from "../../ports.js";
import { withoutContent } from "../blobs.js";
import { readBounded, streamBounded } from "../http/bounded-body.js";
import { refusalOf } from "../http/status.js";
import type { HttpResponse } from "../http/transport.js";
import { MAX_IMAGE_MANIFEST_BYTES } from "../limits.js";
import { refuse } from "../refuse.js";
import type { Authorizer } from "./authorizer.js";
import type { Credential } from "./credential.js";
import { INDEX_MEDIA_TYPES, MANIFEST_MEDIA_TYPES } from "./manifest.js";

/** Who asks, and in which repository. */
export interface Puller {
  readonly at: Pick<OciReference, "registry" | "repository" | "location">;
  readonly credential: Credential | null;
  /** Stands for the credential where it must not be told. */
  readonly identity: string;
}

/** A manifest as a registry delivered it, read by nobody yet. */
export interface DeliveredManifest {
  readonly bytes: Uint8Array;
  readonly contentType: string | null;
  /** Of the `docker-content-digest` header; null when there is none, which is common. */
  readonly claimedDigest: string | null;
  /** Whether the registry wanted the puller's credential before it gave it away. */
  readonly usedCredential: boolean;
  /** The server that delivered it in the registry's stead; null = the registry did. Escaped. */
  readonly sentOnTo: string | null;
}

/** What a HEAD was answered with. */
export interface CheckResult {
  readonly usedCredential: boolean;
  /** The digest that the registry itself says; null = it says none. */
  readonly claimedDigest: string | null;
}

/** A blob on its way. */
export interface DeliveredBlob {
  readonly chunks: AsyncIterable<Uint8Array>;
  /** As in {@link DeliveredManifest}. */
  readonly usedCredential: boolean;
  readonly sentOnTo: string | null;
  /** Throws away what was not read. Never rejects. */
  discard(): Promise<void>;
}

/** What a puller asks of registries. Everything throws LoaderError, its reason alone. */
export interface Registry {
  /** One GET; at most 256 KiB. The bytes are held to no digest here. */
  manifest(
    reference: string,
    puller: Puller,
    scope: RequestScope,
  ): Promise<DeliveredManifest>;
  /**
   * One HEAD: what the registry says, whether a manifest or blob is there and the puller may have it.
   * One that would send us on to its storage has said so, too.
   */
  check(
    what: "manifests" | "blobs",
    digest: Digest,
    puller: Puller,
    scope: RequestScope,
  ): Promise<CheckResult>;
  /** The bytes of a blob as they come, at most `maxBytes`; held to no digest here. */
  blob(
    digest: Digest,
    maxBytes: number,
    puller: Puller,
    scope: RequestScope,
  ): Promise<DeliveredBlob>;
}

const ACCEPT = [...MANIFEST_MEDIA_TYPES, ...INDEX_MEDIA_TYPES].join(", ");

/**
 * @param isPlainHttp whether a registry is spoken to in the clear
 */
export function createRegistry(
  authorizer: Authorizer,
  isPlainHttp: (registry: string) => boolean,
): Registry {
  async function ask(
    method: "GET" | "HEAD",
    path: string,
    { at, credential }: Puller,
    scope: RequestScope,
    isBulk = false,
  ): Promise<{
    response: HttpResponse;
    usedCredential: boolean;
    sentOnTo: string | null;
  }> {
    const url = registryUrl(at, path, isPlainHttp(at.registry));
    const answer = await authorizer.send(
      { method, url, headers: { accept: ACCEPT }, body: null, isBulk },
      { ...at, actions: "pull", credential },
      scope,
    );
    const { response, usedCredential, wordsOf } = answer;
    const sentOnTo =
      response.url.origin === url.origin ? null : escaped(response.url.host);
    if (isYes(response, method)) return { response, usedCredential, sentOnTo };
    const who = escaped(url.host);
    // A registry may send us anywhere: what is said there is not for whoever chose the registry.
    throw sentOnTo === null
      ? await refusalOf(response, who, wordsOf)
      : await refusalOf(response, `${who} sent on to ${sentOnTo}`, () => "");
  }

  return {
    async manifest(reference, puller, scope) {
      const path = `manifests/${reference}`;
      const { response, usedCredential, sentOnTo } = await ask(
        "GET",
        path,
        puller,
        scope,
      );
      const what = `the manifest of ${puller.at.location}`;
      return {
        bytes: await readManifestBytes(response, what, sentOnTo),
        contentType: lastOf(response, "content-type"),
        claimedDigest: lastOf(response, "docker-content-digest"),
        usedCredential,
        sentOnTo,
      };
    },

    async check(what, digest, puller, scope) {
      const path = `${what}/${digest}`;
      const { response, usedCredential } = await ask(
        "HEAD",
        path,
        puller,
        scope,
      );
      await response.discard();
      return {
        usedCredential,
        claimedDigest:
          response.status === 200
            ? lastOf(response, "docker-content-digest")
            : null,
      };
    },

    async blob(digest, maxBytes, puller, scope) {
      const path = `blobs/${digest}`;
      const { response, usedCredential, sentOnTo } = await ask(
        "GET",
        path,
        puller,
        scope,
        true,
      );
      return {
        chunks: streamBounded(response, maxBytes, `the blob ${digest}`),
        usedCredential,
        sentOnTo,
        discard: () => response.discard(),
      };
    },
  };
}

/** Where a registry has something of a repository. */
function registryUrl(
  at: Pick<OciReference, "registry" | "repository">,
  path: string,
  isPlainHttp: boolean,
): URL {
  const scheme = isPlainHttp ? "http" : "https";
  return new URL(`${scheme}://${at.registry}/v2/${at.repository}/${path}`);
}

async function readManifestBytes(
  response: HttpResponse,
  what: string,
  sentOnTo: string | null,
): Promise<Uint8Array> {
  try {
    return await readBounded(response, MAX_IMAGE_MANIFEST_BYTES, what);
  } catch (thrown) {
    throw withoutContent(thrown, { sentOnTo });
  }
}

/** To a HEAD it is also a yes to be sent on to storage, which may refuse a HEAD its link was not made for. */
function isYes({ status }: HttpResponse, method: "GET" | "HEAD"): boolean {
  return status === 200 || (method === "HEAD" && status >= 300 && status < 400);
}

function lastOf(response: HttpResponse, name: string): string | null {
  const value = response.headers(name).at(-1);
  return value === undefined || value === "" ? null : value;
}

/** @throws LoaderError digest-mismatch when a registry says another digest than its bytes have */
export function checkClaim(
  { claimedDigest, sentOnTo }: DeliveredManifest,
  actual: Digest,
  at: Puller["at"],
): void {
  // Other algorithms are no contradiction; sha256 is what everything here goes by.
  if (!claimedDigest?.startsWith("sha256:") || claimedDigest === actual) return;
  throw refuse(
    "digest-mismatch",
    sentOnTo === null
      ? `${at.registry} calls the manifest ${escaped(claimedDigest)}, its bytes are ${actual}`
      : `${at.registry} sent on to ${sentOnTo}, which calls the manifest by another digest than its bytes have`,
  );
}
