import { MAX_MODULE_MANIFEST_BYTES } from "../limits.js";
import { quoted } from "../../errors.js";
import type { LoaderError } from "../error.js";
import { refuse } from "../refuse.js";
import type { Descriptor } from "./descriptor.js";
import type { ImageManifest } from "./manifest.js";

/** Which layers of an artifact are the module and its manifest. */
export interface ModuleLayers {
  readonly module: Descriptor;
  /** `tar`: the module is a file in it, see `moduleInLayer`. */
  readonly form: "wasm" | "tar";
  /** At most 64 KiB. */
  readonly manifestLayer: Descriptor | null;
}

const WASM_TYPES: readonly string[] = [
  "application/wasm",
  "application/vnd.wasm.content.layer.v1+wasm",
  "application/vnd.module.wasm.content.layer.v1+wasm",
];
const TAR_TYPES: readonly string[] = [
  "application/vnd.oci.image.layer.v1.tar",
  "application/vnd.oci.image.layer.v1.tar+gzip",
  "application/vnd.oci.image.layer.v1.tar+zstd",
  "application/vnd.docker.image.rootfs.diff.tar",
  "application/vnd.docker.image.rootfs.diff.tar.gzip",
  "application/vnd.docker.image.rootfs.diff.tar.zstd",
];
const MODULE_MANIFEST_TYPE = "application/vnd.wasmfn.manifest.v1+json";
/** Stands in for no layer at all. */
const EMPTY_TYPE = "application/vnd.oci.empty.v1+json";
/** A lone layer of another type is taken for a bare module, but surely not one of these. */
const PACKED =
  /nondistributable|foreign|encrypted|[./+-](?:tar|tgz|gzip|zstd|zip|bzip2|xz|lz4|squashfs)(?:[./+-]|$)/iu;

const MAX_TYPES_SHOWN = 8;

/**
 * Finds the module by its layer's media type; where no layer has one that is a module's, it is the
 * only layer besides the module's manifest. The config and its media type do not matter.
 * @throws LoaderError artifact-invalid
 */
export function chooseLayers({ layers }: ImageManifest): ModuleLayers {
  const manifestLayer = atMostOne(
    layers.filter(({ mediaType }) => mediaType === MODULE_MANIFEST_TYPE),
    `layers of type ${MODULE_MANIFEST_TYPE}`,
  );
  if (
    manifestLayer !== null &&
    manifestLayer.sizeBytes > MAX_MODULE_MANIFEST_BYTES
  ) {
    throw refuse(
      "artifact-invalid",
      `the module manifest's layer has ${manifestLayer.sizeBytes} bytes, at most ${MAX_MODULE_MANIFEST_BYTES} are allowed`,
    );
  }
  const byType = atMostOne(
    layers.filter(({ mediaType }) => WASM_TYPES.includes(mediaType)),
    "layers whose type is that of a module",
  );
  if (byType !== null) return { module: byType, form: "wasm", manifestLayer };

  const [lone, ...others] = layers.filter(
    ({ mediaType }) =>
      mediaType !== MODULE_MANIFEST_TYPE && mediaType !== EMPTY_TYPE,
  );
  if (lone === undefined || others.length > 0) throw nothingMatches(layers);
  if (TAR_TYPES.includes(lone.mediaType))
    return { module: lone, form: "tar", manifestLayer };
  if (PACKED.test(lone.mediaType)) throw nothingMatches(layers);
  return { module: lone, form: "wasm", manifestLayer };
}

function atMostOne(
  layers: readonly Descriptor[],
  what: string,
): Descriptor | null {
  const [first, second] = layers;
  if (first === undefined) return null;
  if (second === undefined) return first;
  throw refuse(
    "artifact-invalid",
    `the artifact has ${layers.length} ${what}, expected one: ${first.digest} and ${second.digest}`,
  );
}

function nothingMatches(layers: readonly Descriptor[]): LoaderError {
  const seen = layers
    .slice(0, MAX_TYPES_SHOWN)
    .map(({ mediaType }) => quoted(mediaType));
  const others = layers.length - seen.length;
  const got = [...seen, ...(others > 0 ? [`${others} more`] : [])].join(", ");
  return refuse(
    "artifact-invalid",
    `no layer is a module: got ${got === "" ? "no layers" : got}, expected a layer of type ${WASM_TYPES.join(", ")}, or as the only layer ${TAR_TYPES.join(", ")}`,
  );
}
