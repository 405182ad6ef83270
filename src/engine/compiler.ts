import { spawn, type ChildProcess } from "node:child_process";
import { cpus } from "node:os";
import type { Readable } from "node:stream";

import pLimit from "p-limit";

import { errorText, escaped } from "../errors.js";
import type { Clock, Digest, Logger, ModuleFile } from "../ports.js";
import { compilerPath, type ModuleKind } from "./native.js";

/** Modules up to this size have a lane of their own and never wait behind a large one. */
const SMALL_MODULE_BYTES = 2 * 1024 * 1024;
const MAX_QUEUED_COMPILES = 256;
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
const MAX_OUTPUT_BYTES = 64 * 1024;
const MAX_REASON_CHARS = 1_000;

/** Why a compile gave no artifact. */
export type CompileFailure =
  /** The compiler looked at the module and refused it. */
  | { readonly kind: "refused"; readonly text: string }
  /** It ran into its CPU, address-space or wall limit, or died of the module. */
  | { readonly kind: "exhausted"; readonly text: string }
  | { readonly kind: "changed"; readonly text: string }
  /** It could not read the module. */
  | { readonly kind: "io"; readonly text: string }
  /** The artifact could not be written. */
  | { readonly kind: "unwritable"; readonly text: string }
  /** It could not be started, was ended by {@link Compiler.close}, or too many wait. */
  | { readonly kind: "unavailable"; readonly text: string };

/** Compiles modules in child processes, in two lanes by size. */
export interface Compiler {
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
  /** Large modules compiled at once. */
  readonly maxConcurrentCompiles: number;
}

/** Makes the compiler; nothing is started before the first compile. */
export function createCompiler(
  options: CompilerOptions,
  clock: Clock,
  logger: Logger,
): Compiler {
  const small = pLimit(1);
  const large = pLimit(options.maxConcurrentCompiles);
  const closing = new AbortController();

  return {
    async compile(module, kind, artifactPath) {
      const lane = module.sizeBytes <= SMALL_MODULE_BYTES ? small : large;
      if (lane.pendingCount >= MAX_QUEUED_COMPILES) {
        return {
          kind: "unavailable",
          text: "too many modules wait to be compiled",
        };
      }
      return await lane(async () => {
        if (closing.signal.aborted) {
          return { kind: "unavailable", text: "the runtime is shutting down" };
        }
        return await compileLogged(module, kind, artifactPath);
      });
    },
    close() {
      closing.abort();
    },
  };

  async function compileLogged(
    module: ModuleFile,
    kind: ModuleKind,
    artifactPath: string,
  ): Promise<CompileFailure | null> {
    const startedMs = clock.monotonicMs();
    const elapsedMs = () => Math.round(clock.monotonicMs() - startedMs);
    const fields = { digest: module.digest, sizeBytes: module.sizeBytes, kind };
    const progress = setInterval(() => {
      logger.info({ ...fields, elapsedMs: elapsedMs() }, "still compiling");
    }, PROGRESS_EVERY_MS);
    try {
      const failure = await runCompiler(
        jobFor(module, kind, artifactPath, options.stackLimitBytes),
        closing.signal,
      );
      if (failure === null) {
        logger.info({ ...fields, elapsedMs: elapsedMs() }, "compiled");
      } else {
        logger.warn(
          { ...fields, elapsedMs: elapsedMs(), failure },
          "compile failed",
        );
      }
      return failure;
    } finally {
      clearInterval(progress);
    }
  }
}

/** `Job` in `native/wasmtime-compile/src/main.rs`. */
interface Job {
  readonly modulePath: string;
  readonly digest: Digest;
  readonly sizeBytes: number;
  readonly kind: ModuleKind;
  readonly artifactPath: string;
  readonly stackLimitBytes: number;
  readonly cpuLimitSeconds: number;
  readonly addressSpaceBytes: number;
}

function jobFor(
  module: ModuleFile,
  kind: ModuleKind,
  artifactPath: string,
  stackLimitBytes: number,
): Job {
  const mebibytes = Math.ceil(module.sizeBytes / MEBIBYTE);
  return {
    modulePath: module.filePath,
    digest: module.digest,
    sizeBytes: module.sizeBytes,
    kind,
    artifactPath,
    stackLimitBytes,
    cpuLimitSeconds: BASE_CPU_SECONDS + CPU_SECONDS_PER_MEBIBYTE * mebibytes,
    addressSpaceBytes:
      BASE_ADDRESS_SPACE_BYTES + ADDRESS_SPACE_PER_BYTE * module.sizeBytes,
  };
}

/** Runs the compiler once. Its environment is empty: it must not hold what the server holds. */
async function runCompiler(
  job: Job,
  closing: AbortSignal,
): Promise<CompileFailure | null> {
  const wallMs = Math.min(
    MAX_WALL_MS,
    BASE_WALL_MS + WALL_MS_PER_MEBIBYTE * Math.ceil(job.sizeBytes / MEBIBYTE),
  );
  let child: ChildProcess;
  let ended: Promise<Ending>;
  try {
    child = spawn(compilerPath, [JSON.stringify(job)], {
      env: { RAYON_NUM_THREADS: String(Math.max(1, cpus().length)) },
      stdio: ["ignore", "pipe", "pipe"],
    });
    ended = endOf(child);
  } catch (thrown) {
    return notStarted(thrown);
  }
  const stdout = collect(child.stdout);
  const stderr = collect(child.stderr);
  const overtime = new AbortController();
  const kill = () => child.kill("SIGKILL");
  const timer = setTimeout(() => {
    overtime.abort();
    kill();
  }, wallMs);
  closing.addEventListener("abort", kill, { once: true });
  try {
    const { code, signal } = await ended;
    if (closing.aborted)
      return { kind: "unavailable", text: "the runtime is shutting down" };
    if (code === 0) return null;
    if (overtime.signal.aborted) {
      return {
        kind: "exhausted",
        text: `it took longer than ${String(wallMs / 1000)} s`,
      };
    }
    return refusal(stdout()) ?? exhausted(job, signal, stderr());
  } catch (thrown) {
    return notStarted(thrown);
  } finally {
    clearTimeout(timer);
    closing.removeEventListener("abort", kill);
  }
}

interface Ending {
  readonly code: number | null;
  readonly signal: string | null;
}

function endOf(child: ChildProcess): Promise<Ending> {
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => {
      resolve({ code, signal });
    });
  });
}

function notStarted(thrown: unknown): CompileFailure {
  return {
    kind: "unavailable",
    text: `cannot start the compiler: ${errorText(thrown)}`,
  };
}

/** The line the compiler prints when it ends by itself; it may quote the module's names. */
function refusal(output: string): CompileFailure | null {
  let parsed: unknown;
  try {
    parsed = JSON.parse(output);
  } catch {
    return null;
  }
  const { code, message } = (parsed ?? {}) as {
    code?: unknown;
    message?: unknown;
  };
  if (typeof message !== "string") return null;
  const text = escaped(message, MAX_REASON_CHARS);
  switch (code) {
    case "invalid":
      return { kind: "refused", text };
    case "changed":
      return { kind: "changed", text };
    case "write":
      return { kind: "unwritable", text };
    default:
      return { kind: "io", text };
  }
}

/** It died: a limit, or a crash that the module caused. */
function exhausted(
  job: Job,
  signal: string | null,
  stderr: string,
): CompileFailure {
  const mebibytes = Math.round(job.addressSpaceBytes / MEBIBYTE);
  const limits = `${String(job.cpuLimitSeconds)} CPU seconds or ${String(mebibytes)} MiB`;
  const how = signal ?? escaped(stderr.split("\n")[0] ?? "", 200);
  return { kind: "exhausted", text: `it needs more than ${limits} (${how})` };
}

/** Keeps the first {@link MAX_OUTPUT_BYTES} of a stream; a child that could not start has none. */
function collect(stream: Readable | null | undefined): () => string {
  let text = "";
  stream?.setEncoding("utf8");
  stream?.on("data", (chunk: string) => {
    text += chunk.slice(0, MAX_OUTPUT_BYTES - text.length);
  });
  return () => text;
}
