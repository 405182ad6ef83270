import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";

import { XpkgError } from "./xpkg-error.mjs";

/**
 * Installs what the program needs at run time, as the lock file says, into a directory of its own
 * for as long as `use` takes. No package runs code of its own.
 *
 * @template T
 * @param {string} root the clone
 * @param {(nodeModules: string) => T} use
 * @returns {T}
 * @throws {XpkgError} when npm fails
 */
export function withProductionPackages(root, use) {
  const dir = mkdtempSync(path.join(os.tmpdir(), "function-wasm-image-"));
  try {
    for (const name of ["package.json", "package-lock.json"]) {
      copyFileSync(path.join(root, name), path.join(dir, name));
    }
    const args = ["ci", "--omit=dev", "--ignore-scripts", "--prefer-offline"];
    const { status, error } = spawnSync("npm", args, {
      cwd: dir,
      stdio: ["ignore", "ignore", "inherit"],
    });
    if (error !== undefined || status !== 0) {
      throw new XpkgError(`npm ${args.join(" ")} failed`);
    }
    const nodeModules = path.join(dir, "node_modules");
    // npm makes none for a program that needs no packages.
    mkdirSync(nodeModules, { recursive: true });
    return use(nodeModules);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
