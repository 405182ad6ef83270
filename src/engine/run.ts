import type { Clock, Logger, RequestScope, RunLimits } from "../ports.js";
import { EngineError, type EngineErrorCode } from "./error.js";
import { logGuestLines } from "./guest-log.js";
import {
  nativeError,
  type NativeAddon,
  type NativeDeadline,
  type NativeEngine,
  type NativeModule,
  type RunFailure,
  type RunReport,
} from "./native.js";
import { startTimer } from "./scope.js";

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
  /** Runs with equal keys share `limits.concurrency`. */
  readonly stepKey: string;
  /** Receives the guest's log lines and output. */
  readonly logger: Logger;
}

/** What {@link startRun} works with. */
export interface RunParts {
  readonly addon: NativeAddon;
  readonly native: NativeEngine;
  readonly clock: Clock;
  readonly maxResponseBytes: number;
}

/** A run under way. */
export interface StartedRun {
  /**
   * The guest's RunFunctionResponse bytes.
   * @throws EngineError run-*, response-invalid, engine-fault
   */
  readonly response: Promise<Uint8Array>;
  /** Resolves, never rejects, once the sandbox is done with it; may be after `response`. */
  readonly ended: Promise<void>;
  /** Ends it at its next epoch. */
  cancel(): void;
}

/** Starts a run that has its slot. */
export function startRun(
  parts: RunParts,
  module: NativeModule,
  description: string,
  request: RunRequest,
  scope: RequestScope,
): StartedRun {
  const deadlineInMs = scope.deadlineAtMs - parts.clock.monotonicMs();
  const deadline = new parts.addon.NativeDeadline(
    request.limits.timeoutMs,
    Number.isFinite(deadlineInMs) ? Math.max(0, deadlineInMs) : null,
  );
  const cancel = () => {
    deadline.cancel();
  };
  scope.signal.addEventListener("abort", cancel, { once: true });
  if (scope.signal.aborted) cancel();

  const overdue = watchOverdue(deadline);
  const report = runNative(
    parts.native,
    module,
    request.bytes,
    {
      memoryLimitBytes: request.limits.memoryBytes,
      maxResponseBytes: parts.maxResponseBytes,
    },
    deadline,
  );
  const ended = report
    .then((done) => {
      logGuestLines(done.lines, done.droppedLines, request.logger);
    })
    .catch(() => undefined);
  const fail = (failure: RunFailure) =>
    runError(failure, description, request.limits);
  const response = Promise.race([report, overdue.promise])
    .catch((thrown: unknown): RunFailure => {
      return {
        kind: "internal",
        detail: nativeError(thrown).text,
        backtrace: "",
      };
    })
    .then((first): Uint8Array => {
      if (first === "overdue") {
        throw fail({
          kind:
            deadlineInMs <= request.limits.timeoutMs ? "deadline" : "timeout",
          detail: "one instruction holds the sandbox",
          backtrace: "",
        });
      }
      if ("kind" in first) throw fail(first);
      return answerOf(first, fail);
    })
    .finally(() => {
      overdue.stop();
      scope.signal.removeEventListener("abort", cancel);
    });
  return { response, ended, cancel };
}

/** A disposed module or a closed engine makes the addon throw: here that is a rejection, too. */
async function runNative(
  native: NativeEngine,
  ...call: Parameters<NativeEngine["run"]>
): Promise<RunReport> {
  return await native.run(...call);
}

function answerOf(
  report: RunReport,
  fail: (failure: RunFailure) => EngineError,
): Uint8Array {
  if (report.failure !== undefined) throw fail(report.failure);
  return report.response ?? new Uint8Array(0);
}

/** Resolves to "overdue" once the run is well past its bounds, credited waits considered. */
function watchOverdue(deadline: NativeDeadline): {
  readonly promise: Promise<"overdue">;
  readonly stop: () => void;
} {
  let stopTimer = (): void => undefined;
  const promise = new Promise<"overdue">((resolve) => {
    const check = () => {
      const leftMs = deadline.remainingMs() + OVERDUE_MS;
      if (leftMs <= 0) resolve("overdue");
      else stopTimer = startTimer(leftMs + 1, check);
    };
    check();
  });
  return {
    promise,
    stop: () => {
      stopTimer();
    },
  };
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
  limits: RunLimits,
): EngineError {
  const message = `module ${description} failed: ${explain(failure, limits)}`;
  const detail =
    failure.backtrace === ""
      ? {}
      : { detail: `guest frames: ${failure.backtrace}` };
  return new EngineError(CODES[failure.kind], message, detail);
}

function explain({ kind, detail }: RunFailure, limits: RunLimits): string {
  switch (kind) {
    case "timeout":
      return `it ran longer than limits.timeout allows: ${String(limits.timeoutMs)} ms of compute`;
    case "deadline":
      return "the request's deadline passed during the run: deadline exceeded";
    case "cancelled":
      return "the caller cancelled the request";
    case "memory":
      return `it ran out of memory, limits.memory is ${String(limits.memoryBytes)} bytes: ${detail}`;
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
