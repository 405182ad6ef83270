import { XpkgError } from "./xpkg-error.mjs";

/**
 * What the archive of each image is called: `name.xpkg` for one, `name-<architecture>.xpkg` for
 * several.
 *
 * @param {string} output as in `name.xpkg`
 * @param {readonly import("./image.mjs").Image[]} images
 * @param {readonly string[]} files where the images are from, for the message
 * @returns {string[]}
 * @throws {XpkgError} when two are for one architecture
 */
export function archiveNames(output, images, files) {
  const architectures = images.map(({ config }) =>
    String(config["architecture"]),
  );
  const second = architectures.findIndex(
    (name, index) => architectures.indexOf(name) !== index,
  );
  const twice = architectures[second];
  if (twice !== undefined) {
    const first = architectures.indexOf(twice);
    throw new XpkgError(
      `there are two images for ${twice}: ${String(files[first])} and ${String(files[second])}`,
    );
  }
  return architectures.length === 1
    ? [output]
    : architectures.map(
        (name) => `${output.replace(/\.xpkg$/, "")}-${name}.xpkg`,
      );
}
