import { gzipSync } from "node:zlib";
import type { Digest } from "../../../src/ports.js";
import type { ScriptedRegistry } from "../../support/scripted-registry.js";
import { tar } from "./oci/tar-writer.js";

/** A layer of an image. */
export interface OneLayer {
  readonly mediaType: string;
  readonly bytes: Uint8Array;
}

/** A module as the one file of an image layer. */
export function packed(wasm: Uint8Array): OneLayer {
  return {
    mediaType: "application/vnd.oci.image.layer.v1.tar+gzip",
    bytes: gzipSync(tar({ name: "fn.wasm", data: wasm })),
  };
}

/**
 * Publishes an image with one layer as `a/b`.
 * @returns the digest of its manifest
 */
export function addImageOf(
  { mediaType, bytes }: OneLayer,
  registry: ScriptedRegistry,
): Digest {
  return registry.addManifest("a/b", {
    schemaVersion: 2,
    mediaType: "application/vnd.oci.image.manifest.v1+json",
    config: {
      mediaType: "application/vnd.oci.empty.v1+json",
      digest: registry.addBlob(Buffer.from("{}")),
      size: 2,
    },
    layers: [
      { mediaType, digest: registry.addBlob(bytes), size: bytes.length },
    ],
  });
}
