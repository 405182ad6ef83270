import pLimit from "p-limit";

import type { Clock, Logger, Metrics, ModuleFile } from "../ports.js";
import {
  runCompiler,
  type CompileFailure,
  type CompilerJob,
  type CompilerOutcome,
} from "./compiler-process.js";
import type { ModuleKind } from "./native.js";

/** Modules up to this size have a lane of their own and never wait behind a large one. */
const SMALL_MODULE_BYTES = 2 * 1024 * 1024;
/** Checks take milliseconds and wait for no compile; each holds a module's bytes meanwhile. */
const MAX_CONCURRENT_CHECKS = 2;
const MAX_QUEUED = 256;
const MEBIBYTE = 1024 * 1024;
/** 77 MB take 1.5 GB of address space and 72 CPU seconds; a bomb gets what its size allows. */
const BASE_ADDRESS_SPACE_BYTES = 256 * MEBIBYTE;
const ADDRESS_SPACE_PER_BYTE = 20;
const BASE_CPU_SECONDS = 20;
const CPU_SECONDS_PER_MEBIBYTE = 3;
/** The load's own budget; no request waits for it. */
const MAX_WALL_MS = 600_000;
const BASE_WALL_MS = 60_000;
const WALL_MS_PER_MEBIBYTE = 7_000;
const PROGRESS_EVERY_MS = 5_000;

/** Checks and compiles modules in child processes; compiles in two lanes by size. */
export interface Compiler {
  /** Runs the structural pre-check. */
  check(module: ModuleFile): Promise<CompilerOutcome>;
  /** Writes the artifact to `artifactPath`, which must not exist. Resolves to `null` when done. */
  compile(
    module: ModuleFile,
    kind: ModuleKind,
    artifactPath: string,
  ): Promise<CompileFailure | null>;
  /** Kills what runs; whoever waits gets `unavailable`. */
  close(): void;
}

/** Options of {@link createCompiler}. */
export interface CompilerOptions {
  readonly stackLimitBytes: number;
  /** Ceiling of a run's memory: a module that starts with more is refused. */
  readonly memoryLimitBytes: number;
  /** Large modules compiled at once. */
  readonly maxConcurrentCompiles: number;
}

/** Makes the compiler; nothing is started before the first check. */
export function createCompiler(
  options: CompilerOptions,
  clock: Clock,
  logger: Logger,
  metrics: Pick<Metrics, "compileEnded">,
): Compiler {
  const checks = pLimit(MAX_CONCURRENT_CHECKS);
  const small = pLimit(1);
  const large = pLimit(options.maxConcurrentCompiles);
  const closing = new AbortController();

  return {
    async check(module) {
      const { memoryLimitBytes } = options;
      return await inLane(checks, () =>
        perform(module, { check: { memoryLimitBytes } }),
      );
    },
    async compile(module, kind, artifactPath) {
      const lane = module.sizeBytes <= SMALL_MODULE_BYTES ? small : large;
      const outcome = await inLane(lane, () =>
        compileLogged(module, kind, artifactPath),
      );
      return outcome.kind === "done" ? null : outcome;
    },
    close() {
      closing.abort();
    },
  };

  async function inLane(
    lane: ReturnType<typeof pLimit>,
    work: () => Promise<CompilerOutcome>,
  ): Promise<CompilerOutcome> {
    if (lane.pendingCount >= MAX_QUEUED) {
      return unavailable("too many modules wait to be compiled");
    }
    return await lane(async () =>
      closing.signal.aborted
        ? unavailable("the runtime is shutting down")
        : await work(),
    );
  }

  async function compileLogged(
    module: ModuleFile,
    kind: ModuleKind,
    artifactPath: string,
  ): Promise<CompilerOutcome> {
    const startedMs = clock.monotonicMs();
    const elapsedMs = () => clock.monotonicMs() - startedMs;
    const fieldsNow = () => ({
      digest: module.digest,
      sizeBytes: module.sizeBytes,
      kind,
      elapsedMs: Math.round(elapsedMs()),
    });
    const progress = setInterval(() => {
      logger.info(fieldsNow(), "still compiling");
    }, PROGRESS_EVERY_MS);
    try {
      const outcome = await perform(module, {
        compile: { kind, artifactPath },
      });
      if (outcome.kind === "done") {
        logger.info(fieldsNow(), "compiled");
      } else {
        logger.warn({ ...fieldsNow(), failure: outcome }, "compile failed");
      }
      return outcome;
    } finally {
      clearInterval(progress);
      metrics.compileEnded(elapsedMs() / 1000);
    }
  }

  function perform(
    module: ModuleFile,
    task: CompilerJob["task"],
  ): Promise<CompilerOutcome> {
    const mebibytes = Math.ceil(module.sizeBytes / MEBIBYTE);
    const job = {
      task,
      modulePath: module.filePath,
      digest: module.digest,
      sizeBytes: module.sizeBytes,
      stackLimitBytes: options.stackLimitBytes,
      cpuLimitSeconds: BASE_CPU_SECONDS + CPU_SECONDS_PER_MEBIBYTE * mebibytes,
      addressSpaceBytes:
        BASE_ADDRESS_SPACE_BYTES + ADDRESS_SPACE_PER_BYTE * module.sizeBytes,
    };
    const wallMs = BASE_WALL_MS + WALL_MS_PER_MEBIBYTE * mebibytes;
    return runCompiler(job, Math.min(MAX_WALL_MS, wallMs), closing.signal);
  }
}

function unavailable(text: string): CompileFailure {
  return { kind: "unavailable", text };
}
