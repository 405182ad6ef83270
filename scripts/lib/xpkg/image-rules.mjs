import { parseObject } from "./image-archive.mjs";
import { decompressed, digestOf, MAX_LAYER_BYTES, objectOr } from "./image.mjs";
import {
  PACKAGE_ANNOTATION,
  PACKAGE_FILE,
  packageDigests,
} from "./package-layer.mjs";
import { packageProblems } from "./package-rules.mjs";
import { readDocuments } from "./package-stream.mjs";
import { shown } from "./shown.mjs";
import { readTar } from "./tar-reader.mjs";

/** @import { JsonObject } from "./image.mjs" */

/** A user who is not root, with or without a group: of a name Kubernetes cannot see who it is. */
const USER = /^[1-9][0-9]*(?::[0-9]+)?$/;

/** What Crossplane reads of a package.yaml at most: 200 MiB. */
const MAX_PACKAGE_BYTES = 200 * 1024 * 1024;

/**
 * What is wrong with the image of a package.
 *
 * @param {object} image
 * @param {Buffer} image.config
 * @param {readonly Buffer[]} image.layers
 * @param {readonly JsonObject[] | null} image.annotations of the layers; null = it is in an archive,
 *   which has none
 * @returns {string[]} a sentence for each problem
 * @throws {import("./xpkg-error.mjs").XpkgError} when something cannot be read at all
 */
export function imageProblems({ config: configBytes, layers, annotations }) {
  const config = parseObject(configBytes, "the configuration");
  const digests = layers.map(digestOf);
  const archives = layers.map((layer) => decompressed(layer, MAX_LAYER_BYTES));
  const [labelled, ...others] = packageDigests(config);
  const index = labelled === undefined ? -1 : digests.indexOf(labelled);
  const archive = archives[index];
  return [
    ...configProblems(config, archives.map(digestOf)),
    ...settingsProblems(objectOr(config["config"])),
    ...(labelled === undefined || others.length > 0
      ? [
          `the image must have one label ${PACKAGE_ANNOTATION}:<digest> that is base, and has ${String(packageDigests(config).length)}`,
        ]
      : []),
    ...(labelled !== undefined && archive === undefined
      ? [`the label names ${shown(labelled)}, which is none of the layers`]
      : []),
    ...(annotations === null ? [] : annotationProblems(annotations, index)),
    ...(archive === undefined ? [] : packageLayerProblems(archive)),
  ];
}

/**
 * What is wrong with the layer that is the package.
 *
 * @param {Buffer} archive
 * @param {number} [maxBytes] of package.yaml
 * @returns {string[]}
 */
export function packageLayerProblems(archive, maxBytes = MAX_PACKAGE_BYTES) {
  const [entry, ...others] = readTar(archive);
  if (
    entry === undefined ||
    others.length > 0 ||
    entry.path !== PACKAGE_FILE ||
    entry.kind !== "file"
  ) {
    return [`the package's layer must hold ${PACKAGE_FILE} alone`];
  }
  if (entry.bytes.length > maxBytes) {
    return [
      `${PACKAGE_FILE} is too large: Crossplane reads at most ${String(maxBytes)} bytes, got ${String(entry.bytes.length)}`,
    ];
  }
  const text = entry.bytes.toString("utf8");
  return [
    ...((entry.mode & 0o444) === 0o444
      ? []
      : [`${PACKAGE_FILE} is not readable for all`]),
    ...packageProblems(readDocuments(text, PACKAGE_FILE)),
  ];
}

/**
 * @param {JsonObject} config
 * @param {readonly string[]} diffIds
 * @returns {string[]}
 */
function configProblems(config, diffIds) {
  const { diff_ids: named } = objectOr(config["rootfs"]);
  return [
    ...["os", "architecture"]
      .filter((name) => typeof config[name] !== "string" || config[name] === "")
      .map((name) => `the configuration does not say its ${name}`),
    ...(JSON.stringify(named) === JSON.stringify(diffIds)
      ? []
      : ["the layers are not those of the configuration's diff_ids"]),
  ];
}

/**
 * What is wrong with how a container of the image would run.
 *
 * @param {JsonObject} settings
 * @returns {string[]}
 */
function settingsProblems({ Entrypoint: entrypoint, User: user }) {
  /** @type {unknown[]} */
  const [program] = Array.isArray(entrypoint) ? entrypoint : [];
  const isProgram = typeof program === "string" && program !== "";
  const isUser = typeof user === "string" && USER.test(user);
  return [
    // A Cmd would be lost: the args of a container replace it.
    ...(isProgram
      ? []
      : [
          `the image's Entrypoint must be the program, got ${shown(entrypoint)}`,
        ]),
    ...(isUser
      ? []
      : [`the image's User must be a number other than 0, got ${shown(user)}`]),
  ];
}

/**
 * @param {readonly JsonObject[]} annotations
 * @param {number} packageIndex
 * @returns {string[]}
 */
function annotationProblems(annotations, packageIndex) {
  const annotated = annotations.flatMap((each, index) =>
    each[PACKAGE_ANNOTATION] === "base" ? [index] : [],
  );
  return annotated.length === 1 && annotated[0] === packageIndex
    ? []
    : [
        `the layer that the label names, and no other, must be annotated with ${PACKAGE_ANNOTATION}`,
      ];
}
