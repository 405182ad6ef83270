import { Buffer } from "node:buffer";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";

import { attempt } from "./attempt.mjs";
import { digestOf } from "./image.mjs";
import { PACKAGE_ANNOTATION, packageDigests } from "./package-layer.mjs";
import { XpkgError } from "./xpkg-error.mjs";

/** @import { Image } from "./image.mjs" */

export const MEDIA_TYPES = {
  index: "application/vnd.oci.image.index.v1+json",
  manifest: "application/vnd.oci.image.manifest.v1+json",
  config: "application/vnd.oci.image.config.v1+json",
  layer: "application/vnd.oci.image.layer.v1.tar+gzip",
};

/**
 * @typedef {{ mediaType: string, digest: string, size: number }} Descriptor
 */

/**
 * The files of an OCI image layout: one image, or an index of one for each architecture. The layer
 * that is the package is annotated.
 *
 * @param {readonly Image[]} images
 * @returns {Map<string, Buffer>} by their paths
 */
export function ociLayout(images) {
  /** @type {Map<string, Buffer>} */
  const files = new Map();
  /**
   * @param {string} mediaType
   * @param {Buffer} bytes
   * @returns {Descriptor}
   */
  const store = (mediaType, bytes) => {
    const digest = digestOf(bytes);
    files.set(blobPath(digest), bytes);
    return { mediaType, digest, size: bytes.length };
  };
  /**
   * @param {string} mediaType
   * @param {object} document
   * @returns {Descriptor}
   */
  const storeJson = (mediaType, document) =>
    store(
      mediaType,
      Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType, ...document })),
    );

  const manifests = images.map(({ config, layers }) => {
    const annotated = packageDigests(config);
    return {
      ...storeJson(MEDIA_TYPES.manifest, {
        config: store(MEDIA_TYPES.config, Buffer.from(JSON.stringify(config))),
        layers: layers.map(({ gzip, digest }) => ({
          ...store(MEDIA_TYPES.layer, gzip),
          ...(annotated.includes(digest) && {
            annotations: { [PACKAGE_ANNOTATION]: "base" },
          }),
        })),
      }),
      platform: platformOf(config),
    };
  });
  // One descriptor at the top: tools that copy a layout want to be told which image otherwise.
  const top =
    manifests.length === 1
      ? manifests
      : [storeJson(MEDIA_TYPES.index, { manifests })];
  const index = {
    schemaVersion: 2,
    mediaType: MEDIA_TYPES.index,
    manifests: top,
  };
  files.set("index.json", Buffer.from(JSON.stringify(index)));
  files.set("oci-layout", Buffer.from('{"imageLayoutVersion":"1.0.0"}'));
  return files;
}

/**
 * Makes the directory of a layout. One that is there already will do when it is empty.
 *
 * @param {string} dir
 * @throws {XpkgError} when there is something in it, or it cannot be made
 */
export function makeLayoutDir(dir) {
  attempt("make", dir, () => {
    makeDirs(path.resolve(dir));
  });
  if (attempt("read", dir, () => readdirSync(dir)).length > 0) {
    throw new XpkgError(`${dir} is not empty: expected a new directory`);
  }
}

/**
 * Writes a layout into a directory as {@link makeLayoutDir} makes it.
 *
 * @param {string} dir
 * @param {Map<string, Buffer>} files
 * @throws {XpkgError} when there is something in it, or it cannot be written
 */
export function writeLayout(dir, files) {
  makeLayoutDir(dir);
  for (const [name, bytes] of files) {
    const file = path.join(dir, name);
    attempt("write", file, () => {
      makeDirs(path.dirname(file));
      writeFileSync(file, bytes);
    });
  }
}

/**
 * Node's own recursive mkdir never returns where the system will not make a directory, as in /proc.
 *
 * @param {string} dir absolute
 */
function makeDirs(dir) {
  if (existsSync(dir)) return;
  makeDirs(path.dirname(dir));
  mkdirSync(dir);
}

/**
 * @param {string} digest
 * @returns {string} where a layout keeps it
 */
export function blobPath(digest) {
  return `blobs/${digest.replace(":", "/")}`;
}

/**
 * What an index says an image is for.
 *
 * @param {import("./image.mjs").JsonObject} config
 * @returns {{ architecture: unknown, os: unknown, variant?: unknown }}
 */
export function platformOf(config) {
  const { architecture, os, variant } = config;
  return { architecture, os, ...(variant === undefined ? {} : { variant }) };
}
