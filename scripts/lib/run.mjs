import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

import { SetupError } from "./setup-error.mjs";

const HEARTBEAT_MS = 10_000;

/**
 * Runs a program to its end, saying every ten seconds that it still runs.
 *
 * @param {import("./setup.mjs").Machine} machine
 * @param {string[]} command the program and its arguments
 * @param {object} options
 * @param {string} options.what names the step in messages
 * @param {Record<string, string | undefined>} [options.env] default the machine's
 * @param {(line: string) => boolean} [options.onLine] sees each line the program writes to stderr
 *   and returns true to have it printed; without it all output goes straight through
 * @param {() => string} [options.progress] what to say every ten seconds, after the elapsed time
 * @returns {Promise<void>} rejects with SetupError
 */
export async function run(machine, command, options) {
  const [program = "", ...args] = command;
  const startedAtMs = performance.now();
  const child = spawn(program, args, {
    cwd: machine.root,
    env: options.env ?? machine.env,
    stdio: ["ignore", "inherit", options.onLine ? "pipe" : "inherit"],
  });
  if (child.stderr !== null) {
    const { onLine } = options;
    createInterface({ input: child.stderr }).on("line", (line) => {
      if (onLine?.(line) === true) {
        machine.log(line);
      }
    });
  }
  const heartbeat = setInterval(() => {
    const note = options.progress?.() ?? "still running";
    machine.log(`${options.what}: ${elapsed(startedAtMs)}, ${note}`);
  }, HEARTBEAT_MS);

  try {
    await new Promise((resolve, reject) => {
      child.once("error", (cause) => {
        const text = `${options.what} failed: cannot run ${program}`;
        reject(new SetupError(text, { cause }));
      });
      child.once("close", (code, signal) => {
        if (code === 0) {
          resolve(undefined);
          return;
        }
        const how = signal ?? `exit code ${String(code)}`;
        const text = `${options.what} failed with ${how}: ${command.join(" ")}`;
        reject(new SetupError(text));
      });
    });
  } finally {
    clearInterval(heartbeat);
  }
  machine.log(`${options.what}: done in ${elapsed(startedAtMs)}`);
}

/**
 * @param {number} sinceMs on `performance.now()`
 * @returns {string} as in `2m05s`
 */
function elapsed(sinceMs) {
  const seconds = Math.round((performance.now() - sinceMs) / 1000);
  const minutes = Math.floor(seconds / 60);
  const rest = String(seconds % 60);
  return minutes === 0
    ? `${rest}s`
    : `${String(minutes)}m${rest.padStart(2, "0")}s`;
}
