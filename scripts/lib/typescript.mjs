import {
  chmodSync,
  existsSync,
  mkdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";

import { hashFiles, readText, sha256 } from "./content.mjs";
import { run } from "./run.mjs";

/**
 * Compiles src/ to dist/ when either, the compiler's settings or the packages changed.
 *
 * @param {import("./setup.mjs").Machine} machine
 * @returns {Promise<void>} rejects with SetupError
 */
export async function buildTypeScript(machine) {
  const stampFile = path.join(machine.root, "build/typescript.stamp");
  const program = path.join(machine.root, "dist/main.js");
  const stamp = sourceStamp(machine.root);
  if (readText(stampFile) === stamp && existsSync(program)) {
    return;
  }

  machine.log("compiling src/ to dist/");
  // A file that was renamed away must not live on in dist/.
  rmSync(path.join(machine.root, "dist"), { recursive: true, force: true });
  const tsc = path.join(machine.root, "node_modules/typescript/bin/tsc");
  const command = [process.execPath, tsc, "-p", "tsconfig.build.json"];
  await run(machine, command, { what: "tsc" });
  chmodSync(program, 0o755);

  mkdirSync(path.dirname(stampFile), { recursive: true });
  writeFileSync(stampFile, stamp);
}

/**
 * @param {string} root
 * @returns {string}
 */
function sourceStamp(root) {
  const settings = [
    "tsconfig.json",
    "tsconfig.build.json",
    "package-lock.json",
  ];
  return sha256(
    JSON.stringify([
      hashFiles(path.join(root, "src")),
      settings.map((file) => readText(path.join(root, file))),
    ]),
  );
}
