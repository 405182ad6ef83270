import type {
  Clock,
  EnvVariable,
  Logger,
  Metrics,
  RequestScope,
  RunLimits,
  RunOutcome,
} from "../ports.js";
import { EngineError, type EngineErrorCode } from "./error.js";
import { logGuestLines } from "./guest-log.js";
import {
  nativeError,
  type NativeEngine,
  type NativeModule,
  type RunFailure,
} from "./native.js";
import type { NativeRuns, RunBounds, RunEnded } from "./native-runs.js";
import { startTimer } from "../request-scope.js";

/**
 * How late the sandbox may be before the caller is answered without it. Only a bulk memory
 * instruction holds it that long.
 */
const OVERDUE_MS = 15;

/** One call of a module. */
export interface RunRequest {
  /** RunFunctionRequest bytes; not modified. */
  readonly bytes: Uint8Array;
  readonly limits: RunLimits;
  /** All the guest sees of an environment. */
  readonly env: readonly EnvVariable[];
  /** Runs with equal keys share `limits.concurrency`. */
  readonly stepKey: string;
  /** Receives the guest's log lines and output. */
  readonly logger: Logger;
}

/** A run with the memory it may have in fact. */
export interface BoundedRunRequest extends RunRequest {
  /** What decided `limits.memoryBytes`. */
  readonly memoryBoundBy: "limits.memory" | "--max-total-run-memory";
}

/** What {@link run} works with. */
export interface RunParts {
  readonly native: NativeEngine;
  readonly runs: NativeRuns;
  readonly clock: Clock;
  readonly metrics: Metrics;
}

/**
 * Runs a module that has its slot and returns its RunFunctionResponse bytes. `onEnded` is called
 * once, when the sandbox is done with it: that may be after the caller has its answer.
 * @throws EngineError run-*, response-invalid, engine-fault
 */
export function run(
  parts: RunParts,
  module: NativeModule,
  description: string,
  request: BoundedRunRequest,
  scope: RequestScope,
  onEnded: () => void,
): Promise<Uint8Array> {
  const { native, runs, clock, metrics } = parts;
  const { limits, logger } = request;
  const startedAtMs = clock.monotonicMs();
  const bounds: RunBounds = {
    timeoutMs: limits.timeoutMs,
    deadlineInMs: Math.max(0, scope.deadlineAtMs - startedAtMs),
    memoryLimitBytes: limits.memoryBytes,
    env: request.env,
  };
  return new Promise((resolve, reject) => {
    let stopTimer = (): void => undefined;
    let stopListening = (): void => undefined;
    const fail = (failure: RunFailure) => {
      reject(runError(failure, description, request));
    };
    const ended: RunEnded = (response, report) => {
      stopTimer();
      stopListening();
      try {
        metrics.runEnded(
          outcomeOf(report?.failure),
          (clock.monotonicMs() - startedAtMs) / 1000,
        );
        if (report !== null) {
          if (report.memoryDenials > 0)
            metrics.memoryDenied("limit", report.memoryDenials);
          logGuestLines(report.lines, report.droppedLines, logger);
        }
      } finally {
        onEnded();
        if (report?.failure === undefined) resolve(response ?? EMPTY);
        else fail(report.failure);
      }
    };

    let id: number;
    try {
      id = runs.start(native, module, request.bytes, bounds, ended);
    } catch (thrown) {
      // The module was disposed of, or the sandbox is closed.
      onEnded();
      fail(failureOf("internal", nativeError(thrown).text));
      return;
    }
    const cancel = () => {
      native.cancel(id);
    };
    stopListening = scope.onCancel(cancel);
    if (scope.cancelled) cancel();

    const checkOverdue = () => {
      const overdueInMs = native.remainingMs(id) + OVERDUE_MS;
      if (overdueInMs > 0) {
        stopTimer = startTimer(Math.ceil(overdueInMs), checkOverdue);
        return;
      }
      stopListening();
      fail(
        failureOf(
          bounds.deadlineInMs <= bounds.timeoutMs ? "deadline" : "timeout",
          "one instruction holds the sandbox",
        ),
      );
    };
    const firstCheckInMs =
      Math.min(bounds.timeoutMs, bounds.deadlineInMs) + OVERDUE_MS;
    stopTimer = startTimer(Math.ceil(firstCheckInMs), checkOverdue);
  });
}

/** A guest may answer nothing. */
const EMPTY = new Uint8Array(0);

function outcomeOf(failure: RunFailure | undefined): RunOutcome {
  switch (failure?.kind) {
    case undefined:
      return "ok";
    case "timeout":
    case "deadline":
    case "cancelled":
      return "timeout";
    case "memory":
    case "trap":
    case "exit":
    case "guest":
    case "response":
    case "internal":
      return "error";
  }
}

function failureOf(kind: RunFailure["kind"], detail: string): RunFailure {
  return { kind, detail, backtrace: "" };
}

const CODES = {
  timeout: "run-timeout",
  deadline: "run-deadline",
  cancelled: "run-cancelled",
  memory: "run-memory",
  trap: "run-trap",
  exit: "run-trap",
  guest: "run-error",
  response: "response-invalid",
  internal: "engine-fault",
} as const satisfies Record<RunFailure["kind"], EngineErrorCode>;

function runError(
  failure: RunFailure,
  description: string,
  request: BoundedRunRequest,
): EngineError {
  const message = `module ${description} failed: ${explain(failure, request)}`;
  const detail =
    failure.backtrace === ""
      ? {}
      : { detail: `guest frames: ${failure.backtrace}` };
  return new EngineError(CODES[failure.kind], message, detail);
}

function explain(
  { kind, detail }: RunFailure,
  { limits, memoryBoundBy }: BoundedRunRequest,
): string {
  switch (kind) {
    case "timeout":
      return `it ran longer than limits.timeout allows: ${String(limits.timeoutMs)} ms of compute`;
    case "deadline":
      return "the request's deadline passed during the run: deadline exceeded";
    case "cancelled":
      return "the caller cancelled the request";
    case "memory":
      return `it ran out of memory, ${memoryBoundBy} is ${String(limits.memoryBytes)} bytes: ${detail}`;
    case "exit":
      return `it exited with status ${detail} instead of answering`;
    case "guest":
      return `run returned an error: ${detail}`;
    case "trap":
    case "response":
      return detail;
    case "internal":
      return "the sandbox failed";
  }
}
