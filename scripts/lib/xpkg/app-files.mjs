import { lstatSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";

import { withProductionPackages } from "./production-packages.mjs";
import { XpkgError } from "./xpkg-error.mjs";

/** @import { TarEntry } from "./tar-writer.mjs" */

/** Where the program lies in the image. */
export const APP_DIR = "app";

/** What `npm run build` makes of native/, and src/engine/native.ts looks for. */
export const NATIVE_FILES = [
  "build/native/wasmtime-compile",
  "build/native/wasmtime-node.node",
];

/** npm's notes, and links to programs that nobody starts. */
const LEFT_OUT = new Set([".bin", ".package-lock.json"]);

/**
 * The program as it is installed: what package.json lists in `files`, the native parts, and the
 * packages it needs at run time. Readable for all, writable for nobody but root.
 *
 * @param {string} root the clone, built
 * @returns {TarEntry[]}
 * @throws {XpkgError} when it was not built, or npm fails
 */
export function appFiles(root) {
  const manifest = /** @type {{ files: string[] }} */ (
    JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"))
  );
  const own = [...manifest.files, "package.json", "LICENSE", ...NATIVE_FILES];
  const missing = [...own, "dist/main.js"].find((name) => !exists(root, name));
  if (missing !== undefined) {
    throw new XpkgError(`there is no ${missing}: run npm run build first`);
  }
  const files = own.flatMap((name) =>
    filesBelow(path.join(root, name), `${APP_DIR}/${name}`),
  );
  const packages = withProductionPackages(root, (nodeModules) =>
    filesBelow(nodeModules, `${APP_DIR}/node_modules`),
  );
  return withDirectories([...files, ...packages]);
}

/**
 * The files with every directory above them, once.
 *
 * @param {readonly TarEntry[]} files
 * @returns {TarEntry[]}
 */
export function withDirectories(files) {
  const directories = new Set(files.flatMap(({ path: name }) => above(name)));
  return [
    ...[...directories].map((name) => ({
      path: name,
      mode: 0o755,
      bytes: null,
    })),
    ...files,
  ];
}

/**
 * @param {string} name
 * @returns {string[]}
 */
function above(name) {
  const parts = name.split("/").slice(0, -1);
  return parts.map((_, index) => parts.slice(0, index + 1).join("/"));
}

/**
 * @param {string} file
 * @param {string} name what it is called in the image
 * @returns {TarEntry[]}
 */
function filesBelow(file, name) {
  const stat = lstatSync(file);
  if (stat.isDirectory()) {
    return readdirSync(file)
      .filter((entry) => !LEFT_OUT.has(entry))
      .flatMap((entry) =>
        filesBelow(path.join(file, entry), `${name}/${entry}`),
      );
  }
  if (!stat.isFile()) {
    throw new XpkgError(`${file} is neither a file nor a directory`);
  }
  // Not what the umask of whoever built it left: the image runs under any user.
  const mode = (stat.mode & 0o100) === 0 ? 0o644 : 0o755;
  return [{ path: name, mode, bytes: readFileSync(file) }];
}

/**
 * @param {string} root
 * @param {string} name
 * @returns {boolean}
 */
function exists(root, name) {
  const options = /** @type {const} */ ({ throwIfNoEntry: false });
  return lstatSync(path.join(root, name), options) !== undefined;
}
