import { createHash } from "node:crypto";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { fromBinary } from "@bufbuild/protobuf";
import { expect } from "vitest";

import { noMetrics } from "../../src/cli/silent.js";
import {
  createEngine,
  EngineError,
  type Engine,
  type EngineOptions,
  type ModuleLease,
} from "../../src/engine/index.js";
import {
  RunFunctionResponseSchema,
  type State,
} from "../../src/gen/run_function_pb.js";
import type {
  Clock,
  EnvVariable,
  Logger,
  FoundModule,
  Metrics,
  ModuleFile,
  RequestScope,
} from "../../src/ports.js";
import { scopeFromSignal } from "../../src/request-scope.js";
import { guest } from "./guests.js";
import {
  recordingLogger as createLogCollector,
  type LogLine,
} from "./recorded-log.js";

export { createLogCollector, type LogLine };

export const MiB = 1024 * 1024;

/** The real time. */
export const clock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
};

/** How a module is called; what is left out is generous. */
export interface CallOptions {
  /** RunFunctionRequest bytes. */
  readonly request?: Uint8Array;
  readonly timeoutMs?: number;
  readonly memoryBytes?: number;
  readonly concurrency?: number;
  readonly stepKey?: string;
  readonly env?: readonly EnvVariable[];
  /** From now. */
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
  readonly logger?: Logger;
}

/** A real engine with a cache and modules of its own, under one temporary directory. */
export interface TestEngine {
  readonly engine: Engine;
  readonly cacheDir: string;
  readonly moduleDir: string;
  /** What the engine itself logged. */
  readonly lines: readonly LogLine[];
  /** Writes a module to a file of its own. */
  write(module: Uint8Array): Promise<LocalModule>;
  /** Writes and loads a guest (by name) or bytes. */
  load(module: string | Uint8Array): Promise<ModuleLease>;
  run(lease: ModuleLease, options?: CallOptions): Promise<Uint8Array>;
  /** Loads, runs, releases. */
  call(module: string | Uint8Array, options?: CallOptions): Promise<Uint8Array>;
  /** How often the compiler made an artifact. */
  compiles(): number;
  /** Ends the engine and, unless another one needs it, removes its directory. */
  close(options?: { readonly keepFiles: boolean }): Promise<void>;
}

/** What {@link startEngine} takes; a `cacheDir` is not removed at the end. */
export type TestEngineOptions = Partial<EngineOptions> & {
  readonly metrics?: Metrics;
};

/** Starts the engine the program starts, with room for what tests do. */
export async function startEngine({
  metrics = noMetrics,
  ...options
}: TestEngineOptions = {}): Promise<TestEngine> {
  const dir = await mkdtemp(join(tmpdir(), "engine-test-"));
  const { logger, lines } = createLogCollector();
  const settings: EngineOptions = {
    cacheDir: join(dir, "cache"),
    artifactKey: null,
    trustCacheDir: false,
    engineWorkers: 2,
    memoryLimitBytes: 512 * MiB,
    stackLimitBytes: 512 * 1024,
    maxResponseBytes: 16 * MiB,
    maxConcurrentRuns: 0,
    maxTotalRunMemoryBytes: 0,
    keepsIdleModules: true,
    maxCachedModules: 0,
    maxConcurrentCompiles: 1,
    ...options,
  };
  const engine = createEngine(settings, clock, logger, metrics);
  let written = 0;

  const started: TestEngine = {
    engine,
    cacheDir: settings.cacheDir,
    moduleDir: dir,
    lines,
    async write(module) {
      const description = `Path module-${written++}.wasm`;
      return await writeModule(dir, description, module);
    },
    async load(module) {
      const bytes = typeof module === "string" ? await guest(module) : module;
      return await engine.load(await started.write(bytes), scope());
    },
    async run(lease, call = {}) {
      return await engine.run(
        lease,
        {
          bytes: call.request ?? new Uint8Array(),
          limits: {
            timeoutMs: call.timeoutMs ?? 10_000,
            memoryBytes: call.memoryBytes ?? 64 * MiB,
            concurrency: call.concurrency ?? null,
          },
          stepKey: call.stepKey ?? "step",
          env: call.env ?? [],
          logger: call.logger ?? logger,
        },
        scope(call.deadlineMs, call.signal),
      );
    },
    async call(module, call) {
      const lease = await started.load(module);
      try {
        return await started.run(lease, call);
      } finally {
        lease.release();
      }
    },
    compiles: () =>
      lines.filter(({ message }) => message === "compiled").length,
    async close({ keepFiles } = { keepFiles: false }) {
      await engine.close();
      if (!keepFiles) await rm(dir, { recursive: true, force: true });
    },
  };
  return started;
}

/** A module that lies where it was found. */
export type LocalModule = FoundModule & ModuleFile;

/** What the loader makes of a file that is here already. */
export function localModule(file: ModuleFile): LocalModule {
  return { ...file, locate: () => Promise.resolve(file) };
}

/** Writes a module below `dir` and says what the loader would say of it. */
export async function writeModule(
  dir: string,
  description: string,
  module: Uint8Array,
): Promise<LocalModule> {
  const filePath = join(dir, description.replace(/^Path /, ""));
  await writeFile(filePath, module);
  const hash = createHash("sha256").update(module).digest("hex");
  return localModule({
    digest: `sha256:${hash}`,
    filePath,
    sizeBytes: module.length,
    description,
  });
}

/** A caller that waits `deadlineMs` from now. */
export function scope(
  deadlineMs = Infinity,
  signal: AbortSignal = new AbortController().signal,
): RequestScope {
  return scopeFromSignal(clock.monotonicMs() + deadlineMs, signal);
}

/** The error a promise must reject with. */
export async function refusal(promise: Promise<unknown>): Promise<EngineError> {
  const outcome = await promise.then(
    () => "no error",
    (thrown: unknown) => thrown,
  );
  expect(outcome).toBeInstanceOf(EngineError);
  const error = outcome as EngineError;
  expect(error.message).toMatch(oneSentence);
  return error;
}

/** One line of printable text without a full stop. */
const oneSentence = /^[^\p{Cc}]*[^\p{Cc}.]$/u;

/** The promise's outcome, whichever, and how long it took. */
export async function timed<T>(
  promise: Promise<T>,
): Promise<{ readonly outcome: PromiseSettledResult<T>; readonly ms: number }> {
  const startedAtMs = clock.monotonicMs();
  const [outcome] = await Promise.allSettled([promise]);
  return { outcome, ms: clock.monotonicMs() - startedAtMs };
}

/** The messages of a response's results. */
export function messages(response: Uint8Array): string[] {
  const { results } = fromBinary(RunFunctionResponseSchema, response);
  return results.map(({ message }) => message);
}

/** A response's desired state. */
export function desired(response: Uint8Array): State | undefined {
  return fromBinary(RunFunctionResponseSchema, response).desired;
}

/**
 * Resident bytes of this process beside V8's heap, which comes and goes by tens of MiB: what the
 * addon and its guests hold.
 */
export function residentBytes(): number {
  const { rss, heapTotal } = process.memoryUsage();
  return rss - heapTotal;
}

/** The artifacts below a cache directory. */
export async function artifactPaths(cacheDir: string): Promise<string[]> {
  const entries = await readdir(join(cacheDir, "compiled"), {
    recursive: true,
    withFileTypes: true,
  });
  return entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}
