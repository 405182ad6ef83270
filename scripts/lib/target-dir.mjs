import {
  mkdirSync,
  openSync,
  closeSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { hashFiles } from "./content.mjs";

const LOCK_BEAT_MS = 2_000;
const LOCK_STALE_MS = 20_000;

/**
 * Where cargo builds: outside the clone, so that the next clone does not compile wasmtime again.
 *
 * @param {import("./setup.mjs").Machine} machine
 * @returns {string} `CARGO_TARGET_DIR`, else below `XDG_CACHE_HOME`, else below `~/.cache`
 */
export function cargoTargetDir(machine) {
  const { CARGO_TARGET_DIR, XDG_CACHE_HOME, HOME } = machine.env;
  if (CARGO_TARGET_DIR) {
    return path.resolve(machine.root, CARGO_TARGET_DIR);
  }
  // The XDG specification says to ignore a relative path.
  const cache =
    XDG_CACHE_HOME && path.isAbsolute(XDG_CACHE_HOME)
      ? XDG_CACHE_HOME
      : path.join(HOME ?? os.homedir(), ".cache");
  return path.join(cache, "function-wasm/cargo");
}

/**
 * The environment in which every cargo of this project runs.
 *
 * @param {import("./setup.mjs").Machine} machine
 * @returns {Record<string, string | undefined>}
 */
export function cargoEnv(machine) {
  return {
    ...machine.env,
    CARGO_TARGET_DIR: cargoTargetDir(machine),
    // A target triple moves the output and compiles everything a second time.
    CARGO_BUILD_TARGET: undefined,
  };
}

/**
 * Runs `work` while no other clone builds in the same target directory, and makes cargo see what
 * differs between the clones.
 *
 * Cargo tells a changed source file by its time stamp, and names what it builds from our crates by
 * their place within the workspace. So a clone whose files are older than the last build, made from
 * another clone with other sources, would be given that one's libraries as up to date. Hence a note
 * in the target directory says which contents it was built from, and files that differ are touched.
 *
 * @template T
 * @param {import("./setup.mjs").Machine} machine
 * @param {() => Promise<T>} work runs cargo
 * @returns {Promise<T>}
 */
export async function withTargetDir(machine, work) {
  const dir = path.join(cargoTargetDir(machine), "function-wasm");
  mkdirSync(dir, { recursive: true });
  const unlock = await lock(machine, path.join(dir, "lock"));
  try {
    const noteFile = path.join(dir, "sources.json");
    const nativeDir = path.join(machine.root, "native");
    const now = hashFiles(nativeDir);
    const before = readNote(noteFile);
    const same = Object.entries(now).filter(
      ([file, hash]) => before[file] === hash,
    );
    // Should the build stop half way, nothing is known of the files it was to see anew.
    writeFileSync(noteFile, JSON.stringify(Object.fromEntries(same)));
    const changed = Object.keys(now).filter(
      (file) => before[file] !== now[file],
    );
    for (const file of changed) {
      utimesSync(path.join(nativeDir, file), new Date(), new Date());
    }

    const result = await work();

    writeFileSync(noteFile, JSON.stringify(now));
    return result;
  } finally {
    unlock();
  }
}

/**
 * @param {string} file
 * @returns {Record<string, string>} empty when it is missing or torn
 */
function readNote(file) {
  try {
    return /** @type {Record<string, string>} */ (
      JSON.parse(readFileSync(file, "utf8"))
    );
  } catch {
    return {};
  }
}

/**
 * A lock file that its holder touches while it lives. One that stays untouched while we watch is
 * taken over; watching, and not comparing clocks, is right after a suspend and across containers.
 *
 * @param {import("./setup.mjs").Machine} machine
 * @param {string} file
 * @returns {Promise<() => void>} the release
 */
async function lock(machine, file) {
  let seen = touchedAtMs(file);
  let seenSinceMs = performance.now();
  if (seen !== null) {
    machine.log(`waiting for another build to finish (${file})`);
  }
  while (!tryCreate(file)) {
    const now = touchedAtMs(file);
    if (now !== seen) {
      seen = now;
      seenSinceMs = performance.now();
    }
    if (performance.now() - seenSinceMs > LOCK_STALE_MS) {
      rmSync(file, { force: true });
      continue;
    }
    await sleep(250);
  }

  const beat = setInterval(() => {
    if (touchedAtMs(file) !== null) {
      utimesSync(file, new Date(), new Date());
    }
  }, LOCK_BEAT_MS);
  const unlock = () => {
    clearInterval(beat);
    process.off("SIGINT", die).off("SIGTERM", die);
    rmSync(file, { force: true });
  };
  const die = () => {
    unlock();
    process.exit(130);
  };
  process.once("SIGINT", die).once("SIGTERM", die);
  return unlock;
}

/**
 * @param {string} file
 * @returns {boolean} false when it exists
 */
function tryCreate(file) {
  try {
    closeSync(openSync(file, "wx"));
    return true;
  } catch (thrown) {
    if (/** @type {NodeJS.ErrnoException} */ (thrown).code === "EEXIST") {
      return false;
    }
    throw thrown;
  }
}

/**
 * @param {string} file
 * @returns {number | null} null when it does not exist
 */
function touchedAtMs(file) {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? null;
}
