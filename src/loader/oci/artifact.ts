import { digestOf } from "../chunks.js";
import type { Digest } from "../../ports.js";

/** An OCI artifact that holds a module, ready to be pushed. */
export interface Artifact {
  /** The image manifest, whose digest is what a reference is pinned to. */
  readonly manifestBytes: Uint8Array;
  readonly manifestDigest: Digest;
  readonly config: { readonly bytes: Uint8Array; readonly digest: Digest };
  /** In the order in which the manifest lists them: the module first. */
  readonly layers: readonly ArtifactLayer[];
}

/** A layer as it was delivered: no tar, no compression. */
export type ArtifactLayer =
  /** Too large to hold: its bytes stay in a file. */
  | {
      readonly kind: "module";
      readonly digest: Digest;
      readonly sizeBytes: number;
    }
  | {
      readonly kind: "module-manifest";
      readonly digest: Digest;
      readonly bytes: Uint8Array;
    };

/** What is known of a module that is to be published. */
export type PublishedModule = {
  readonly digest: Digest;
  readonly sizeBytes: number;
} & (
  | { readonly abi: 1 }
  | {
      readonly abi: 2;
      /** The names at the top of the component, in its order. */
      readonly component: {
        readonly imports: readonly string[];
        readonly exports: readonly string[];
      };
    }
);

/** The media type of the artifact's manifest. */
export const IMAGE_MANIFEST = "application/vnd.oci.image.manifest.v1+json";

const CONFIG = "application/vnd.wasm.config.v0+json";
const MODULE_LAYER = "application/wasm";
const MODULE_MANIFEST_LAYER = "application/vnd.wasmfn.manifest.v1+json";

/**
 * Lays a module out as the CNCF's Wasm OCI artifact
 * (https://github.com/cncf/tag-runtime/blob/53af352163efbe540b66cd912236975e6906439f/wgs/wasm/deliverables/wasm-oci-artifact/index.md).
 * It is told by its config's media type, so it has no `artifactType`. Equal options make equal
 * bytes, in whichever order annotations come.
 *
 * The module's manifest is a second layer, which that layout advises its readers to refuse: such
 * an artifact is for this runtime.
 * @param options.manifestJson the module's manifest; `null` = it has none
 * @param options.annotations of the image manifest; none is added
 */
export function buildArtifact(options: {
  readonly module: PublishedModule;
  readonly manifestJson: Uint8Array | null;
  readonly annotations: ReadonlyMap<string, string>;
  readonly created: Date;
}): Artifact {
  const { module, manifestJson } = options;
  const layers: readonly ArtifactLayer[] = [
    { kind: "module", digest: module.digest, sizeBytes: module.sizeBytes },
    ...(manifestJson === null ? [] : [moduleManifestLayer(manifestJson)]),
  ];
  const configBytes = jsonBytes({
    created: options.created.toISOString(),
    architecture: "wasm",
    // A core module is wasip1 whatever it imports: the layout has no other name for it.
    os: module.abi === 1 ? "wasip1" : "wasip2",
    layerDigests: layers.map(({ digest }) => digest),
    ...(module.abi === 1 ? {} : { component: componentConfig(module) }),
  });
  const config = { bytes: configBytes, digest: digestOf(configBytes) };
  const manifestBytes = jsonBytes({
    schemaVersion: 2,
    mediaType: IMAGE_MANIFEST,
    config: descriptor(CONFIG, config.digest, configBytes.length),
    layers: layers.map(layerDescriptor),
    ...sortedAnnotations(options.annotations),
  });
  return {
    manifestBytes,
    manifestDigest: digestOf(manifestBytes),
    config,
    layers,
  };
}

function moduleManifestLayer(bytes: Uint8Array): ArtifactLayer {
  return { kind: "module-manifest", digest: digestOf(bytes), bytes };
}

/** The layout demands it of components. */
function componentConfig(module: PublishedModule & { readonly abi: 2 }) {
  const { exports, imports } = module.component;
  return { exports, imports };
}

function layerDescriptor(layer: ArtifactLayer) {
  switch (layer.kind) {
    case "module":
      return descriptor(MODULE_LAYER, layer.digest, layer.sizeBytes);
    case "module-manifest": {
      const { digest, bytes } = layer;
      return descriptor(MODULE_MANIFEST_LAYER, digest, bytes.length);
    }
  }
}

function descriptor(mediaType: string, digest: Digest, sizeBytes: number) {
  return { mediaType, digest, size: sizeBytes };
}

function sortedAnnotations(annotations: ReadonlyMap<string, string>) {
  if (annotations.size === 0) return {};
  // By UTF-16 units and not by a locale, which would make the digest the machine's.
  const names = [...annotations.keys()].sort();
  return {
    annotations: Object.fromEntries(
      names.map((name) => [name, annotations.get(name)]),
    ),
  };
}

function jsonBytes(value: object): Uint8Array {
  return Buffer.from(JSON.stringify(value), "utf8");
}
