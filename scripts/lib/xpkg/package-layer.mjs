import { Buffer } from "node:buffer";

import { labelsOf, layerOf, withLayer } from "./image.mjs";
import { XpkgError } from "./xpkg-error.mjs";

/** @import { Image, JsonObject } from "./image.mjs" */

/** On a layer it says what Crossplane finds there; with `:` and a digest it is a label of the image. */
export const PACKAGE_ANNOTATION = "io.crossplane.xpkg";

/** The one file of the package's layer. */
export const PACKAGE_FILE = "package.yaml";

/**
 * The image with the package on top. The layer is named in a label, since archives have no
 * annotations.
 *
 * @param {Image} image
 * @param {string} stream the text of package.yaml
 * @returns {Image}
 * @throws {XpkgError} when it is a package already
 */
export function addPackage(image, stream) {
  if (packageDigests(image.config).length > 0) {
    throw new XpkgError("the image is a package already");
  }
  const layer = layerOf([
    { path: PACKAGE_FILE, mode: 0o644, bytes: Buffer.from(stream) },
  ]);
  return withLayer(image, layer, "build-xpkg", {
    Labels: {
      ...labelsOf(image.config),
      [`${PACKAGE_ANNOTATION}:${layer.digest}`]: "base",
    },
  });
}

/**
 * The layers that an image's labels call the package; one, if all is well.
 *
 * @param {JsonObject} config
 * @returns {string[]} their digests
 */
export function packageDigests(config) {
  return Object.entries(labelsOf(config))
    .filter(([, value]) => value === "base")
    .map(([name]) => name)
    .filter((name) => name.startsWith(`${PACKAGE_ANNOTATION}:`))
    .map((name) => name.slice(PACKAGE_ANNOTATION.length + 1));
}
