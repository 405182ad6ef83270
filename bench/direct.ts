/**
 * Runs a module through the engine alone, without server, gRPC or Input: what a served run is
 * compared with. Reads one number of runs per line of stdin; answers each with one line of JSON.
 */
import { createHash, randomBytes } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { createInterface } from "node:readline";

import { noMetrics } from "../src/cli/silent.js";
import { createEngine } from "../src/engine/index.js";
import type { Logger, ModuleFile } from "../src/ports.js";
import { createRequestScope } from "../src/request-scope.js";
import type { DirectOptions } from "./direct-process.js";

const MB = 1024 * 1024;
const options = JSON.parse(process.argv[2] ?? "") as DirectOptions;

const quiet: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: (fields, message) => {
    console.error(message, fields);
  },
  child: () => quiet,
};
const clock = { nowMs: () => Date.now(), monotonicMs: () => performance.now() };
const unhurried = createRequestScope({ deadlineAtMs: Infinity });

const bytes = await readFile(options.modulePath);
const file: ModuleFile = {
  digest: `sha256:${createHash("sha256").update(bytes).digest("hex")}`,
  filePath: options.modulePath,
  sizeBytes: (await stat(options.modulePath)).size,
  description: "bench",
};
const module = { ...file, locate: () => Promise.resolve(file) };
const request = await readFile(options.requestFile);

const engine = createEngine(
  {
    cacheDir: options.cacheDir,
    artifactKey:
      options.artifactKeyFile === null
        ? randomBytes(32)
        : await readFile(options.artifactKeyFile),
    trustCacheDir: options.artifactKeyFile === null,
    engineWorkers: Math.max(1, availableParallelism() - 1),
    memoryLimitBytes: 512 * MB,
    stackLimitBytes: 512 * 1024,
    maxResponseBytes: 16 * MB,
    maxConcurrentRuns: 0,
    maxTotalRunMemoryBytes: 0,
    keepsIdleModules: true,
    maxCachedModules: 0,
    maxConcurrentCompiles: 1,
  },
  clock,
  quiet,
  noMetrics,
);

const startedMs = performance.now();
const lease = await engine.load(module, unhurried);
console.log(JSON.stringify({ loadUs: elapsedUs(startedMs) }));

for await (const line of createInterface({ input: process.stdin })) {
  const samplesUs: number[] = [];
  for (let run = 0; run < Number(line); run++) samplesUs.push(await runOnce());
  console.log(JSON.stringify({ samplesUs }));
}
lease.release();
await engine.close();

async function runOnce(): Promise<number> {
  const startedMs = performance.now();
  const limits = {
    timeoutMs: 10_000,
    memoryBytes: 512 * MB,
    concurrency: null,
  };
  await engine.run(
    lease,
    { bytes: request, limits, env: [], stepKey: "bench", logger: quiet },
    unhurried,
  );
  return elapsedUs(startedMs);
}

function elapsedUs(sinceMs: number): number {
  return Math.round((performance.now() - sinceMs) * 1000);
}
