import { gunzipSync, gzipSync } from "node:zlib";

import { sha256 } from "../content.mjs";
import { tarOf } from "./tar-writer.mjs";
import { XpkgError } from "./xpkg-error.mjs";

/**
 * @typedef {object} Layer
 * @property {Buffer} gzip as it is stored
 * @property {string} digest of `gzip`, as in `sha256:…`
 * @property {string} diffId digest of the tar archive in it
 *
 * @typedef {{ [name: string]: unknown }} JsonObject
 *
 * @typedef {object} Image
 * @property {JsonObject} config as the OCI image specification has it; `rootfs` fits `layers`
 * @property {Layer[]} layers
 */

/** Of a layer's archive; no layer of a sane image is larger. */
export const MAX_LAYER_BYTES = 1024 * 1024 * 1024;

const LEVEL = 6;
const UNKNOWN_OS = 255;

/**
 * @param {Uint8Array} bytes
 * @returns {string} as in `sha256:…`
 */
export function digestOf(bytes) {
  return `sha256:${sha256(bytes)}`;
}

/**
 * A layer of these files, sorted by path. Equal files give equal bytes on one version of Node.
 *
 * @param {readonly import("./tar-writer.mjs").TarEntry[]} entries
 * @returns {Layer}
 * @throws {XpkgError} when a path is there twice, or is too long
 */
export function layerOf(entries) {
  const sorted = [...entries].sort((a, b) => (a.path < b.path ? -1 : 1));
  const twice = sorted.find(
    ({ path }, index) => sorted[index + 1]?.path === path,
  );
  if (twice !== undefined) {
    throw new XpkgError(`a layer would have ${twice.path} twice`);
  }
  return compressed(tarOf(sorted));
}

/**
 * @param {Buffer} tar
 * @returns {Layer}
 */
export function compressed(tar) {
  const gzip = gzipSync(tar, { level: LEVEL });
  // zlib writes no time, but the operating system it runs on.
  gzip[9] = UNKNOWN_OS;
  return { gzip, digest: digestOf(gzip), diffId: digestOf(tar) };
}

/**
 * @param {Buffer} gzip
 * @param {number} maxBytes
 * @returns {Buffer}
 * @throws {XpkgError} when it is no gzip, damaged, or has more than `maxBytes`
 */
export function decompressed(gzip, maxBytes) {
  try {
    return gunzipSync(gzip, { maxOutputLength: maxBytes });
  } catch (cause) {
    const isLarge = cause instanceof RangeError;
    throw new XpkgError(
      isLarge
        ? `a layer is too large: expected at most ${maxBytes} bytes`
        : "a layer is damaged: it cannot be decompressed",
      { cause },
    );
  }
}

/**
 * The image with one more layer on top, and other settings.
 *
 * @param {Image} image
 * @param {Layer} layer
 * @param {string} createdBy what made the layer, for the image's history
 * @param {JsonObject} settings win over those in `config.config`
 * @returns {Image}
 */
export function withLayer(image, layer, createdBy, settings) {
  const { config } = image;
  const layers = [...image.layers, layer];
  const history = Array.isArray(config["history"])
    ? [...config["history"], { created_by: createdBy }]
    : undefined;
  return {
    layers,
    config: {
      ...config,
      config: { ...objectOr(config["config"]), ...settings },
      rootfs: { type: "layers", diff_ids: layers.map(({ diffId }) => diffId) },
      ...(history === undefined ? {} : { history }),
    },
  };
}

/**
 * The labels of an image.
 *
 * @param {JsonObject} config
 * @returns {JsonObject}
 */
export function labelsOf(config) {
  return objectOr(objectOr(config["config"])["Labels"]);
}

/**
 * @param {unknown} value
 * @returns {JsonObject} the value, or an empty object when it is none
 */
export function objectOr(value) {
  return isObject(value) ? value : {};
}

/**
 * @param {unknown} value
 * @returns {value is JsonObject}
 */
export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
