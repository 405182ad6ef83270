#!/usr/bin/env node
import { readFileSync, unwatchFile, watchFile } from "node:fs";

import { Command, CommanderError } from "commander";
import { destination } from "pino";

import { addModuleCommand } from "./cli/module.js";
import { addRenderCommand } from "./cli/render.js";
import { addServeCommand, type ServeHost } from "./cli/serve.js";
import { refuseUnknownCommands } from "./cli/unknown-command.js";
import { addValidateCommand } from "./cli/validate.js";
import { createPolicyEngine } from "./admission/index.js";
import { ConfigError } from "./config.js";
import { createEngine } from "./engine/index.js";
import { errorText, WasmFunctionError } from "./errors.js";
import { createLogger } from "./function/index.js";
import type { Clock } from "./ports.js";

const clock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
};

const host: ServeHost = {
  env: process.env,
  clock,
  createEngine,
  createPolicyEngine: () =>
    createPolicyEngine({ monotonicMs: () => clock.monotonicMs() }),
  createLogger: (debug) =>
    createLogger({ debug, destination: destination(2) }, clock),
  onTermination(listener) {
    process.on("SIGTERM", listener);
    process.on("SIGINT", listener);
  },
  onReload(listener) {
    process.on("SIGHUP", listener);
  },
  // Looks at the file itself, so it sees the swapped links of a Kubernetes volume, and any file system.
  watchFile(file, listener) {
    watchFile(file, { interval: 1_000, persistent: false }, listener);
    return () => unwatchFile(file, listener);
  },
  exit: (code) => process.exit(code),
};

const program = new Command("function-wasm")
  .description("A Crossplane composition function that runs WebAssembly")
  .version(readVersion())
  .exitOverride();
const serveCommand = addServeCommand(program, host);
addRenderCommand(program, clock);
addValidateCommand(program, { ...host, stdin: () => process.stdin });
addModuleCommand(program, host);
refuseUnknownCommands(program);
program.addHelpText("after", () => `\n${serveCommand.helpInformation()}`);

// Output that nobody gets must not pass for success; a reader may have seen enough, as `head` has.
let isOutputLost = false;
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (isOutputLost) return;
  isOutputLost = true;
  if (error.code !== "EPIPE")
    process.stderr.write(`function-wasm: ${errorText(error)}\n`);
  process.on("exit", () => (process.exitCode = 2));
});

try {
  await program.parseAsync();
} catch (thrown) {
  // The engine may have started already; nothing else would end the process.
  process.exit(refuseToStart(thrown));
}

function refuseToStart(thrown: unknown): number {
  // Commander has already said what it has to say; help and version are no failures.
  if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 0 : 2;
  const text =
    thrown instanceof WasmFunctionError || !(thrown instanceof Error)
      ? errorText(thrown)
      : (thrown.stack ?? thrown.message);
  process.stderr.write(`function-wasm: ${text}\n`);
  return thrown instanceof ConfigError ? 2 : 1;
}

function readVersion(): string {
  const file = new URL("../package.json", import.meta.url);
  const manifest = JSON.parse(readFileSync(file, "utf8")) as {
    version: string;
  };
  return manifest.version;
}
