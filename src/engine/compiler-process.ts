import { spawn, type ChildProcess } from "node:child_process";
import { availableParallelism } from "node:os";
import type { Readable } from "node:stream";

import { errorText, escaped } from "../errors.js";
import type { Digest } from "../ports.js";
import { compilerPath, type ModuleKind } from "./native.js";

const MEBIBYTE = 1024 * 1024;
const MAX_OUTPUT_BYTES = 64 * 1024;
const MAX_REASON_CHARS = 1_000;
/** The address-space limit must hold every thread's stack and heap: more threads need more of it. */
const MAX_THREADS = 4;
const HEAP_ARENAS = 2;

/** `Job` in `native/wasmtime-compile/src/main.rs`. Sizes in bytes, times in seconds. */
export interface CompilerJob {
  readonly task:
    | { readonly check: { readonly memoryLimitBytes: number } }
    | {
        readonly compile: {
          readonly kind: ModuleKind;
          /** Must not exist. */
          readonly artifactPath: string;
        };
      };
  readonly modulePath: string;
  readonly digest: Digest;
  readonly sizeBytes: number;
  readonly stackLimitBytes: number;
  readonly cpuLimitSeconds: number;
  readonly addressSpaceBytes: number;
}

/** Why the compiler did not do its job. */
export type CompileFailure =
  /** The compiler looked at the module and refused it. */
  | { readonly kind: "refused"; readonly text: string }
  /** It ran into its CPU, address-space or wall limit, or died of the module. */
  | { readonly kind: "exhausted"; readonly text: string }
  /** The file no longer holds the module. */
  | { readonly kind: "changed"; readonly text: string }
  /** It could not read the module. */
  | { readonly kind: "io"; readonly text: string }
  /** The artifact could not be written. */
  | { readonly kind: "unwritable"; readonly text: string }
  /** It could not be started, was ended by the runtime, or too many wait. */
  | { readonly kind: "unavailable"; readonly text: string };

/** What came of a job. */
export type CompilerOutcome =
  { readonly kind: "done"; readonly moduleKind: ModuleKind } | CompileFailure;

/**
 * Runs the compiler program once, for at most `wallMs`; `closing` kills it. Its environment holds
 * nothing of the server's. Never rejects.
 */
export async function runCompiler(
  job: CompilerJob,
  wallMs: number,
  closing: AbortSignal,
): Promise<CompilerOutcome> {
  let child: ChildProcess;
  let ended: Promise<Ending>;
  try {
    child = spawn(compilerPath, [JSON.stringify(job)], {
      env: {
        RAYON_NUM_THREADS: String(
          Math.min(MAX_THREADS, availableParallelism()),
        ),
        MALLOC_ARENA_MAX: String(HEAP_ARENAS),
      },
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
    if (overtime.signal.aborted) {
      return {
        kind: "exhausted",
        text: `it took longer than ${String(wallMs / 1000)} s`,
      };
    }
    return said(stdout()) ?? died(job, { code, signal }, stderr());
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
function said(output: string): CompilerOutcome | null {
  let parsed: unknown;
  try {
    parsed = JSON.parse(output);
  } catch {
    return null;
  }
  const { kind, code, message } = (parsed ?? {}) as Record<string, unknown>;
  if (kind === "core" || kind === "component") {
    return { kind: "done", moduleKind: kind };
  }
  if (typeof message !== "string") return null;
  const text = printable(message);
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

/** As the compiler escapes, who forgets it where it quotes a library. Quotes stay as they are. */
function printable(message: string): string {
  const head =
    message.length > MAX_REASON_CHARS
      ? `${message.slice(0, MAX_REASON_CHARS)}…`
      : message;
  return head.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (character) => {
    return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
  });
}

/** Exit code of a Rust program that panicked. */
const PANICKED = 101;
const CRASHES: readonly (string | null)[] = ["SIGSEGV", "SIGBUS", "SIGILL"];

/** It ended without a word: a limit, or a crash that the module caused. */
function died(
  job: CompilerJob,
  { code, signal }: Ending,
  stderr: string,
): CompileFailure {
  const lastWords = escaped(firstLine(stderr), 200);
  const how = [signal, lastWords].filter(Boolean).join(": ");
  if (
    code === PANICKED ||
    CRASHES.includes(signal) ||
    stderr.includes("overflowed its stack")
  ) {
    return { kind: "exhausted", text: `it crashed the compiler (${how})` };
  }
  const mebibytes = Math.round(job.addressSpaceBytes / MEBIBYTE);
  const limits = `${String(job.cpuLimitSeconds)} CPU seconds or ${String(mebibytes)} MiB`;
  return { kind: "exhausted", text: `it needs more than ${limits} (${how})` };
}

/** Without the thread's number and where the build machine keeps its sources. */
function firstLine(stderr: string): string {
  const [line = ""] = stderr.trim().split("\n");
  return line.replace(/ \(\d+\)/, "").replace(/ \/\S*\//, " ");
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
