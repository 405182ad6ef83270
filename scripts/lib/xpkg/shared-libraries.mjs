import { spawnSync } from "node:child_process";

import { XpkgError } from "./xpkg-error.mjs";

/**
 * The files that the dynamic linker loads for a program or library of this machine, itself included.
 *
 * @param {string} file
 * @returns {string[]} absolute paths
 * @throws {XpkgError} when one is missing
 */
export function sharedLibraries(file) {
  const { status, stdout, error } = spawnSync("ldd", [file], {
    encoding: "utf8",
    env: { LC_ALL: "C", PATH: process.env["PATH"] },
  });
  if (error !== undefined || status !== 0) {
    throw new XpkgError(`ldd cannot say what ${file} is linked with`);
  }
  return librariesIn(stdout);
}

/**
 * @param {string} text what ldd prints
 * @returns {string[]}
 * @throws {XpkgError}
 */
export function librariesIn(text) {
  return text.split("\n").flatMap((line) => {
    if (/=> not found/.test(line)) {
      throw new XpkgError(
        `a shared library is missing: ${line.trim().replace(/ => .*$/, "")}`,
      );
    }
    // `name => /path (address)` or, for the linker, `/path (address)`. The kernel's own has no path.
    const found = /^\s(?:\S+ => )?(?<path>\/\S+) \(0x[0-9a-f]+\)$/.exec(line);
    return found?.groups?.["path"] ?? [];
  });
}
