import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";

import { hashFiles, readText, sha256 } from "./content.mjs";
import { run } from "./run.mjs";
import { SetupError } from "./setup-error.mjs";
import { cargoEnv, cargoTargetDir, withTargetDir } from "./target-dir.mjs";
import { checkToolchain } from "./toolchain.mjs";

/** File names in build/native/, which src/engine/native.ts knows too. */
const OUTPUTS = ["wasmtime-node.node", "wasmtime-compile"];
const KEPT_BUILDS = 4;

/**
 * Builds the native workspace into build/native/ when native/ changed. A finished build is kept in
 * the cargo target directory under the hash of its sources, where other clones find it.
 *
 * @param {import("./setup.mjs").Machine} machine
 * @returns {Promise<void>} rejects with SetupError
 */
export async function buildNative(machine) {
  const stamp = nativeStamp(machine);
  const dir = path.join(machine.root, "build/native");
  if (readText(path.join(dir, "stamp")) === stamp && isComplete(dir)) {
    return;
  }

  const cargoOutputs = cargoOutputNames(machine);
  const keptDir = path.join(cargoTargetDir(machine), "function-wasm/builds");
  const kept = path.join(keptDir, stamp);
  if (isComplete(kept)) {
    machine.log(
      "taking the native addon from an earlier build of the same sources",
    );
  } else {
    checkToolchain(machine);
    await withTargetDir(machine, async () => {
      if (isComplete(kept)) {
        return;
      }
      await cargoBuild(machine);
      if (nativeStamp(machine) !== stamp) {
        throw new SetupError(
          "native/ changed while it was compiled: run it again",
        );
      }
      copyOutputs(
        path.join(cargoTargetDir(machine), "release"),
        cargoOutputs,
        kept,
      );
    });
    sweep(keptDir);
  }

  copyOutputs(kept, OUTPUTS, dir);
  utimesSync(kept, new Date(), new Date());
  writeFileSync(path.join(dir, "stamp"), stamp);
}

/**
 * @param {import("./setup.mjs").Machine} machine
 * @returns {string}
 */
function nativeStamp(machine) {
  const { RUSTFLAGS = "" } = machine.env;
  const sources = hashFiles(path.join(machine.root, "native"));
  const parts = [machine.platform, machine.arch, RUSTFLAGS, sources];
  return sha256(JSON.stringify(parts));
}

/**
 * @param {import("./setup.mjs").Machine} machine
 * @returns {string[]} what cargo calls the OUTPUTS, in the same order
 */
function cargoOutputNames(machine) {
  switch (machine.platform) {
    case "linux":
      return ["libwasmtime_node.so", "wasmtime-compile"];
    case "darwin":
      return ["libwasmtime_node.dylib", "wasmtime-compile"];
    default:
      throw new SetupError(
        `the native addon builds on linux and darwin only, found ${machine.platform}`,
      );
  }
}

/**
 * One invocation for the whole workspace: with another set of packages cargo unifies features
 * differently and compiles the world again.
 *
 * @param {import("./setup.mjs").Machine} machine
 * @returns {Promise<void>}
 */
async function cargoBuild(machine) {
  machine.log(
    "compiling the native addon; the first time this takes about 7 minutes on 2 cores",
  );
  const crates = crateCount(machine);
  let compiled = 0;
  /** @param {string} line */
  const count = (line) => {
    const isCrate = /^\s*(Compiling|Fresh) /.test(line);
    compiled += isCrate ? 1 : 0;
    return !isCrate && !/^\s*Downloaded /.test(line);
  };
  await run(
    machine,
    [
      "cargo",
      "build",
      "--release",
      "--locked",
      "--workspace",
      "--manifest-path",
      path.join(machine.root, "native/Cargo.toml"),
    ],
    {
      what: "cargo build",
      env: cargoEnv(machine),
      onLine: count,
      progress: () =>
        `${String(compiled)} of up to ${String(crates)} crates begun`,
    },
  );
}

/**
 * @param {import("./setup.mjs").Machine} machine
 * @returns {number} crates in the lock file, some of them for other platforms
 */
function crateCount(machine) {
  const lock = readText(path.join(machine.root, "native/Cargo.lock")) ?? "";
  return lock.match(/^\[\[package\]\]$/gm)?.length ?? 0;
}

/**
 * Copies by rename, so that a process that has the old file mapped keeps it.
 *
 * @param {string} from
 * @param {string[]} names in `from`; in `to` they get the names in OUTPUTS
 * @param {string} to created when missing
 */
function copyOutputs(from, names, to) {
  mkdirSync(to, { recursive: true });
  for (const [index, output] of OUTPUTS.entries()) {
    const temporary = path.join(to, `${output}.${String(process.pid)}`);
    copyFileSync(path.join(from, names[index] ?? output), temporary);
    chmodSync(temporary, 0o755);
    renameSync(temporary, path.join(to, output));
  }
}

/**
 * @param {string} dir
 * @returns {boolean}
 */
function isComplete(dir) {
  return OUTPUTS.every((output) => existsSync(path.join(dir, output)));
}

/**
 * Drops all but the newest kept builds; each is tens of megabytes.
 *
 * @param {string} dir
 */
function sweep(dir) {
  const builds = readdirSync(dir)
    .map((name) => path.join(dir, name))
    .map((file) => ({ file, usedAtMs: statSync(file).mtimeMs }))
    .sort((a, b) => b.usedAtMs - a.usedAtMs);
  for (const { file } of builds.slice(KEPT_BUILDS)) {
    rmSync(file, { recursive: true, force: true });
  }
}
