/**
 * The one place that loads the addon. Every value that crosses it is declared here, in the order
 * of the Rust struct (`native/wasmtime-node/src/`); `null` means none.
 */
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

import { errorText } from "../errors.js";
import type { Digest, EnvVariable } from "../ports.js";
import { EngineError } from "./error.js";

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
  maxResponseBytes: number;
}

/** A compiled artifact, which knows its kind, and the digest of what it was made from. */
export interface ArtifactRef {
  filePath: string;
  digest: Digest;
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

/** What there is to say of a run besides its response. */
export interface RunReport {
  failure?: RunFailure;
  lines: GuestLine[];
  droppedLines: number;
  computeMs: number;
  peakMemoryBytes: number;
  memoryDenials: number;
}

/**
 * Called once for every run, with its number. `response` is null when it failed; `report` is null
 * when it only answered. Must not throw: that would end the process.
 */
export type RunDone = (
  id: number,
  response: Buffer | null,
  report: RunReport | null,
) => void;

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
  seal(
    writtenPath: string,
    kind: ModuleKind,
    artifact: ArtifactRef,
  ): Promise<null>;
  load(artifact: ArtifactRef): Promise<NativeModule>;
  /**
   * Starts a run under a number that no other run under way has. `deadlineInMs` may be infinite.
   * Throws when the module was disposed of or the engine is closed.
   */
  run(
    id: number,
    module: NativeModule,
    request: Uint8Array,
    timeoutMs: number,
    deadlineInMs: number,
    memoryLimitBytes: number,
    env: readonly EnvVariable[],
  ): void;
  /** Ends a run at its next epoch; nothing happens when it has ended. */
  cancel(id: number): void;
  /** Milliseconds a run may still go on; negative once overdue, infinite once it has ended. */
  remainingMs(id: number): number;
  close(): void;
}

/** What the addon exports. */
export interface NativeAddon {
  NativeEngine: new (settings: EngineSettings, done: RunDone) => NativeEngine;
}

/** What a rejected promise of the addon means. */
export interface NativeError {
  code: "invalid" | "stale" | "io" | "internal";
  text: string;
}

const buildDir = new URL("../../build/native/", import.meta.url);

/** The compiler program, built beside the addon. */
export const compilerPath = fileURLToPath(
  new URL("wasmtime-compile", buildDir),
);

/**
 * Loads the addon. Once per process, and on the main thread only.
 * @throws EngineError engine-fault, which says how to build it
 */
export function loadAddon(): NativeAddon {
  const path = fileURLToPath(new URL("wasmtime-node.node", buildDir));
  try {
    return createRequire(import.meta.url)(path) as NativeAddon;
  } catch (thrown) {
    // Node's words go on with who asked for it.
    const reason = errorText(thrown).replace(/ Require stack:.*$/, "");
    throw new EngineError(
      "engine-fault",
      `cannot load the native addon, build it with \`npm run build\`: ${reason}`,
      { cause: thrown },
    );
  }
}

/** Reads `[code] text`; anything else is `internal`. */
export function nativeError(thrown: unknown): NativeError {
  const text = errorText(thrown);
  const match = /^\[(?<code>invalid|stale|io|internal)\] (?<text>.*)$/s.exec(
    text,
  );
  const groups = match?.groups;
  return groups === undefined
    ? { code: "internal", text }
    : {
        code: groups["code"] as NativeError["code"],
        text: groups["text"] ?? "",
      };
}
