import { spawnSync } from "node:child_process";

import { SetupError } from "./setup-error.mjs";

const RUST = { major: 1, minor: 95 };
const GET_RUST = "install it from https://rustup.rs";

/**
 * Checks that Rust code can be compiled here.
 *
 * @param {import("./setup.mjs").Machine} machine
 * @throws {SetupError} with one line for each thing that is missing
 */
export function checkToolchain(machine) {
  const complaints = [
    checkRust(machine, "cargo"),
    checkRust(machine, "rustc"),
    checkLinker(machine),
  ].filter((complaint) => complaint !== null);
  if (complaints.length > 0) {
    throw new SetupError(complaints.join("\n"));
  }
}

/**
 * @param {import("./setup.mjs").Machine} machine
 * @param {string} tool
 * @returns {string | null}
 */
function checkRust(machine, tool) {
  const wanted = `${String(RUST.major)}.${String(RUST.minor)}`;
  const text = versionText(machine, tool);
  if (text === null) {
    return `${tool} is missing: Rust ${wanted} or newer is needed, ${GET_RUST}`;
  }
  const found = /(?<major>\d+)\.(?<minor>\d+)\.\d+/.exec(text);
  const major = Number(found?.groups?.["major"]);
  const minor = Number(found?.groups?.["minor"]);
  if (major > RUST.major || (major === RUST.major && minor >= RUST.minor)) {
    return null;
  }
  const version = found?.[0] ?? text;
  return `${tool} is too old: expected ${wanted} or newer, found ${version}; update it with rustup update, or ${GET_RUST}`;
}

/**
 * @param {import("./setup.mjs").Machine} machine
 * @returns {string | null}
 */
function checkLinker(machine) {
  if (versionText(machine, "cc") !== null) {
    return null;
  }
  const how =
    machine.platform === "darwin"
      ? "xcode-select --install"
      : "apt-get install gcc libc6-dev, or your distribution's equivalent";
  return `a C linker is missing: cc is not on the PATH, get it with ${how}`;
}

/**
 * @param {import("./setup.mjs").Machine} machine
 * @param {string} tool
 * @returns {string | null} null when it cannot be run
 */
function versionText(machine, tool) {
  const result = spawnSync(tool, ["--version"], {
    env: machine.env,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  return result.status === 0 ? result.stdout.trim() : null;
}
