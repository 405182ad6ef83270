import { Buffer } from "node:buffer";
import { readFileSync } from "node:fs";
import path from "node:path";

import {
  APP_DIR,
  appFiles,
  NATIVE_FILES,
  withDirectories,
} from "./app-files.mjs";
import { architectureOf } from "./elf.mjs";
import {
  decompressed,
  labelsOf,
  layerOf,
  MAX_LAYER_BYTES,
  objectOr,
  withLayer,
} from "./image.mjs";
import { sharedLibraries } from "./shared-libraries.mjs";
import { readTar } from "./tar-reader.mjs";
import { XpkgError } from "./xpkg-error.mjs";

/** @import { Image, JsonObject } from "./image.mjs" */
/** @import { TarEntry } from "./tar-writer.mjs" */

/** Where base images have Node: distroless, the official ones, Debian's package. */
const NODE_PLACES = ["nodejs/bin/node", "usr/local/bin/node", "usr/bin/node"];
const OWN_NODE = "nodejs/bin/node";

/** Numeric, so that Kubernetes can see that it is not root. */
const USER = "65532:65532";
const PASSWD = `root:x:0:0:root:/root:/sbin/nologin
nonroot:x:65532:65532:nonroot:/:/sbin/nologin
`;
const GROUP = "root:x:0:\nnonroot:x:65532:\n";

/**
 * The image that runs the program.
 *
 * @param {string} root the clone, built
 * @param {Image | null} base an image with Node; null = this machine's Node, with the libraries it
 *   and the native parts need, and nothing else
 * @returns {Image}
 * @throws {XpkgError}
 */
export function runtimeImage(root, base) {
  const architecture = nativeArchitecture(root);
  const below = base ?? ownBase(root, architecture);
  if (below.config["architecture"] !== architecture) {
    throw new XpkgError(
      `the base image is for ${String(below.config["architecture"])}, the program was built for ${architecture}`,
    );
  }
  const node = nodeIn(below);
  const app = layerOf(appFiles(root));
  return withLayer(below, app, "build-image", settings(root, node, below));
}

/**
 * @param {string} root
 * @returns {string}
 */
function nativeArchitecture(root) {
  const found = NATIVE_FILES.map((name) =>
    architectureOf(readIfThere(root, name), name),
  );
  const [architecture = ""] = found;
  return architecture;
}

/**
 * @param {string} root
 * @param {string} name
 * @returns {Buffer}
 */
function readIfThere(root, name) {
  try {
    return readFileSync(path.join(root, name));
  } catch (cause) {
    throw new XpkgError(`there is no ${name}: run npm run build first`, {
      cause,
    });
  }
}

/**
 * @param {string} root
 * @param {string} node its path in the image
 * @param {Image} base
 * @returns {JsonObject}
 */
function settings(root, node, { config }) {
  const { Env } = objectOr(config["config"]);
  const manifest = /** @type {Record<string, string>} */ (
    JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"))
  );
  return {
    // Not Cmd, which the args of a container replace.
    Entrypoint: [`/${node}`, `/${APP_DIR}/dist/main.js`],
    Cmd: null,
    User: USER,
    WorkingDir: `/${APP_DIR}`,
    Env: [
      ...(Array.isArray(Env) ? Env : []).filter(
        (variable) => !String(variable).startsWith("NODE_ENV="),
      ),
      "NODE_ENV=production",
    ],
    ExposedPorts: { "9443/tcp": {}, "8080/tcp": {}, "8081/tcp": {} },
    Labels: {
      ...labelsOf(config),
      "org.opencontainers.image.title": manifest["name"],
      "org.opencontainers.image.description": manifest["description"],
      "org.opencontainers.image.version": manifest["version"],
      "org.opencontainers.image.licenses": manifest["license"],
    },
  };
}

/**
 * @param {Image} image
 * @returns {string} the path of Node in it
 */
function nodeIn({ layers }) {
  const paths = new Set(
    layers.flatMap(({ gzip }) =>
      readTar(decompressed(gzip, MAX_LAYER_BYTES)).map((entry) => entry.path),
    ),
  );
  const node = NODE_PLACES.find((place) => paths.has(place));
  if (node === undefined) {
    throw new XpkgError(
      `the base image has no Node: expected one of ${NODE_PLACES.join(", ")}`,
    );
  }
  return node;
}

/**
 * @param {string} root
 * @param {string} architecture
 * @returns {Image}
 */
function ownBase(root, architecture) {
  const programs = [
    process.execPath,
    ...NATIVE_FILES.map((name) => path.join(root, name)),
  ];
  const libraries = new Set(programs.flatMap(sharedLibraries));
  const files = withDirectories([
    fileEntry(OWN_NODE, process.execPath),
    ...[...libraries].map((file) => fileEntry(file.slice(1), file)),
    { path: "etc/passwd", mode: 0o644, bytes: Buffer.from(PASSWD) },
    { path: "etc/group", mode: 0o644, bytes: Buffer.from(GROUP) },
  ]);
  const layer = layerOf([
    ...files,
    // What a container gets mounted, and a /tmp for all.
    ...["dev", "proc", "sys"].map((name) => directory(name, 0o755)),
    directory("tmp", 0o1777),
  ]);
  /** @type {Image} */
  const empty = {
    config: { architecture, os: "linux", created: "1970-01-01T00:00:00Z" },
    layers: [],
  };
  return withLayer(empty, layer, "build-image", {
    Env: ["PATH=/nodejs/bin"],
  });
}

/**
 * @param {string} name
 * @param {string} file links are followed: the image has the linked file under the link's name
 * @returns {TarEntry}
 */
function fileEntry(name, file) {
  // The kernel wants the dynamic linker executable; for the others it does no harm.
  return { path: name, mode: 0o755, bytes: readFileSync(file) };
}

/**
 * @param {string} name
 * @param {number} mode
 * @returns {TarEntry}
 */
function directory(name, mode) {
  return { path: name, mode, bytes: null };
}
