import { afterEach, beforeEach, describe, expect, it } from "vitest";

import type {
  PolicyJob,
  WorkerMessage,
} from "../../../../src/admission/cedar/messages.js";
import type { PolicyWorker } from "../../../../src/admission/cedar/start-worker.js";
import { startSourceWorker } from "../../../support/policy-engine.js";

const MEBIBYTE = 1024 * 1024;
const PERMIT_ALL = "permit (principal, action, resource);";

let worker: PolicyWorker;

describe("admission/cedar/policy-worker", () => {
  beforeEach(async () => {
    worker = startSourceWorker();
    expect(await nextMessage()).toEqual({ kind: "ready" });
  });
  afterEach(async () => {
    await worker.terminate();
  });

  it("answers one job after the other, and says how much memory it has", async () => {
    const compiled = await answer(compileJob(PERMIT_ALL));
    expect(compiled).toMatchObject({
      reply: {
        kind: "compiled",
        report: { rules: [{ id: "policy0", effect: "permit" }] },
      },
    });
    expect(compiled.memoryBytes).toBeGreaterThan(MEBIBYTE);

    await expect(
      answer({
        kind: "decide",
        hash: PERMIT_ALL,
        text: null,
        principal: { namespace: "", xrKind: "" },
        question: { action: "pullModule", location: "ghcr.io/a" },
      }),
    ).resolves.toMatchObject({
      reply: { kind: "decided", verdict: { allowed: true } },
    });
  });

  it("says when it is broken, and stays broken", async () => {
    await expect(
      answer(
        compileJob(when(`${"(".repeat(10_000)}true${")".repeat(10_000)}`)),
      ),
    ).resolves.toMatchObject({ reply: { kind: "trapped" } });

    // Why every trap costs the worker its life.
    await expect(answer(compileJob(PERMIT_ALL))).resolves.toMatchObject({
      reply: { kind: "trapped" },
    });
  });
});

/** The text is its own hash. */
function compileJob(text: string): PolicyJob {
  return { kind: "compile", hash: text, text };
}

function when(condition: string): string {
  return `permit (principal, action, resource) when { ${condition} };`;
}

async function answer(job: PolicyJob) {
  const next = nextMessage();
  worker.postMessage(job);
  const message = await next;
  if (message.kind !== "reply") throw new Error("expected a reply");
  return message;
}

function nextMessage(): Promise<WorkerMessage> {
  return new Promise((resolve, reject) => {
    worker.on("message", resolve);
    worker.on("error", reject);
  });
}
