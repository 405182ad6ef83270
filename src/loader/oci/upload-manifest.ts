import { digestOf } from "../chunks.js";
import type { Digest, RequestScope } from "../../ports.js";
import { readBounded } from "../http/bounded-body.js";
import type { HttpResponse } from "../http/transport.js";
import { MAX_IMAGE_MANIFEST_BYTES } from "../limits.js";
import { refuse } from "../refuse.js";
import { type Artifact, IMAGE_MANIFEST } from "./artifact.js";
import { expectStatus, type PushRepository } from "./push-repository.js";

/** All of them: some registries say that a tag does not exist when it leads to what is not accepted. */
const ANY_MANIFEST = [
  IMAGE_MANIFEST,
  "application/vnd.oci.image.index.v1+json",
  "application/vnd.docker.distribution.manifest.v2+json",
  "application/vnd.docker.distribution.manifest.list.v2+json",
  "*/*",
].join(", ");

/**
 * The digest of what a tag leads to, by its bytes; `null` when there is no such tag.
 * @throws LoaderError
 */
export async function findTag(
  tag: string,
  repository: PushRepository,
  scope: RequestScope,
): Promise<Digest | null> {
  const response = await getManifest(tag, repository, scope);
  if (response.status !== 404) return manifestDigest(response, repository);
  await response.discard();
  return null;
}

/**
 * Puts the manifest of an artifact under a tag or its digest, then looks at what is there: the
 * registry's word proves nothing, its bytes do, and another push may have come between.
 * @throws LoaderError digest-mismatch when it is something else
 */
export async function uploadManifest(
  reference: string,
  { manifestBytes, manifestDigest: pushed }: Artifact,
  repository: PushRepository,
  scope: RequestScope,
): Promise<void> {
  const response = await repository.send(
    {
      method: "PUT",
      url: manifestUrl(reference, repository),
      headers: { "content-type": IMAGE_MANIFEST },
      body: { kind: "bytes", bytes: manifestBytes },
    },
    scope,
  );
  await expectStatus(response, 201, repository);
  await response.discard();

  const answer = await getManifest(reference, repository, scope);
  const found = await manifestDigest(answer, repository);
  if (found === pushed) return;
  throw refuse(
    "digest-mismatch",
    `${repository.who}: ${found} is there after ${pushed} was pushed`,
  );
}

async function getManifest(
  reference: string,
  repository: PushRepository,
  scope: RequestScope,
): Promise<HttpResponse> {
  const url = manifestUrl(reference, repository);
  const headers = { accept: ANY_MANIFEST };
  return repository.send({ method: "GET", url, headers, body: null }, scope);
}

function manifestUrl(reference: string, { baseUrl }: PushRepository): URL {
  return new URL(`manifests/${reference}`, baseUrl);
}

async function manifestDigest(
  response: HttpResponse,
  repository: PushRepository,
): Promise<Digest> {
  await expectStatus(response, 200, repository);
  const what = `${repository.who}: the manifest`;
  const bytes = await readBounded(response, MAX_IMAGE_MANIFEST_BYTES, what);
  return digestOf(bytes);
}
