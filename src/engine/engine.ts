import { randomBytes } from "node:crypto";

import { errorText } from "../errors.js";
import type {
  Clock,
  Digest,
  FoundModule,
  Logger,
  Metrics,
  RequestScope,
} from "../ports.js";
import { openArtifactStore } from "./artifact-store.js";
import { createCompiler } from "./compiler.js";
import { EngineError } from "./error.js";
import { createModuleLoader } from "./module-loader.js";
import { createModuleStore, type StoredLease } from "./module-store.js";
import {
  loadAddon,
  type EngineSettings,
  type NativeAddon,
  type NativeEngine,
  type NativeModule,
  type RunDone,
} from "./native.js";
import { createNativeRuns } from "./native-runs.js";
import { run, type BoundedRunRequest, type RunRequest } from "./run.js";
import { createSlots } from "./slots.js";
import { createTurnEnd } from "./turn.js";

/** Runs at once where the operator set no bound; also the size of the pool. */
const DEFAULT_CONCURRENT_RUNS = 256;
const ARTIFACT_KEY_BYTES = 32;
/** Cancelled runs end within a tick; a bulk instruction may take longer. */
const CLOSE_WAIT_MS = 2_000;

/** What the operator set. Sizes in bytes, times in milliseconds. */
export interface EngineOptions {
  /** Holds `compiled/`; created with mode 0700 when missing. */
  readonly cacheDir: string;
  /** Key for the artifacts' HMAC; `null` = a random one for this process. */
  readonly artifactKey: Uint8Array | null;
  /** Trust artifacts of earlier processes without the key, when the directory is ours and 0700. */
  readonly trustCacheDir: boolean;
  /** Threads that run guests, at least 1. */
  readonly engineWorkers: number;
  /** Ceiling of `limits.memory`, and the size of a pooled memory. */
  readonly memoryLimitBytes: number;
  readonly stackLimitBytes: number;
  readonly maxResponseBytes: number;
  /** 0 = unbounded (the pool's size still holds). */
  readonly maxConcurrentRuns: number;
  /** 0 = unbounded. */
  readonly maxTotalRunMemoryBytes: number;
  /** Whether a compiled module stays in memory when nothing runs it. */
  readonly keepsIdleModules: boolean;
  /** Compiled modules kept in memory; 0 = unbounded. */
  readonly maxCachedModules: number;
  /** Large modules compiled at once, at least 1. Small ones have a lane of their own. */
  readonly maxConcurrentCompiles: number;
}

/** A compiled module held in memory until released. */
export interface ModuleLease {
  readonly digest: Digest;
  /** As in {@link FoundModule.description}. */
  readonly description: string;
  /** 1 = WASI preview 1 core module, 2 = component. */
  readonly abi: 1 | 2;
  /** Idempotent. */
  release(): void;
}

/** The sandbox. */
export interface Engine {
  /**
   * Loads a module: memory, then artifact on disk, then compile. One load per digest at a time; it
   * goes on when the caller's deadline passes.
   * @throws EngineError module-invalid, module-changed, compile-failed, still-compiling,
   *   load-failed, run-cancelled
   */
  load(module: FoundModule, scope: RequestScope): Promise<ModuleLease>;
  /**
   * Runs a module once in a fresh instance and returns its RunFunctionResponse bytes, which have
   * been checked to be one.
   * @throws EngineError slot-wait, run-*, response-invalid, engine-fault
   */
  run(
    lease: ModuleLease,
    request: RunRequest,
    scope: RequestScope,
  ): Promise<Uint8Array>;
  /** Where artifacts are written to, absolute. */
  readonly compiledDir: string;
  /** Cancels what runs, ends the compiler, frees every module. */
  close(): Promise<void>;
}

/**
 * Starts the sandbox.
 * @throws EngineError load-failed when the cache directory cannot be used, engine-fault when the
 *   addon cannot be loaded or has no threads or memory
 */
export function createEngine(
  options: EngineOptions,
  clock: Clock,
  logger: Logger,
  metrics: Metrics,
): Engine {
  const addon = loadAddon();
  const maxConcurrentRuns =
    options.maxConcurrentRuns || DEFAULT_CONCURRENT_RUNS;
  const runs = createNativeRuns((thrown) => {
    logger.error({ err: thrown }, "cannot settle a run");
  });
  const native = startNative(
    addon,
    {
      engineWorkers: options.engineWorkers,
      stackLimitBytes: options.stackLimitBytes,
      memoryLimitBytes: options.memoryLimitBytes,
      poolSlots: maxConcurrentRuns,
      artifactKey: options.artifactKey ?? randomBytes(ARTIFACT_KEY_BYTES),
      trustCacheDir: options.trustCacheDir,
      maxResponseBytes: options.maxResponseBytes,
    },
    runs.done,
  );
  if (!native.pooled)
    logger.warn({}, "cannot reserve the memory pool, every run is on-demand");
  const artifacts = openArtifactStore(
    options.cacheDir,
    native.compatibilityHash,
    options.trustCacheDir,
    clock,
    logger,
  );
  const store = createModuleStore(
    {
      keepsIdle: options.keepsIdleModules,
      maxModules: options.maxCachedModules,
    },
    clock,
  );
  const compiler = createCompiler(options, clock, logger, metrics);
  const loader = createModuleLoader({
    native,
    store,
    artifacts,
    compiler,
    clock,
    logger,
    metrics,
  });
  const slots = createSlots(
    {
      maxConcurrentRuns,
      maxTotalRunMemoryBytes: options.maxTotalRunMemoryBytes,
    },
    clock,
    metrics,
  );
  const parts = { native, runs, clock, metrics };
  const turnEnd = createTurnEnd();
  let closed = false;

  return {
    get compiledDir() {
      return artifacts.directory;
    },

    async load(module, scope) {
      const stored = await loader.load(module, scope);
      return new EngineLease(native, module, stored);
    },

    async run(lease, request, scope) {
      if (!(lease instanceof EngineLease) || lease.native !== native) {
        throw new EngineError(
          "engine-fault",
          "the module is not a lease of this engine",
        );
      }
      const bounded = boundedBy(options.maxTotalRunMemoryBytes, request);
      const { limits } = bounded;
      const release = await slots.acquire(
        {
          module: lease.digest,
          stepKey: request.stepKey,
          stepConcurrency: limits.concurrency,
          memoryBytes: limits.memoryBytes,
        },
        scope,
      );
      await turnEnd();
      if (closed) {
        release();
        throw new EngineError(
          "run-cancelled",
          `module ${lease.description}: the runtime is shutting down`,
        );
      }
      return await run(
        parts,
        lease.module,
        lease.description,
        bounded,
        scope,
        // The slot stays taken until the sandbox is done, even when the caller has its answer.
        release,
      );
    },

    async close() {
      closed = true;
      slots.close();
      compiler.close();
      await runs.cancelAll(native, CLOSE_WAIT_MS);
      store.close();
      native.close();
      artifacts.close();
    },
  };
}

/** A lease that knows its compiled module, which is nobody else's business. */
class EngineLease implements ModuleLease {
  readonly digest: Digest;
  readonly description: string;
  /** Whose module it is: no other sandbox can run it. */
  readonly native: NativeEngine;
  readonly #stored: StoredLease;

  constructor(native: NativeEngine, module: FoundModule, stored: StoredLease) {
    this.native = native;
    this.digest = module.digest;
    this.description = module.description;
    this.#stored = stored;
  }

  get abi(): 1 | 2 {
    return this.#stored.module.abi === 1 ? 1 : 2;
  }

  get module(): NativeModule {
    return this.#stored.module;
  }

  release(): void {
    this.#stored.release();
  }
}

/** No run alone may hold more than all runs together. */
function boundedBy(
  maxTotalRunMemoryBytes: number,
  request: RunRequest,
): BoundedRunRequest {
  const { limits } = request;
  if (
    maxTotalRunMemoryBytes === 0 ||
    limits.memoryBytes <= maxTotalRunMemoryBytes
  )
    return { ...request, memoryBoundBy: "limits.memory" };
  return {
    ...request,
    limits: { ...limits, memoryBytes: maxTotalRunMemoryBytes },
    memoryBoundBy: "--max-total-run-memory",
  };
}

function startNative(
  addon: NativeAddon,
  settings: EngineSettings,
  done: RunDone,
): NativeEngine {
  try {
    return new addon.NativeEngine(settings, done);
  } catch (thrown) {
    throw new EngineError("engine-fault", errorText(thrown), { cause: thrown });
  }
}
