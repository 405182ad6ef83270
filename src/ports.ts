/**
 * Types that more than one folder needs, and the seams through which the outside world comes in.
 * A leaf: it imports nothing and holds no behaviour.
 */

/** Structured log sink. Messages are static; what varies goes into `fields`. */
export interface Logger {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
  /** A logger that adds `fields` to every line. */
  child(fields: LogFields): Logger;
}

export type LogFields = Readonly<Record<string, unknown>>;

/** Milliseconds, as from `Date.now()` (`nowMs`) and `performance.now()` (`monotonicMs`). */
export interface Clock {
  nowMs(): number;
  monotonicMs(): number;
}

/** `sha256:` and 64 lower-case hex digits. */
export type Digest = `sha256:${string}`;

/**
 * A module whose bytes are known by digest and lie in a regular file on this machine. The loader
 * makes it, the engine compiles it. The file may change under us, so whoever reads it hashes what
 * it read and compares.
 */
export interface ModuleFile {
  readonly digest: Digest;
  /** Absolute path of a regular file. */
  readonly filePath: string;
  readonly sizeBytes: number;
  /** What messages call it, for example `Path greeter.wasm`. Already escaped, one line. */
  readonly description: string;
}

/** When work must have ended, and whether its caller has gone. */
export interface RequestScope {
  /** On `Clock.monotonicMs`; `Infinity` when the caller set no deadline. */
  readonly deadlineAtMs: number;
  /** Made when first asked for, which costs more than all the rest here. */
  readonly signal: AbortSignal;
  readonly cancelled: boolean;
  /**
   * Calls `listener` once when the caller goes away; returns how to unsubscribe. A caller that has
   * gone already does not go again: look at `cancelled` first.
   */
  onCancel(listener: () => void): () => void;
}

/** What a step may use, after the operator's ceilings were applied. */
export interface RunLimits {
  /** Guest compute, host waits not counted. */
  readonly timeoutMs: number;
  /** All linear memories and tables of the run together. */
  readonly memoryBytes: number;
  /** Runs of this step at once; `null` = no bound of its own. */
  readonly concurrency: number | null;
}

/** Where a step's module comes from, as the Input or the XR names it. */
export type ModuleSource =
  | { readonly type: "Path"; readonly path: string }
  | { readonly type: "OCI"; readonly ref: string }
  | { readonly type: "HTTP"; readonly url: string; readonly digest: Digest };
