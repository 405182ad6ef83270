import { errorText } from "../../errors.js";
import { AdmissionError } from "../error.js";
import type { JobReply, PolicyJob, WorkerMessage } from "./messages.js";
import type { PolicyWorker } from "./start-worker.js";

/** How long the worker may take, and how large it may grow. */
export interface JobLimits {
  /** From starting a worker until Cedar is loaded. */
  readonly startMs: number;
  readonly compileMs: number;
  readonly decideMs: number;
  /** Cedar's memory; a worker that exceeds it is replaced before the next job. */
  readonly workerMemoryBytes: number;
  /** Jobs that wait. */
  readonly maxWaiting: number;
}

/** What came of a job. */
export type JobOutcome =
  | Exclude<JobReply, { kind: "trapped" }>
  /** The job broke the worker, or took too long. */
  | {
      readonly kind: "stopped";
      readonly reason: string;
      readonly timedOut: boolean;
    };

/** Jobs, done one at a time in the order in which they came. */
export interface JobQueue {
  /**
   * Does a job. One that breaks the worker harms no other: the next gets a new worker.
   * @throws AdmissionError policy-unavailable when no worker can be started, too many jobs wait, or
   *   the queue is closed
   */
  run(job: PolicyJob): Promise<JobOutcome>;
  /** Ends the worker and what waits for it. Idempotent. */
  close(): Promise<void>;
}

interface PendingJob {
  readonly job: PolicyJob;
  readonly resolve: (outcome: JobOutcome) => void;
  readonly reject: (error: AdmissionError) => void;
}

/** A queue without a worker; the first job starts one. */
export function createJobQueue(
  startWorker: () => PolicyWorker,
  limits: JobLimits,
): JobQueue {
  const waiting: PendingJob[] = [];
  let current: PendingJob | undefined;
  let worker: PolicyWorker | undefined;
  let isReady = false;
  let isClosed = false;
  let timer: NodeJS.Timeout | undefined;

  /** Does the next job, when there is one and none is being done. */
  function advance(): void {
    current ??= waiting.shift();
    if (current === undefined) return;
    // A worker without a job is ready.
    if (worker === undefined) start();
    else give(worker, current.job);
  }

  function start(): void {
    try {
      worker = startWorker();
    } catch (thrown) {
      fail(unavailable(`it cannot be started: ${errorText(thrown)}`, thrown));
      return;
    }
    listenTo(worker);
    // Whoever waits for a job keeps the process alive, by the timer; an idle worker does not.
    worker.unref();
    limitTime(limits.startMs);
  }

  function listenTo(started: PolicyWorker): void {
    // What a worker says that was given up is not heard.
    const whileInUse = <T>(listener: (value: T) => void) => {
      return (value: T) => {
        if (worker === started) listener(value);
      };
    };
    started.on("message", whileInUse(hear));
    started.on(
      "error",
      whileInUse((thrown) => {
        giveUp(errorText(thrown));
      }),
    );
    started.on(
      "exit",
      whileInUse((code) => {
        giveUp(`its thread ended with code ${code}`);
      }),
    );
  }

  function give(to: PolicyWorker, job: PolicyJob): void {
    limitTime(job.kind === "compile" ? limits.compileMs : limits.decideMs);
    try {
      to.postMessage(job);
    } catch (thrown) {
      giveUp(errorText(thrown));
    }
  }

  function hear(message: WorkerMessage): void {
    if (message.kind === "ready") {
      isReady = true;
      clearTimeout(timer);
      advance();
      return;
    }
    const { reply, memoryBytes } = message;
    if (reply.kind === "trapped") {
      giveUp(reply.reason);
      return;
    }
    if (memoryBytes > limits.workerMemoryBytes) void discard();
    settle(reply);
  }

  function limitTime(limitMs: number): void {
    clearTimeout(timer);
    timer = setTimeout(() => {
      giveUp(`it takes longer than ${limitMs / 1000} s`, true);
    }, limitMs);
  }

  /** Parts with the worker, and with the job it has; one that is not ready has none yet. */
  function giveUp(reason: string, timedOut = false): void {
    const wasReady = isReady;
    void discard();
    if (wasReady) settle({ kind: "stopped", reason, timedOut });
    else fail(unavailable(`it cannot be started: ${reason}`));
  }

  function settle(outcome: JobOutcome): void {
    take()?.resolve(outcome);
    advance();
  }

  function fail(error: AdmissionError): void {
    take()?.reject(error);
    advance();
  }

  function take(): PendingJob | undefined {
    clearTimeout(timer);
    const taken = current;
    current = undefined;
    return taken;
  }

  async function discard(): Promise<void> {
    const ended = worker;
    worker = undefined;
    isReady = false;
    await ended?.terminate();
  }

  return {
    run(job) {
      if (isClosed) return Promise.reject(stopped());
      if (waiting.length >= limits.maxWaiting)
        return Promise.reject(unavailable("too much waits for it"));
      return new Promise((resolve, reject) => {
        waiting.push({ job, resolve, reject });
        if (current === undefined) advance();
      });
    },
    async close() {
      isClosed = true;
      take()?.reject(stopped());
      for (const { reject } of waiting.splice(0)) reject(stopped());
      await discard();
    },
  };
}

function stopped(): AdmissionError {
  return unavailable("the runtime is shutting down");
}

function unavailable(reason: string, cause?: unknown): AdmissionError {
  return new AdmissionError(
    "policy-unavailable",
    `the policy engine is not available: ${reason}`,
    { cause },
  );
}
