import { XpkgError } from "./xpkg-error.mjs";

const MACHINE_OFFSET = 18;
const ARCHITECTURES = new Map([
  [0x3e, "amd64"],
  [0xb7, "arm64"],
]);

/**
 * The architecture that a program or library was built for, in the words of container images.
 *
 * @param {Buffer} bytes
 * @param {string} name for the message
 * @returns {string}
 * @throws {XpkgError} when it is not one for Linux on amd64 or arm64
 */
export function architectureOf(bytes, name) {
  const isElf = bytes.length > 20 && bytes.readUInt32BE(0) === 0x7f454c46;
  const architecture = isElf
    ? ARCHITECTURES.get(bytes.readUInt16LE(MACHINE_OFFSET))
    : undefined;
  if (architecture === undefined) {
    throw new XpkgError(
      `${name} is not built for Linux on amd64 or arm64: build the image there`,
    );
  }
  return architecture;
}
