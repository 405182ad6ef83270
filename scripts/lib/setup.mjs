import path from "node:path";
import { fileURLToPath } from "node:url";

import { checkNode } from "./node-version.mjs";
import { buildNative } from "./native.mjs";
import { installPackages } from "./packages.mjs";
import { SetupError } from "./setup-error.mjs";
import { buildTypeScript } from "./typescript.mjs";

/**
 * Everything setup needs to know about where it runs.
 *
 * @typedef {object} Machine
 * @property {string} root the clone
 * @property {Record<string, string | undefined>} env
 * @property {string} nodeVersion as in `process.versions.node`
 * @property {string} platform as in `process.platform`
 * @property {string} arch as in `process.arch`
 * @property {(line: string) => void} log
 */

/**
 * Installs and builds what changed since the last time.
 *
 * @param {Machine} machine
 * @param {{ install: boolean }} options `install: false` leaves node_modules to the caller
 * @returns {Promise<void>} rejects with SetupError
 */
export async function setup(machine, options) {
  const tooOld = checkNode(machine.nodeVersion);
  if (tooOld !== null) {
    throw new SetupError(tooOld);
  }

  await installPackages(machine, options);
  await buildNative(machine);
  await buildTypeScript(machine);
}

/**
 * @returns {Machine} the real one
 */
export function thisMachine() {
  return {
    root: path.resolve(fileURLToPath(import.meta.url), "../../.."),
    env: process.env,
    nodeVersion: process.versions.node,
    platform: process.platform,
    arch: process.arch,
    log: (line) => {
      console.error(`setup: ${line}`);
    },
  };
}

/**
 * Prints what went wrong: the sentences alone when it is the user's to mend, else the stack.
 *
 * @param {unknown} thrown
 */
export function reportFailure(thrown) {
  if (!(thrown instanceof SetupError)) {
    console.error(thrown);
    return;
  }
  for (const line of thrown.message.split("\n")) {
    console.error(`setup: ${line}`);
  }
}
