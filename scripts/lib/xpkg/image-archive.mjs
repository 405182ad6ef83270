import { Buffer } from "node:buffer";

import {
  compressed,
  decompressed,
  digestOf,
  isObject,
  MAX_LAYER_BYTES,
  objectOr,
} from "./image.mjs";
import { ascii, shown } from "./shown.mjs";
import { readTar } from "./tar-reader.mjs";
import { tarOf } from "./tar-writer.mjs";
import { XpkgError } from "./xpkg-error.mjs";

/** @import { Image, JsonObject, Layer } from "./image.mjs" */

/**
 * Reads the one image of an archive: what `docker save` writes, `.xpkg` files too, or an OCI archive
 * that has a manifest.json. Compressed layers stay as they are.
 *
 * @param {Buffer} archive
 * @returns {Image}
 * @throws {XpkgError}
 */
export function readImageArchive(archive) {
  const files = filesIn(archive);
  const { Config: configName, Layers: layerNames } = manifestIn(files);
  const configBytes = fileNamed(files, configName);
  const hex = /(?<hex>[0-9a-f]{64})(?:\.json)?$/.exec(configName)?.groups?.[
    "hex"
  ];
  if (hex !== undefined && digestOf(configBytes) !== `sha256:${hex}`) {
    throw new XpkgError(
      `the archive's ${shown(configName)} is not what its name is`,
    );
  }
  const config = parseObject(configBytes, configName);
  const layers = layerNames.map((name) => layerFrom(fileNamed(files, name)));
  checkConfig(config, layers);
  return { config, layers };
}

/**
 * The archive of an image that `crossplane xpkg push` and `docker load` read.
 *
 * @param {Image} image
 * @returns {Buffer}
 */
export function imageArchive({ config, layers }) {
  const configBytes = Buffer.from(JSON.stringify(config));
  const configName = digestOf(configBytes);
  const byName = new Map(
    layers.map((layer) => [archiveName(layer.digest), layer.gzip]),
  );
  const manifest = [
    {
      Config: configName,
      RepoTags: null,
      Layers: layers.map(({ digest }) => archiveName(digest)),
    },
  ];
  return tarOf(
    [
      { path: configName, bytes: configBytes },
      ...[...byName].map(([path, bytes]) => ({ path, bytes })),
      {
        path: "manifest.json",
        bytes: Buffer.from(JSON.stringify(manifest)),
      },
    ].map((file) => ({ ...file, mode: 0o644 })),
  );
}

/**
 * The files of an archive by their paths.
 *
 * @param {Buffer} archive
 * @returns {Map<string, Buffer>}
 * @throws {XpkgError}
 */
export function filesIn(archive) {
  const files = readTar(archive).filter(({ kind }) => kind === "file");
  return new Map(files.map(({ path, bytes }) => [path, bytes]));
}

/**
 * The one image that manifest.json names.
 *
 * @param {Map<string, Buffer>} files
 * @returns {{ Config: string, Layers: string[] }}
 * @throws {XpkgError}
 */
export function manifestIn(files) {
  const bytes = files.get("manifest.json");
  if (bytes === undefined) {
    throw new XpkgError(
      "the archive has no manifest.json: expected one made by docker save, or its like",
    );
  }
  const manifests = parseJson(bytes, "manifest.json");
  const count = Array.isArray(manifests) ? manifests.length : 0;
  if (!Array.isArray(manifests) || count !== 1) {
    throw new XpkgError(
      `the archive must hold one image, and holds ${String(count)}`,
    );
  }
  const { Config: configName, Layers: layerNames } = objectOr(manifests[0]);
  if (
    typeof configName !== "string" ||
    !Array.isArray(layerNames) ||
    !layerNames.every((name) => typeof name === "string")
  ) {
    throw new XpkgError("the archive's manifest.json names no image");
  }
  return { Config: configName, Layers: layerNames };
}

/**
 * @param {Buffer} bytes
 * @param {string} name for the message
 * @returns {JsonObject}
 * @throws {XpkgError}
 */
export function parseObject(bytes, name) {
  const value = parseJson(bytes, name);
  if (!isObject(value)) {
    throw new XpkgError(`${ascii(name)} is not a JSON object`);
  }
  return value;
}

/**
 * @param {Buffer} bytes
 * @param {string} name
 * @returns {unknown}
 */
function parseJson(bytes, name) {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch (cause) {
    throw new XpkgError(`${ascii(name)} is not JSON`, { cause });
  }
}

/**
 * @param {Map<string, Buffer>} files
 * @param {string} name
 * @returns {Buffer}
 */
function fileNamed(files, name) {
  const bytes = files.get(name);
  if (bytes === undefined) {
    throw new XpkgError(`the archive has no file ${shown(name)}`);
  }
  return bytes;
}

/**
 * @param {Buffer} bytes
 * @returns {Layer}
 */
function layerFrom(bytes) {
  const magic = bytes.toString("hex", 0, 4);
  if (magic.startsWith("1f8b")) {
    const diffId = digestOf(decompressed(bytes, MAX_LAYER_BYTES));
    return { gzip: bytes, digest: digestOf(bytes), diffId };
  }
  if (magic === "28b52ffd") {
    throw new XpkgError(
      "a layer is compressed with zstd: save the image with gzip or none",
    );
  }
  return compressed(bytes);
}

/**
 * @param {JsonObject} config
 * @param {Layer[]} layers
 */
function checkConfig(config, layers) {
  for (const name of ["os", "architecture"]) {
    if (typeof config[name] !== "string" || config[name] === "") {
      throw new XpkgError(`the image's configuration does not say its ${name}`);
    }
  }
  const diffIds = objectOr(config["rootfs"])["diff_ids"];
  const found = layers.map(({ diffId }) => diffId);
  if (JSON.stringify(diffIds) !== JSON.stringify(found)) {
    throw new XpkgError(
      "the image's layers are not those of its configuration",
    );
  }
}

/**
 * @param {string} digest
 * @returns {string}
 */
function archiveName(digest) {
  return `${digest.slice("sha256:".length)}.tar.gz`;
}
