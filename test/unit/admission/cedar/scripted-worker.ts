import { EventEmitter } from "node:events";

import type {
  JobReply,
  PolicyJob,
  WorkerMessage,
} from "../../../../src/admission/cedar/messages.js";
import type { PolicyWorker } from "../../../../src/admission/cedar/start-worker.js";

/** A worker that does and says what a test has it do. */
export interface ScriptedWorker {
  /** What it was given. */
  readonly jobs: readonly PolicyJob[];
  readonly terminated: boolean;
  readonly unreferenced: boolean;
  ready(): void;
  reply(reply: JobReply, memoryBytes?: number): void;
  throw(error: Error): void;
  exit(code: number): void;
}

/** Makes scripted workers and lists them in the order in which they were started. */
export function createScriptedWorkers() {
  const workers: ScriptedWorker[] = [];
  const startWorker = (): PolicyWorker => {
    const events = new EventEmitter();
    const say = (message: WorkerMessage) => events.emit("message", message);
    const jobs: PolicyJob[] = [];
    const state = { terminated: false, unreferenced: false };
    workers.push({
      jobs,
      get terminated() {
        return state.terminated;
      },
      get unreferenced() {
        return state.unreferenced;
      },
      ready: () => say({ kind: "ready" }),
      reply: (reply, memoryBytes = 0) =>
        say({ kind: "reply", reply, memoryBytes }),
      throw: (error) => events.emit("error", error),
      exit: (code) => events.emit("exit", code),
    });
    return {
      postMessage: (job) => jobs.push(job),
      on: (event: string, listener: (...values: never[]) => void) =>
        events.on(event, listener as (...values: unknown[]) => void),
      unref: () => {
        state.unreferenced = true;
      },
      terminate: () => {
        state.terminated = true;
        return Promise.resolve(1);
      },
    };
  };
  return { workers, startWorker };
}
