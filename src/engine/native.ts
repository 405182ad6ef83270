/**
 * The one place that loads the addon. Every value that crosses it is declared here, in the order
 * of the Rust struct (`native/wasmtime-node/src/`); `null` means none.
 */
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

import { errorText } from "../errors.js";
import type { Digest } from "../ports.js";

/** The binary's layer: `core` is ABI v1, `component` is ABI v2. */
export type ModuleKind = "core" | "component";

/** Settings of the engine. Sizes in bytes. */
export interface EngineSettings {
  engineWorkers: number;
  stackLimitBytes: number;
  memoryLimitBytes: number;
  poolSlots: number;
  artifactKey: Uint8Array;
  trustCacheDir: boolean;
}

/** A module file whose digest is known. */
export interface ModuleRef {
  filePath: string;
  digest: Digest;
  sizeBytes: number;
}

/** A compiled artifact, which knows its kind, and the digest of what it was made from. */
export interface ArtifactRef {
  filePath: string;
  digest: Digest;
}

/** The bounds of one run that are not in its deadline. Sizes in bytes. */
export interface RunSettings {
  memoryLimitBytes: number;
  maxResponseBytes: number;
}

/** How a run failed; `FailureKind` in `native/engine/src/failure.rs`. */
export type RunFailureKind =
  | "timeout"
  | "deadline"
  | "cancelled"
  | "memory"
  | "trap"
  | "exit"
  | "guest"
  | "response"
  | "internal";

/** A failed run; all texts are printable and on one line. */
export interface RunFailure {
  kind: RunFailureKind;
  detail: string;
  /** The guest's frames, innermost first; "" when there are none. */
  backtrace: string;
}

/** A line the guest logged or wrote; printable. */
export interface GuestLine {
  source: "debug" | "info" | "warn" | "error" | "stdout" | "stderr";
  message: string;
  pairs: [string, string][];
}

/** What came of a run; either `response` or `failure` is there. */
export interface RunReport {
  response?: Buffer;
  failure?: RunFailure;
  lines: GuestLine[];
  droppedLines: number;
  computeMs: number;
  peakMemoryBytes: number;
  memoryDenials: number;
}

/** The bounds of one run, in the hands of its caller. */
export interface NativeDeadline {
  cancel(): void;
  /** Milliseconds the run may still go on; negative once overdue, infinite once it has ended. */
  remainingMs(): number;
}

/** A compiled module in memory. */
export interface NativeModule {
  readonly abi: number;
  /** Whether runs take their memory from the pool. */
  readonly pooled: boolean;
  /** Frees it once the last run has ended. Idempotent. */
  dispose(): void;
}

/** The engine. Promises reject with errors that {@link nativeError} reads. */
export interface NativeEngine {
  readonly compatibilityHash: string;
  readonly pooled: boolean;
  precheck(module: ModuleRef): Promise<ModuleKind>;
  seal(
    writtenPath: string,
    kind: ModuleKind,
    artifact: ArtifactRef,
  ): Promise<null>;
  load(artifact: ArtifactRef): Promise<NativeModule>;
  run(
    module: NativeModule,
    request: Uint8Array,
    settings: RunSettings,
    deadline: NativeDeadline,
  ): Promise<RunReport>;
  close(): void;
}

/** What the addon exports. */
export interface NativeAddon {
  NativeEngine: new (settings: EngineSettings) => NativeEngine;
  /** `null` = the caller has no deadline. */
  NativeDeadline: new (
    timeoutMs: number,
    deadlineInMs: number | null,
  ) => NativeDeadline;
}

/** What a rejected promise of the addon means. */
export interface NativeError {
  code: "invalid" | "changed" | "stale" | "io" | "internal";
  text: string;
}

const buildDir = new URL("../../build/native/", import.meta.url);

/** The compiler program, built beside the addon. */
export const compilerPath = fileURLToPath(
  new URL("wasmtime-compile", buildDir),
);

/**
 * Loads the addon. Once per process, and on the main thread only.
 * @throws Error that says how to build it
 */
export function loadAddon(): NativeAddon {
  const path = fileURLToPath(new URL("wasmtime-node.node", buildDir));
  try {
    return createRequire(import.meta.url)(path) as NativeAddon;
  } catch (thrown) {
    throw new Error(
      `cannot load the native addon, build it with \`npm run build\`: ${errorText(thrown)}`,
      { cause: thrown },
    );
  }
}

/** Reads `[code] text`; anything else is `internal`. */
export function nativeError(thrown: unknown): NativeError {
  const text = errorText(thrown);
  const match =
    /^\[(?<code>invalid|changed|stale|io|internal)\] (?<text>.*)$/s.exec(text);
  const groups = match?.groups;
  return groups === undefined
    ? { code: "internal", text }
    : {
        code: groups["code"] as NativeError["code"],
        text: groups["text"] ?? "",
      };
}
