import { existsSync } from "node:fs";
import path from "node:path";

import { readText } from "./content.mjs";
import { run } from "./run.mjs";
import { SetupError } from "./setup-error.mjs";

/**
 * Runs `npm ci` unless node_modules already holds what package-lock.json asks for.
 *
 * @param {import("./setup.mjs").Machine} machine
 * @param {{ install: boolean }} options
 * @returns {Promise<void>} rejects with SetupError
 */
export async function installPackages(machine, options) {
  const why = whyInstall(machine.root);
  if (why === null) {
    return;
  }
  if (!options.install) {
    throw new SetupError(`${why}: run npm ci first`);
  }
  machine.log(`${why}: running npm ci`);
  // Whatever NODE_ENV says, the compiler and the test runner are needed.
  await run(machine, ["npm", "ci", "--include=dev"], { what: "npm ci" });
}

/**
 * npm writes node_modules/.package-lock.json when an install is complete, so comparing it with
 * package-lock.json also notices an install that was cut short or made by hand.
 *
 * @param {string} root
 * @returns {string | null} null = everything is there
 */
function whyInstall(root) {
  const wanted = readPackages(path.join(root, "package-lock.json"));
  const installedFile = path.join(root, "node_modules/.package-lock.json");
  if (!existsSync(installedFile)) {
    return "node_modules is missing or incomplete";
  }
  const installed = readPackages(installedFile);
  const differs = Object.entries(wanted).some(([name, entry]) => {
    const found = installed[name];
    if (name === "") {
      return false;
    }
    return found === undefined
      ? entry.optional !== true && entry.devOptional !== true
      : found.version !== entry.version || found.integrity !== entry.integrity;
  });
  return differs ? "package-lock.json changed since the last npm ci" : null;
}

/**
 * @typedef {{ version?: string, integrity?: string, optional?: boolean, devOptional?: boolean }} Locked
 *
 * @param {string} file
 * @returns {Record<string, Locked>}
 */
function readPackages(file) {
  const lock = /** @type {{ packages?: Record<string, Locked> }} */ (
    JSON.parse(readText(file) ?? "{}")
  );
  return lock.packages ?? {};
}
