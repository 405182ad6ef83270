import { parseArgs } from "node:util";

import { XpkgError } from "./xpkg-error.mjs";

/**
 * Runs a script: what it throws for its user is printed and ends it with 1, a wrong command line
 * with 2. `--help` prints the usage instead.
 *
 * @template {import("node:util").ParseArgsConfig} C
 * @param {string} usage
 * @param {C} config
 * @param {(parsed: ReturnType<typeof parseArgs<C>>) => void} work throws UsageError or XpkgError
 */
export function runScript(usage, config, work) {
  try {
    if (asksForHelp(config)) console.log(`usage: ${usage}`);
    else work(parseArgs(config));
  } catch (thrown) {
    if (thrown instanceof XpkgError) {
      console.error(thrown.message);
      process.exitCode = 1;
    } else if (isUsageError(thrown)) {
      console.error(`${thrown.message}\nusage: ${usage}`);
      process.exitCode = 2;
    } else {
      throw thrown;
    }
  }
}

/** A command line that cannot be followed. */
export class UsageError extends Error {
  /** @override */
  name = "UsageError";
}

/**
 * @param {import("node:util").ParseArgsConfig} config
 * @returns {boolean}
 */
function asksForHelp({ options }) {
  // Not strict: nobody who asks is told first what else is wrong.
  const { values } = parseArgs({
    strict: false,
    options: { ...options, help: { type: "boolean", short: "h" } },
  });
  return values["help"] === true;
}

/**
 * @param {unknown} thrown
 * @returns {thrown is Error}
 */
function isUsageError(thrown) {
  return (
    thrown instanceof UsageError ||
    (thrown instanceof Error &&
      "code" in thrown &&
      String(thrown.code).startsWith("ERR_PARSE_ARGS_"))
  );
}
