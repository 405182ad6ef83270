/**
 * One sentence when this Node is too old to run the program, else null. Old syntax only.
 *
 * @param {string} version as in `process.versions.node`
 * @returns {string | null}
 */
export function checkNode(version) {
  const parts = version.split(".");
  const major = Number(parts[0]);
  const minor = Number(parts[1]);
  if (major > 20 || (major === 20 && minor >= 19)) {
    return null;
  }
  return (
    "Node is too old: expected 20.19 or newer, found " +
    version +
    "; get a newer one from https://nodejs.org"
  );
}
