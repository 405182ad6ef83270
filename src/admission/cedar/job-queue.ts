import { errorText } from "../../errors.js";
import type { AdmissionError } from "../error.js";
import type { JobReply, PolicyJob, WorkerMessage } from "./messages.js";
import type { PolicyWorker } from "./start-worker.js";
import { unavailable } from "./unavailable.js";

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

/** A job that waits or is being done. */
export interface QueuedJob {
  /**
   * @throws AdmissionError policy-unavailable when no worker can be started, too many jobs wait, or
   *   the queue is closed
   */
  readonly outcome: Promise<JobOutcome>;
  /** Takes back a job that still waits: it has no outcome. Returns false when it waits no more. */
  readonly drop: () => boolean;
}

/** Jobs, done one at a time. */
export interface JobQueue {
  /**
   * Does a job. One that breaks the worker harms no other: the next gets a new worker. A decision's
   * text is sent only to a worker that has it no more.
   * @param rank lower ones go first, equal ones in the order in which they came; when too many wait,
   *   the last in that order is refused
   */
  run(job: PolicyJob, rank: number): QueuedJob;
  /** Ends the worker and what waits for it. Idempotent. */
  close(): Promise<void>;
}

interface PendingJob {
  readonly job: PolicyJob;
  readonly rank: number;
  /** The worker asked for the text. */
  needsText: boolean;
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
    else give(worker, current);
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

  function give(to: PolicyWorker, { job, needsText }: PendingJob): void {
    const isDecision = job.kind === "decide";
    limitTime(isDecision ? limits.decideMs : limits.compileMs);
    try {
      to.postMessage(isDecision && !needsText ? { ...job, text: null } : job);
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
    if (reply.kind !== "unknown" || current === undefined || current.needsText)
      settle(reply);
    else {
      current.needsText = true;
      advance();
    }
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

  function add(pending: PendingJob): void {
    const before = waiting.findLastIndex(({ rank }) => rank <= pending.rank);
    waiting.splice(before + 1, 0, pending);
    if (current === undefined) advance();
    if (waiting.length > limits.maxWaiting)
      waiting.pop()?.reject(unavailable("too much waits for it"));
  }

  function remove(pending: PendingJob): boolean {
    const at = waiting.indexOf(pending);
    if (at < 0) return false;
    waiting.splice(at, 1);
    return true;
  }

  return {
    run(job, rank) {
      if (isClosed)
        return { outcome: Promise.reject(stopped()), drop: () => false };
      let drop = () => false;
      const outcome = new Promise<JobOutcome>((resolve, reject) => {
        const pending = { job, rank, needsText: false, resolve, reject };
        add(pending);
        drop = () => remove(pending);
      });
      return { outcome, drop };
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
