import { XpkgError } from "./xpkg-error.mjs";

/**
 * What the archive of each image is called: `name.xpkg` for one, `name-<architecture>.xpkg` for
 * several.
 *
 * @param {string} output as in `name.xpkg`
 * @param {readonly import("./image.mjs").Image[]} images
 * @returns {string[]}
 * @throws {XpkgError} when two are for one architecture
 */
export function archiveNames(output, images) {
  const architectures = images.map(({ config }) =>
    String(config["architecture"]),
  );
  const twice = architectures.find(
    (name, index) => architectures.indexOf(name) !== index,
  );
  if (twice !== undefined) {
    throw new XpkgError(`there are two images for ${twice}`);
  }
  return architectures.length === 1
    ? [output]
    : architectures.map(
        (name) => `${output.replace(/\.xpkg$/, "")}-${name}.xpkg`,
      );
}
