/**
 * The program of the thread that Cedar lives in: it loads Cedar, says so, and does jobs one by one.
 * Nothing imports it; `start-worker.ts` names it.
 */
import { parentPort } from "node:worker_threads";

import { loadCedar } from "./cedar.js";
import { createJudge } from "./judge.js";
import type { PolicyJob, WorkerMessage } from "./messages.js";

const { cedar, memoryBytes } = await loadCedar();
const judge = createJudge(cedar);

parentPort?.on("message", (job: PolicyJob) => {
  say({ kind: "reply", reply: judge(job), memoryBytes: memoryBytes() });
});
say({ kind: "ready" });

function say(message: WorkerMessage): void {
  parentPort?.postMessage(message);
}
