import { Worker, type WorkerOptions } from "node:worker_threads";

import type { PolicyJob, WorkerMessage } from "./messages.js";

/** What is used of a worker thread. */
export interface PolicyWorker {
  postMessage(job: PolicyJob): void;
  on(event: "message", listener: (message: WorkerMessage) => void): unknown;
  on(event: "error", listener: (error: unknown) => void): unknown;
  on(event: "exit", listener: (code: number) => void): unknown;
  unref(): void;
  terminate(): Promise<unknown>;
}

/**
 * How the thread of `policy-worker.ts` is started. The stack is large enough that Cedar's own inside
 * WebAssembly overflows first, and so at the same text everywhere.
 */
export const workerOptions = {
  name: "policy",
  resourceLimits: { maxOldGenerationSizeMb: 256, stackSizeMb: 16 },
} satisfies WorkerOptions;

/** Starts the thread that Cedar lives in. */
export function startPolicyWorker(): PolicyWorker {
  const program = new URL("./policy-worker.js", import.meta.url);
  return new Worker(program, workerOptions);
}
