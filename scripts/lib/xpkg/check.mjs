import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import path from "node:path";

import { attempt } from "./attempt.mjs";
import { filesIn, manifestIn, parseObject } from "./image-archive.mjs";
import { imageProblems } from "./image-rules.mjs";
import { digestOf, isObject, objectOr } from "./image.mjs";
import { blobPath, MEDIA_TYPES, platformOf } from "./oci-layout.mjs";
import { shown } from "./shown.mjs";
import { XpkgError } from "./xpkg-error.mjs";

/** @import { JsonObject } from "./image.mjs" */

/**
 * Checks a package from its bytes alone: every digest again, and what Crossplane asks of it.
 *
 * @param {string} place an .xpkg file, or the directory of an OCI layout
 * @returns {string[]} a sentence for each problem
 */
export function checkXpkg(place) {
  try {
    const stats = attempt("read", place, () => statSync(place));
    if (!stats.isDirectory()) {
      const archive = attempt("read", place, () => readFileSync(place));
      return archiveProblems(filesIn(archive));
    }
    // Before all that is in it is read: it may be any directory.
    if (!existsSync(path.join(place, "oci-layout"))) {
      return ['is no OCI layout: there is no "oci-layout"'];
    }
    return layoutProblems(layoutFiles(place, ""));
  } catch (thrown) {
    if (thrown instanceof XpkgError) return [thrown.message];
    throw thrown;
  }
}

/**
 * @param {Map<string, Buffer>} files
 * @returns {string[]}
 */
function archiveProblems(files) {
  const { Config: configName, Layers: layerNames } = manifestIn(files);
  const named = new Set(["manifest.json", configName, ...layerNames]);
  const missing = [...named].filter((name) => !files.has(name));
  if (missing.length > 0) {
    return missing.map((name) => `the archive has no ${shown(name)}`);
  }

  const config = fileOf(files, configName);
  const layers = layerNames.map((name) => fileOf(files, name));
  return [
    ...[...files.keys()]
      .filter((name) => !named.has(name))
      .map((name) => `nothing names ${shown(name)} in the archive`),
    ...(configName === digestOf(config)
      ? []
      : [`the configuration's digest is not its name, ${shown(configName)}`]),
    ...layers.flatMap((layer, index) => {
      const name = String(layerNames[index]);
      return digestOf(layer) === `sha256:${name.replace(/\.tar\.gz$/, "")}`
        ? []
        : [`a layer's digest is not its name, ${shown(name)}`];
    }),
    ...imageProblems({ config, layers, annotations: null }),
  ];
}

/**
 * @param {Map<string, Buffer>} files
 * @returns {string[]}
 */
function layoutProblems(files) {
  const { imageLayoutVersion } = parseObject(
    fileOf(files, "oci-layout"),
    "oci-layout",
  );
  const unread = new Set([...files.keys()].filter(isBlob));
  const blobs = {
    /** @param {unknown} descriptor */
    read: (descriptor) => readBlob(files, unread, descriptor),
  };
  const top = manifestsOf(
    parseObject(fileOf(files, "index.json"), "index.json"),
  );
  const [only, ...others] = top;
  if (only === undefined || others.length > 0) {
    return [
      `index.json must name one image or index, and names ${String(top.length)}`,
    ];
  }

  const isIndex = only["mediaType"] === MEDIA_TYPES.index;
  const descriptors = isIndex
    ? manifestsOf(parseObject(blobs.read(only), "the index"))
    : [only];
  return [
    ...(imageLayoutVersion === "1.0.0"
      ? []
      : ["the layout's version is not 1.0.0"]),
    ...descriptors.flatMap((descriptor) => manifestProblems(descriptor, blobs)),
    ...(isIndex ? platformProblems(descriptors) : []),
    ...[...unread].map((name) => `nothing names ${shown(name)}`),
  ];
}

/**
 * @typedef {{ read: (descriptor: unknown) => Buffer }} Blobs
 *
 * @param {JsonObject} descriptor
 * @param {Blobs} blobs
 * @returns {string[]}
 */
function manifestProblems(descriptor, blobs) {
  if (descriptor["mediaType"] !== MEDIA_TYPES.manifest) {
    return [
      `expected a manifest of type ${MEDIA_TYPES.manifest}, got ${shown(descriptor["mediaType"])}`,
    ];
  }
  const manifest = parseObject(blobs.read(descriptor), "a manifest");
  const layers = arrayOf(manifest["layers"]);
  const config = blobs.read(manifest["config"]);
  const platform = platformOf(parseObject(config, "a configuration"));
  return [
    ...(sameJson(descriptor["platform"], platform)
      ? []
      : ["a manifest's platform is not that of its configuration"]),
    ...imageProblems({
      config,
      layers: layers.map((layer) => blobs.read(layer)),
      annotations: layers.map((layer) => objectOr(layer["annotations"])),
    }),
  ];
}

/**
 * @param {readonly JsonObject[]} descriptors
 * @returns {string[]}
 */
function platformProblems(descriptors) {
  const platforms = descriptors.map(({ platform }) => {
    const { os, architecture } = objectOr(platform);
    return `${String(os)}/${String(architecture)}`;
  });
  return [
    // Crossplane itself always takes this one, whatever the nodes are.
    ...(platforms.includes("linux/amd64")
      ? []
      : ["the index has no image for linux/amd64, which Crossplane reads"]),
    ...(new Set(platforms).size === platforms.length
      ? []
      : ["the index has two images for one platform"]),
  ];
}

/**
 * @param {Map<string, Buffer>} files
 * @param {Set<string>} unread
 * @param {unknown} descriptor
 * @returns {Buffer}
 */
function readBlob(files, unread, descriptor) {
  const { digest, size } = objectOr(descriptor);
  if (typeof digest !== "string" || !/^sha256:[0-9a-f]{64}$/.test(digest)) {
    throw new XpkgError("a descriptor has no digest");
  }
  const bytes = fileOf(files, blobPath(digest));
  unread.delete(blobPath(digest));
  if (digestOf(bytes) !== digest) {
    throw new XpkgError(`a blob's digest is not its name, ${digest}`);
  }
  if (bytes.length !== size) {
    throw new XpkgError(
      `the size of ${digest} is ${String(bytes.length)}, but its descriptor says ${shown(size)}`,
    );
  }
  return bytes;
}

/**
 * @param {JsonObject} index
 * @returns {JsonObject[]}
 */
function manifestsOf(index) {
  return arrayOf(index["manifests"]);
}

/**
 * @param {unknown} value
 * @returns {JsonObject[]}
 */
function arrayOf(value) {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/**
 * @param {unknown} a
 * @param {unknown} b
 * @returns {boolean}
 */
function sameJson(a, b) {
  return JSON.stringify(a) === JSON.stringify(b);
}

/**
 * @param {Map<string, Buffer>} files
 * @param {string} name
 * @returns {Buffer}
 */
function fileOf(files, name) {
  const bytes = files.get(name);
  if (bytes === undefined) {
    throw new XpkgError(`there is no ${shown(name)}`);
  }
  return bytes;
}

/**
 * @param {string} name
 * @returns {boolean}
 */
function isBlob(name) {
  return name !== "index.json" && name !== "oci-layout";
}

/**
 * @param {string} root
 * @param {string} below
 * @returns {Map<string, Buffer>}
 */
function layoutFiles(root, below) {
  const dir = path.join(root, below);
  const entries = attempt("read", dir, () =>
    readdirSync(dir, { withFileTypes: true }),
  );
  return new Map(
    entries.flatMap((entry) => {
      const name = path.posix.join(below, entry.name);
      if (entry.isDirectory()) return [...layoutFiles(root, name)];
      const file = path.join(root, name);
      return [[name, attempt("read", file, () => readFileSync(file))]];
    }),
  );
}
