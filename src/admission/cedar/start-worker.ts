import { setFlagsFromString } from "node:v8";
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

/** Starts the thread that Cedar lives in. */
export function startPolicyWorker(): PolicyWorker {
  return startPolicyThread(new URL("./policy-worker.js", import.meta.url));
}

/**
 * Starts a program that loads Cedar. The stack is large enough that Cedar's own inside WebAssembly
 * overflows first, and so at the same text everywhere.
 */
export function startPolicyThread(
  program: string | URL,
  options: WorkerOptions = {},
): PolicyWorker {
  const flag = wasmCallFlag(process.versions.v8);
  if (flag !== null) setFlagsFromString(flag);
  return new Worker(program, {
    name: "policy",
    resourceLimits: { maxOldGenerationSizeMb: 256, stackSizeMb: 16 },
    ...options,
  });
}

/** Later ones may not know the flag, and would say so on stderr; none after 11 was seen to need it. */
const lastV8ThatKnowsTheFlag = 14;

/**
 * The flag that keeps V8 from building the call into WebAssembly into the code of its caller. When V8
 * 11 (Node 20) has to give such code up while Cedar runs, it cannot, and ends the whole process: a few
 * thousand different decisions get there. V8 reads the flag whenever it optimises code, so it is in
 * time before a thread's first job; null where it must not be set.
 */
export function wasmCallFlag(v8Version: string): string | null {
  return Number.parseInt(v8Version) <= lastV8ThatKnowsTheFlag
    ? "--no-turbo-inline-js-wasm-calls"
    : null;
}
