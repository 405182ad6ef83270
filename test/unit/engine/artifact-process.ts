/** Another process that compiles a module and loads it; started by artifact-processes.test.ts. */
import { statSync } from "node:fs";
import { dirname, join } from "node:path";

import { noMetrics } from "../../../src/cli/silent.js";
import { openArtifactStore } from "../../../src/engine/artifact-store.js";
import { createCompiler, type Compiler } from "../../../src/engine/compiler.js";
import { createModuleLoader } from "../../../src/engine/module-loader.js";
import { createModuleStore } from "../../../src/engine/module-store.js";
import { loadAddon, type NativeEngine } from "../../../src/engine/native.js";
import type { Clock, Logger, ModuleFile } from "../../../src/ports.js";
import { scopeFromSignal } from "../../../src/request-scope.js";
import {
  limitFileSize,
  stopAtStep,
  stopHere,
} from "../loader/store/disk-steps.js";

const MIB = 1024 * 1024;

/** Where it stops for good, unless it is let go on. */
export type ArtifactStop =
  /** In front of making that many directories, counted from 0. */
  | { readonly kind: "directory"; readonly at: number }
  /** When the compiler has written no more than that, and has gone. */
  | { readonly kind: "half-compiled"; readonly sizeBytes: number }
  /** When the compiler has written all, and nothing was done to it. */
  | { readonly kind: "compiled" }
  /** When that many bytes of the trailer are written. */
  | { readonly kind: "half-sealed"; readonly trailerBytes: number }
  /** When the trailer is written and synced. */
  | { readonly kind: "sealed" }
  /** When the artifact has its name. */
  | { readonly kind: "renamed" };

export interface ArtifactJob {
  readonly cacheDir: string;
  /** 32 characters at least. */
  readonly key: string;
  readonly module: ModuleFile;
  /** `null` = nowhere. */
  readonly stop: ArtifactStop | null;
}

/** What it prints when it has loaded the module. */
export interface ArtifactAnswer {
  readonly abi: number;
  /** What it logged as a warning. */
  readonly warnings: readonly string[];
}

const clock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
};

async function perform(job: ArtifactJob): Promise<ArtifactAnswer> {
  const { cacheDir, key, module, stop } = job;
  const stopIf = createStop(stop);
  const warnings: string[] = [];
  const logger: Logger = {
    debug: () => undefined,
    info: () => undefined,
    warn: (_fields, message) => void warnings.push(message),
    error: () => undefined,
    child: () => logger,
  };
  const { NativeEngine: Native } = loadAddon();
  const native = new Native(
    {
      engineWorkers: 1,
      stackLimitBytes: 512 * 1024,
      memoryLimitBytes: 64 * MIB,
      poolSlots: 1,
      artifactKey: Buffer.from(key),
      trustCacheDir: false,
      maxResponseBytes: MIB,
    },
    () => undefined,
  );
  if (stop?.kind === "directory") stopAtStep(dirname(cacheDir), stop.at);
  const artifacts = openArtifactStore(
    cacheDir,
    native.compatibilityHash,
    false,
    clock,
    logger,
  );
  const compiler = createCompiler(
    {
      stackLimitBytes: 512 * 1024,
      memoryLimitBytes: 64 * MIB,
      maxConcurrentCompiles: 1,
    },
    clock,
    logger,
    noMetrics,
  );
  const loader = createModuleLoader({
    native: stoppingNative(native, stop, stopIf),
    compiler: stoppingCompiler(compiler, stop, stopIf),
    store: createModuleStore({ keepsIdle: true, maxModules: 0 }, clock),
    artifacts,
    clock,
    logger,
    metrics: noMetrics,
  });
  const found = { ...module, locate: () => Promise.resolve(module) };
  const scope = scopeFromSignal(Infinity, new AbortController().signal);
  try {
    const lease = await loader.load(found, scope);
    return { abi: lease.module.abi, warnings };
  } finally {
    artifacts.close();
    native.close();
  }
}

type StopIf = (...kinds: readonly ArtifactStop["kind"][]) => void;

/** Stops when that is where it should, and the next time goes on. */
function createStop(stop: ArtifactStop | null): StopIf {
  let hasStopped = false;
  return (...kinds) => {
    if (stop === null || hasStopped || !kinds.includes(stop.kind)) return;
    hasStopped = true;
    stopHere();
  };
}

/** The real one. A limit on files ends it as the machine would, in the middle of its write. */
function stoppingCompiler(
  compiler: Compiler,
  stop: ArtifactStop | null,
  stopIf: StopIf,
): Compiler {
  return {
    ...compiler,
    async compile(module, kind, artifactPath) {
      if (stop?.kind === "half-compiled") limitFileSize(stop.sizeBytes);
      const failure = await compiler.compile(module, kind, artifactPath);
      stopIf("half-compiled", "compiled");
      return failure;
    },
  };
}

/** The real one, which fails where it is to stop, and cannot clean up. */
function stoppingNative(
  native: NativeEngine,
  stop: ArtifactStop | null,
  stopIf: StopIf,
): NativeEngine {
  return {
    compatibilityHash: native.compatibilityHash,
    pooled: native.pooled,
    load: (artifact) => native.load(artifact),
    async seal(writtenPath, kind, artifact) {
      if (stop?.kind === "half-sealed")
        limitFileSize(statSync(writtenPath).size + stop.trailerBytes);
      const filePath =
        stop?.kind === "sealed"
          ? join(dirname(writtenPath), "missing", "artifact")
          : artifact.filePath;
      try {
        return await native.seal(writtenPath, kind, { ...artifact, filePath });
      } finally {
        stopIf("half-sealed", "sealed", "renamed");
      }
    },
    run: () => undefined,
    cancel: () => undefined,
    remainingMs: () => Infinity,
    close: () => undefined,
  };
}

const job = JSON.parse(String(process.argv[2])) as ArtifactJob;
process.stdout.write(JSON.stringify(await perform(job)));
