import { createHash } from "node:crypto";

import type { Digest } from "../../src/ports.js";

const OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json";

/** Bytes under their digest, as a registry hands them out. */
export interface Content {
  readonly bytes: Uint8Array;
  readonly digest: Digest;
  readonly mediaType: string;
}

/** A module to be published. */
export interface ModuleContent {
  readonly wasm: Uint8Array;
  /** JSON, for a layer of its own. */
  readonly manifest?: string;
  readonly tag?: string;
  /** Default application/wasm; with `tar` an OCI tar layer. */
  readonly layerMediaType?: string;
  /** The layer's bytes, where they are not the module's. */
  readonly tar?: Uint8Array;
}

/** What {@link RegistryContent.addModule} made. */
export interface PublishedModule {
  readonly manifestDigest: Digest;
  /** Of the layer that holds the module. */
  readonly layerDigest: Digest;
  /** Of the module itself. */
  readonly moduleDigest: Digest;
}

/** What a registry holds. Every repository has every blob. */
export interface RegistryContent {
  addBlob(bytes: Uint8Array): Digest;
  /**
   * Bytes are stored as they are. A tag that exists is moved.
   * @param mediaType default what the object says, else an OCI image manifest
   */
  addManifest(
    repository: string,
    manifest: Uint8Array | Readonly<Record<string, unknown>>,
    tag?: string,
    mediaType?: string,
  ): Digest;
  /** Stores a module, its manifest if it has one, and the image manifest that lists them. */
  addModule(repository: string, module: ModuleContent): PublishedModule;
  blob(digest: string): Content | null;
  /** @param reference a tag or a digest */
  manifest(repository: string, reference: string): Content | null;
}

/** An empty store, in memory. */
export function createRegistryContent(): RegistryContent {
  const blobs = new Map<string, Content>();
  const manifests = new Map<string, Content>();

  function describe(mediaType: string, bytes: Uint8Array) {
    return { mediaType, digest: content.addBlob(bytes), size: bytes.length };
  }

  const content: RegistryContent = {
    addBlob(bytes) {
      const digest = digestOf(bytes);
      const mediaType = "application/octet-stream";
      blobs.set(digest, { bytes, digest, mediaType });
      return digest;
    },
    addManifest(repository, manifest, tag, mediaType) {
      const bytes =
        manifest instanceof Uint8Array
          ? manifest
          : Buffer.from(JSON.stringify(manifest));
      const digest = digestOf(bytes);
      const stored = {
        bytes,
        digest,
        mediaType: mediaType ?? mediaTypeIn(manifest),
      };
      manifests.set(`${repository}@${digest}`, stored);
      if (tag !== undefined) manifests.set(`${repository}:${tag}`, stored);
      return digest;
    },
    addModule(repository, { wasm, manifest, tag, layerMediaType, tar }) {
      const defaultType =
        tar === undefined
          ? "application/wasm"
          : "application/vnd.oci.image.layer.v1.tar";
      const layer = describe(layerMediaType ?? defaultType, tar ?? wasm);
      const layers = [layer];
      if (manifest !== undefined) {
        layers.push(
          describe(
            "application/vnd.wasmfn.manifest.v1+json",
            Buffer.from(manifest),
          ),
        );
      }
      const image = {
        schemaVersion: 2,
        mediaType: OCI_MANIFEST,
        config: describe(
          "application/vnd.wasm.config.v0+json",
          Buffer.from("{}"),
        ),
        layers,
      };
      return {
        manifestDigest: content.addManifest(repository, image, tag),
        layerDigest: layer.digest,
        moduleDigest: digestOf(wasm),
      };
    },
    blob: (digest) => blobs.get(digest) ?? null,
    manifest(repository, reference) {
      const separator = reference.includes(":") ? "@" : ":";
      return manifests.get(`${repository}${separator}${reference}`) ?? null;
    },
  };
  return content;
}

function mediaTypeIn(
  manifest: Uint8Array | Readonly<Record<string, unknown>>,
): string {
  if (manifest instanceof Uint8Array) return OCI_MANIFEST;
  const { mediaType } = manifest;
  return typeof mediaType === "string" ? mediaType : OCI_MANIFEST;
}

function digestOf(bytes: Uint8Array): Digest {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}
