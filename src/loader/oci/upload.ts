import type { Digest, RequestScope } from "../../ports.js";
import type { Send } from "../http/transport.js";
import { refuse } from "../refuse.js";
import type { Artifact, ArtifactLayer } from "./artifact.js";
import type { PushRepository } from "./push-repository.js";
import { type PushedBlob, uploadBlob } from "./upload-blob.js";
import { findTag, uploadManifest } from "./upload-manifest.js";

/** Where an artifact is pushed to, as a parsed reference says it. */
export interface PushTarget {
  readonly registry: string;
  readonly repository: string;
  /** `null` = it can be found by its digest only. */
  readonly tag: string | null;
  /** Whether a tag that leads to something else may be moved. */
  readonly overwrite: boolean;
}

/** What was there, or was done. */
export interface PushProgress {
  readonly kind:
    "blob-exists" | "blob-pushed" | "manifest-exists" | "manifest-pushed";
  readonly digest: Digest;
  readonly sizeBytes: number;
}

/** How to reach the registry. */
interface PushParts {
  /**
   * Sends to the registry, authorised to pull from and push to the repository. May follow
   * redirects of a GET, and of nothing else.
   */
  readonly send: Send;
  /** Sends to any other origin at which a registry takes uploads; no credential, no redirects. */
  readonly sendElsewhere: Send;
  /** What the beginning of an answer's body says, if it repeats nothing that was sent. */
  readonly wordsOf: PushRepository["wordsOf"];
  /** Whether the registry is spoken to in the clear. */
  readonly plainHttp: boolean;
  readonly onProgress: (event: PushProgress) => void;
}

/**
 * Publishes an artifact: its blobs, then its manifest under the tag, or under its digest. A tag
 * that leads to the artifact already stays as it is, and only blobs that are missing are pushed.
 * @param files.modulePath a file with the bytes of the artifact's module layer
 * @throws LoaderError registry-refused, also when the tag leads to another manifest and may not be
 * moved; digest-mismatch when it does so in the end; redirect-refused, answer-invalid,
 * answer-too-large, registry-auth-failed, registry-unreachable, and what `send` throws
 */
export async function pushArtifact(
  artifact: Artifact,
  files: { readonly modulePath: string },
  target: PushTarget,
  parts: PushParts,
  scope: RequestScope,
): Promise<{ readonly digest: Digest }> {
  const repository = pushRepository(target, parts);
  const digest = artifact.manifestDigest;
  const isTagged = await checkTag(digest, target, repository, scope);

  for (const blob of blobsOf(artifact, files.modulePath)) {
    const done = await uploadBlob(blob, repository, scope);
    const { digest, sizeBytes } = blob;
    parts.onProgress({ kind: `blob-${done}`, digest, sizeBytes });
  }
  if (!isTagged) {
    const reference = target.tag ?? digest;
    await uploadManifest(reference, artifact, repository, scope);
  }
  const kind = isTagged ? "manifest-exists" : "manifest-pushed";
  const sizeBytes = artifact.manifestBytes.length;
  parts.onProgress({ kind, digest, sizeBytes });
  return { digest };
}

function pushRepository(
  { registry, repository }: PushTarget,
  { plainHttp, send, sendElsewhere, wordsOf }: PushParts,
): PushRepository {
  const who = `${registry}/${repository}`;
  const scheme = plainHttp ? "http" : "https";
  const baseUrl = new URL(`${scheme}://${registry}/v2/${repository}/`);
  return { who, baseUrl, send, sendElsewhere, wordsOf };
}

/** Whether the tag leads to the artifact already; refused when it leads elsewhere and has to stay. */
async function checkTag(
  digest: Digest,
  { tag, overwrite }: PushTarget,
  repository: PushRepository,
  scope: RequestScope,
): Promise<boolean> {
  if (tag === null) return false;
  const found = await findTag(tag, repository, scope);
  if (found === digest) return true;
  if (found === null || overwrite) return false;
  throw refuse(
    "registry-refused",
    `the tag leads to ${found} already, and is not moved to ${digest}; --overwrite moves it`,
  );
}

function blobsOf(
  { layers, config }: Artifact,
  modulePath: string,
): readonly PushedBlob[] {
  const layerBlobs = layers.map((layer) => layerBlob(layer, modulePath));
  return [...layerBlobs, bytesBlob(config)];
}

function layerBlob(layer: ArtifactLayer, modulePath: string): PushedBlob {
  switch (layer.kind) {
    case "module": {
      const { digest, sizeBytes } = layer;
      const body = { kind: "file", filePath: modulePath, sizeBytes } as const;
      return { digest, sizeBytes, body };
    }
    case "module-manifest":
      return bytesBlob(layer);
  }
}

function bytesBlob(content: {
  readonly digest: Digest;
  readonly bytes: Uint8Array;
}): PushedBlob {
  const { digest, bytes } = content;
  return { digest, sizeBytes: bytes.length, body: { kind: "bytes", bytes } };
}
