// Builds an example module, serves it, runs a Composition against it and shows what came out.
// Plain Node without dependencies; `npm run demo` sets the clone up first.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { clearTimeout, setTimeout } from "node:timers";

const root = path.dirname(import.meta.dirname);
const program = path.join(root, "dist", "main.js");

/** From the quickest build to the one that needs nothing but Node. */
const EXAMPLES = [
  { folder: "c", language: "C" },
  { folder: "go-raw", language: "Go" },
  { folder: "typescript", language: "TypeScript" },
];
/** What a build script answers when a tool is missing. */
const EXIT_UNAVAILABLE = 69;
const START_TIMEOUT_MS = 30_000;
const HEARTBEAT_MS = 10_000;

const temporary = await mkdtemp(path.join(tmpdir(), "function-wasm-demo-"));
/** @type {ReturnType<typeof startServer> | undefined} */
let server;
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, () => {
    server?.kill("SIGKILL");
    rmSync(temporary, { recursive: true, force: true });
    process.exit(1);
  });
}
try {
  const example = await buildExample();
  const moduleDir = path.join(temporary, "modules");
  await mkdir(moduleDir);
  await copyFile(
    path.join(root, "examples", example.folder, "out", "greeter.wasm"),
    path.join(moduleDir, "greeter.wasm"),
  );

  say("serving it");
  server = startServer(moduleDir);
  const address = await listeningAddress(server);
  say(`listening on ${address}`);

  say("rendering examples/greeter against it (the first call compiles it)");
  console.log(await render(address));
  sayWhatNext(example);
} catch (thrown) {
  say(thrown instanceof Error ? thrown.message : String(thrown));
  process.exitCode = 1;
} finally {
  await stop(server);
  await rm(temporary, { recursive: true, force: true });
}

/** @returns {Promise<(typeof EXAMPLES)[number]>} the first example that can be built here */
async function buildExample() {
  for (const example of EXAMPLES) {
    say(`building the ${example.language} example`);
    const build = path.join(root, "examples", example.folder, "build");
    const { code, output } = await run("bash", [build]);
    if (code === 0) {
      say(output.trim().split("\n").at(-1) ?? "");
      return example;
    }
    say(
      code === EXIT_UNAVAILABLE
        ? `skipped: ${output.trim()}`
        : `the build failed:\n${output.trim()}`,
    );
  }
  throw new Error("no example could be built: see above for what is missing");
}

/**
 * @param {string} moduleDir
 * @returns {import("node:child_process").ChildProcessByStdio<null, null, import("node:stream").Readable>}
 */
function startServer(moduleDir) {
  const flags = {
    "--address": "127.0.0.1:0",
    "--metrics-address": "127.0.0.1:0",
    "--health-address": "127.0.0.1:0",
    "--module-dir": moduleDir,
    "--cache-dir": path.join(temporary, "cache"),
  };
  const args = [
    program,
    "serve",
    "--insecure",
    // Whatever DEBUG says: lines for people say nothing to parseLogLine.
    "--no-debug",
    ...Object.entries(flags).flat(),
  ];
  return spawn(process.execPath, args, { stdio: ["ignore", "ignore", "pipe"] });
}

/**
 * Reads the server's log until it says where it listens; what it logs later is read and dropped.
 *
 * @param {ReturnType<typeof startServer>} child
 * @returns {Promise<string>}
 */
function listeningAddress(child) {
  return new Promise((resolve, reject) => {
    /** @type {string[]} */
    const lines = [];
    const timer = setTimeout(
      () => reject(new Error("the server did not listen within 30 s")),
      START_TIMEOUT_MS,
    );
    createInterface({ input: child.stderr }).on("line", (line) => {
      lines.push(line);
      const entry = parseLogLine(line);
      if (entry.msg === "listening" && entry.address !== undefined) {
        clearTimeout(timer);
        resolve(entry.address);
      }
    });
    child.once("error", reject);
    child.once("close", (code) => {
      clearTimeout(timer);
      const said = lines.join("\n");
      reject(new Error(`the server ended with ${String(code)}:\n${said}`));
    });
  });
}

/**
 * @param {string} line
 * @returns {{ msg?: string, address?: string }} nothing for what is no log line
 */
function parseLogLine(line) {
  try {
    return /** @type {{ msg?: string, address?: string }} */ (JSON.parse(line));
  } catch {
    return {};
  }
}

/**
 * @param {string} address
 * @returns {Promise<string>} the YAML that render prints
 */
async function render(address) {
  const files = ["xr", "composition", "functions"].map((name) =>
    path.join(root, "examples", "greeter", `${name}.yaml`),
  );
  const flags = ["--target", address, "--timeout", "3m", "-r"];
  const args = [program, "render", ...files, ...flags];
  const { code, output } = await run(process.execPath, args);
  if (code !== 0) throw new Error(output.trim());
  return output;
}

/** @param {(typeof EXAMPLES)[number]} example */
function sayWhatNext({ folder, language }) {
  const source = { c: "greeter.c", "go-raw": "main.go" }[folder];
  say("that is what Crossplane would apply. Try next:");
  console.log(`  1. Change examples/${folder}/${source ?? "src/greeter.ts"} (${language}), or config.greeting in
     examples/greeter/composition.yaml, and run npm run demo again.
  2. Serve a module and render against it by hand:
       examples/${folder}/build
       node dist/main.js serve --insecure --address 127.0.0.1:9443 --module-dir examples/${folder}/out
       node dist/main.js render examples/greeter/{xr,composition,functions}.yaml
  3. Read docs/module-authors.md and write a module of your own.`);
}

/** @param {ReturnType<typeof startServer> | undefined} child */
async function stop(child) {
  if (child === undefined || child.exitCode !== null) return;
  const ended = once(child, "close");
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), START_TIMEOUT_MS);
  await ended;
  clearTimeout(timer);
}

/**
 * Runs a program to its end, saying now and then that it still runs.
 *
 * @param {string} command
 * @param {string[]} args
 * @returns {Promise<{ code: number | null, output: string }>} both its streams together
 */
async function run(command, args) {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (/** @type {string} */ chunk) => {
      output += chunk;
    });
  }
  const startedAtMs = performance.now();
  const heartbeat = setInterval(() => {
    const seconds = Math.round((performance.now() - startedAtMs) / 1000);
    say(`still running after ${seconds} s`);
  }, HEARTBEAT_MS);
  try {
    return await new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (code) => resolve({ code, output }));
    });
  } finally {
    clearInterval(heartbeat);
  }
}

/** @param {string} text */
function say(text) {
  console.log(`demo: ${text}`);
}
