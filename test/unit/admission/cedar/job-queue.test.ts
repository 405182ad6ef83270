import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import {
  createJobQueue,
  type JobLimits,
  type JobOutcome,
  type JobQueue,
} from "../../../../src/admission/cedar/job-queue.js";
import type {
  JobReply,
  PolicyJob,
} from "../../../../src/admission/cedar/messages.js";
import { AdmissionError } from "../../../../src/admission/error.js";
import { createScriptedWorkers } from "./scripted-worker.js";

const LIMITS: JobLimits = {
  startMs: 30_000,
  compileMs: 10_000,
  decideMs: 5_000,
  workerMemoryBytes: 1_000,
  maxWaiting: 3,
};
const REFUSED: JobReply = { kind: "refused", message: "no" };
const COMPILED: JobReply = {
  kind: "compiled",
  report: {
    rules: [],
    scopedActions: [],
    warnings: [],
    dialAddress: { permit: [], forbid: [] },
  },
};
const DECIDED: JobReply = {
  kind: "decided",
  verdict: { allowed: true, deciding: [], failed: [] },
};

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe("admission/cedar/job-queue", () => {
  it("starts a worker with the first job, and no other", async () => {
    const { queue, workers } = open();
    expect(workers).toHaveLength(0);

    const first = run(queue, compileJob("a"));
    workers[0]?.ready();
    workers[0]?.reply(REFUSED);
    await expect(first).resolves.toEqual(REFUSED);
    const second = run(queue, compileJob("b"));
    workers[0]?.reply(REFUSED);

    await expect(second).resolves.toEqual(REFUSED);
    expect(workers).toHaveLength(1);
  });

  it("does not let a worker keep the process alive", () => {
    const { queue, workers } = open();

    void run(queue, compileJob("a"));

    expect(workers[0]?.unreferenced).toBe(true);
  });

  it("gives a worker nothing before it is ready", () => {
    const { queue, workers } = open();

    void run(queue, compileJob("a"));
    expect(workers[0]?.jobs).toEqual([]);
    workers[0]?.ready();

    expect(workers[0]?.jobs).toEqual([compileJob("a")]);
  });

  it("does jobs one at a time, in the order in which they came", async () => {
    const { queue, workers } = open();

    const outcomes = ["a", "b", "c"].map((hash) =>
      run(queue, compileJob(hash)),
    );
    const [worker] = workers;
    worker?.ready();
    for (const [i, message] of ["1", "2", "3"].entries()) {
      expect(worker?.jobs).toHaveLength(i + 1);
      worker?.reply({ kind: "refused", message });
    }

    await expect(Promise.all(outcomes)).resolves.toEqual(
      ["1", "2", "3"].map((message) => ({ kind: "refused", message })),
    );
    expect(worker?.jobs.map(({ hash }) => hash)).toEqual(["a", "b", "c"]);
  });

  it("lets a job wait for the one that is being done", async () => {
    const { queue, workers } = open();
    const first = run(queue, compileJob("a"));
    workers[0]?.ready();

    const second = run(queue, compileJob("b"));

    expect(workers[0]?.jobs).toEqual([compileJob("a")]);
    workers[0]?.reply(REFUSED);
    workers[0]?.reply(COMPILED);
    await expect(first).resolves.toEqual(REFUSED);
    await expect(second).resolves.toEqual(COMPILED);
    expect(workers[0]?.jobs).toEqual([compileJob("a"), compileJob("b")]);
  });

  describe("a worker that is broken", () => {
    it.each<{
      name: string;
      breakIt: (worker: ReturnType<typeof open>["workers"][0]) => void;
      want: object;
    }>([
      {
        name: "says so",
        breakIt: (worker) => {
          worker.reply({ kind: "trapped", reason: "memory access" });
        },
        want: { reason: "memory access", timedOut: false },
      },
      {
        name: "throws",
        breakIt: (worker) => {
          worker.throw(new Error("out of\nmemory"));
        },
        want: { reason: "out of memory", timedOut: false },
      },
      {
        name: "ends",
        breakIt: (worker) => {
          worker.exit(1);
        },
        want: { reason: "its thread ended with code 1", timedOut: false },
      },
      {
        name: "does not end",
        breakIt: () => {
          vi.advanceTimersByTime(10_000);
        },
        want: { reason: "it takes longer than 10 s", timedOut: true },
      },
    ])(
      "and $name takes its job with it, and no other",
      async ({ breakIt, want }) => {
        const { queue, workers } = open();
        const bad = run(queue, compileJob("bad"));
        const good = [run(queue, compileJob("a")), run(queue, compileJob("b"))];

        const [first] = workers;
        first?.ready();
        if (first) breakIt(first);
        await expect(bad).resolves.toEqual({ kind: "stopped", ...want });
        expect(first?.terminated).toBe(true);
        const [, second] = workers;
        second?.ready();
        second?.reply(REFUSED);
        second?.reply(REFUSED);

        await expect(Promise.all(good)).resolves.toEqual([REFUSED, REFUSED]);
        expect(workers).toHaveLength(2);
        expect(first?.jobs.map(({ hash }) => hash)).toEqual(["bad"]);
        expect(second?.jobs.map(({ hash }) => hash)).toEqual(["a", "b"]);
      },
    );

    it("is not heard any more", async () => {
      const { queue, workers } = open();
      const bad = run(queue, compileJob("bad"));
      const good = run(queue, compileJob("good"));
      const [first] = workers;
      first?.ready();
      first?.reply({ kind: "trapped", reason: "x" });
      const [, second] = workers;
      second?.ready();

      first?.reply(COMPILED);
      first?.throw(new Error("late"));
      first?.exit(1);
      second?.reply(REFUSED);

      await expect(bad).resolves.toMatchObject({ kind: "stopped" });
      await expect(good).resolves.toEqual(REFUSED);
      expect(second?.terminated).toBe(false);
    });

    it("is replaced only when there is a job for the next one", async () => {
      const { queue, workers } = open();
      const first = run(queue, compileJob("a"));
      workers[0]?.ready();
      workers[0]?.reply(REFUSED);
      await first;

      workers[0]?.exit(1);
      expect(workers).toHaveLength(1);
      const second = run(queue, compileJob("b"));
      workers[1]?.ready();
      workers[1]?.reply(REFUSED);

      await expect(second).resolves.toEqual(REFUSED);
    });
  });

  it("stops a job that cannot be sent to a worker, and no other", async () => {
    const { workers, startWorker } = createScriptedWorkers();
    const queue = createJobQueue(() => {
      const worker = startWorker();
      const postMessage = (job: PolicyJob) => {
        if (job.hash === "bad") throw new Error("cannot be cloned");
        worker.postMessage(job);
      };
      return { ...worker, postMessage };
    }, LIMITS);
    const bad = run(queue, compileJob("bad"));
    const good = run(queue, compileJob("good"));

    workers[0]?.ready();
    workers[1]?.ready();
    workers[1]?.reply(REFUSED);

    await expect(bad).resolves.toEqual({
      kind: "stopped",
      reason: "cannot be cloned",
      timedOut: false,
    });
    await expect(good).resolves.toEqual(REFUSED);
  });

  describe("the time limit", () => {
    it.each([
      { name: "a compile", job: compileJob("a"), limitMs: 10_000 },
      { name: "a decision", job: decideJob("a"), limitMs: 5_000 },
    ])("of $name starts when the worker gets it", async ({ job, limitMs }) => {
      const { queue, workers } = open();
      const outcome = run(queue, job);
      vi.advanceTimersByTime(29_999);
      workers[0]?.ready();

      vi.advanceTimersByTime(limitMs - 1);
      expect(workers[0]?.terminated).toBe(false);
      vi.advanceTimersByTime(1);

      expect(workers[0]?.terminated).toBe(true);
      await expect(outcome).resolves.toEqual({
        kind: "stopped",
        reason: `it takes longer than ${limitMs / 1000} s`,
        timedOut: true,
      });
    });

    it("ends with the job", async () => {
      const { queue, workers } = open();
      const outcome = run(queue, compileJob("a"));
      workers[0]?.ready();
      workers[0]?.reply(REFUSED);
      await outcome;

      expect(vi.getTimerCount()).toBe(0);
    });
  });

  describe("a worker that has grown", () => {
    it.each([
      { name: "to the bound stays", memoryBytes: 1_000, workersInAll: 1 },
      { name: "beyond it goes", memoryBytes: 1_001, workersInAll: 2 },
    ])("$name", async ({ memoryBytes, workersInAll }) => {
      const { queue, workers } = open();

      const first = run(queue, compileJob("a"));
      const second = run(queue, compileJob("b"));
      workers[0]?.ready();
      workers[0]?.reply(REFUSED, memoryBytes);
      workers.at(-1)?.ready();
      workers.at(-1)?.reply(COMPILED);

      await expect(first).resolves.toEqual(REFUSED);
      await expect(second).resolves.toEqual(COMPILED);
      expect(workers).toHaveLength(workersInAll);
      expect(workers[0]?.terminated).toBe(workersInAll === 2);
    });
  });

  describe("a worker that cannot be started", () => {
    it.each<{
      name: string;
      breakIt: (worker: ReturnType<typeof open>["workers"][0]) => void;
      want: string;
    }>([
      {
        name: "throws",
        breakIt: (worker) => {
          worker.throw(new Error("no such program"));
        },
        want: "no such program",
      },
      {
        name: "ends",
        breakIt: (worker) => {
          worker.exit(7);
        },
        want: "its thread ended with code 7",
      },
      {
        name: "never gets ready",
        breakIt: () => {
          vi.advanceTimersByTime(30_000);
        },
        want: "it takes longer than 30 s",
      },
    ])("and $name fails its job, and the next one tries again", async (row) => {
      const { queue, workers } = open();
      const failed = run(queue, compileJob("a"));
      const next = run(queue, compileJob("b"));

      if (workers[0]) row.breakIt(workers[0]);
      await expect(failed).rejects.toThrow(
        new AdmissionError(
          "policy-unavailable",
          `the policy engine is not available: it cannot be started: ${row.want}`,
        ),
      );
      workers[1]?.ready();
      workers[1]?.reply(REFUSED);

      await expect(next).resolves.toEqual(REFUSED);
      expect(workers[0]?.terminated).toBe(true);
    });

    it("at all fails every job, and not for ever", async () => {
      const { workers, startWorker } = createScriptedWorkers();
      let isBroken = true;
      const queue = createJobQueue(() => {
        if (isBroken) throw new Error("no threads left");
        return startWorker();
      }, LIMITS);

      for (const hash of ["a", "b"]) {
        await expect(run(queue, compileJob(hash))).rejects.toMatchObject({
          code: "policy-unavailable",
          message:
            "the policy engine is not available: it cannot be started: no threads left",
        });
      }
      isBroken = false;
      const outcome = run(queue, compileJob("c"));
      workers[0]?.ready();
      workers[0]?.reply(REFUSED);

      await expect(outcome).resolves.toEqual(REFUSED);
    });
  });

  it("lets three jobs wait, and no more", async () => {
    const { queue, workers } = open();

    const taken = ["a", "b", "c", "d"].map((hash) =>
      run(queue, compileJob(hash)),
    );
    await expect(run(queue, compileJob("e"))).rejects.toMatchObject({
      code: "policy-unavailable",
      message: "the policy engine is not available: too much waits for it",
    });
    workers[0]?.ready();
    for (let i = 0; i < 4; i++) workers[0]?.reply(REFUSED);

    await expect(Promise.all(taken)).resolves.toHaveLength(4);
  });

  it("does jobs of a lower rank first", async () => {
    const { queue, workers } = open();

    const ranks = { current: 9, a: 2, b: 1, urgent: -1 };
    const outcomes = Object.entries(ranks).map(
      ([hash, rank]) => queue.run(compileJob(hash), rank).outcome,
    );
    workers[0]?.ready();
    for (let i = 0; i < 4; i++) workers[0]?.reply(REFUSED);
    await Promise.all(outcomes);

    expect(workers[0]?.jobs.map(({ hash }) => hash)).toEqual([
      "current",
      "urgent",
      "b",
      "a",
    ]);
  });

  it("refuses the last of too many, which may not be the one that came last", async () => {
    const { queue, workers } = open();

    const outcomes = [0, 5, 7, 6, 1].map(
      (rank) => queue.run(compileJob(`${rank}`), rank).outcome,
    );
    await expect(outcomes[2]).rejects.toMatchObject({
      code: "policy-unavailable",
      message: "the policy engine is not available: too much waits for it",
    });
    workers[0]?.ready();
    for (let i = 0; i < 4; i++) workers[0]?.reply(REFUSED);

    await Promise.all(outcomes.toSpliced(2, 1));
    expect(workers[0]?.jobs.map(({ hash }) => hash)).toEqual([
      "0",
      "1",
      "5",
      "6",
    ]);
  });

  describe("a job that is taken back", () => {
    it("is not done, and leaves its place to another", async () => {
      const { queue, workers } = open();
      const [first, dropped, ...others] = ["a", "b", "c", "d"].map((hash) =>
        queue.run(compileJob(hash), 0),
      );

      expect(dropped?.drop()).toBe(true);
      expect(dropped?.drop()).toBe(false);
      const late = queue.run(compileJob("e"), 0);
      workers[0]?.ready();
      for (let i = 0; i < 4; i++) workers[0]?.reply(REFUSED);

      for (const job of [first, ...others, late])
        await expect(job?.outcome).resolves.toEqual(REFUSED);
      expect(workers[0]?.jobs.map(({ hash }) => hash)).toEqual([
        "a",
        "c",
        "d",
        "e",
      ]);
    });

    it("is done all the same when it has begun", async () => {
      const { queue, workers } = open();
      const job = queue.run(compileJob("a"), 0);
      workers[0]?.ready();

      expect(job.drop()).toBe(false);
      workers[0]?.reply(REFUSED);

      await expect(job.outcome).resolves.toEqual(REFUSED);
      expect(job.drop()).toBe(false);
    });
  });

  describe("a decision's text", () => {
    it("is sent only to a worker that asks for it, at once", async () => {
      const { queue, workers } = open();
      const outcome = run(queue, decideJob("a"));
      const next = run(queue, decideJob("b"));
      const [worker] = workers;
      worker?.ready();
      worker?.reply({ kind: "unknown" });
      worker?.reply(DECIDED);
      worker?.reply(DECIDED);

      await expect(outcome).resolves.toEqual(DECIDED);
      await expect(next).resolves.toEqual(DECIDED);
      expect(worker?.jobs).toMatchObject([
        { hash: "a", text: null },
        { hash: "a", text: "text of a" },
        { hash: "b", text: null },
      ]);
    });

    it("goes to the next worker when the one that asked has grown too large", async () => {
      const { queue, workers } = open();
      const outcome = run(queue, decideJob("a"));
      workers[0]?.ready();
      workers[0]?.reply({ kind: "unknown" }, 1_001);
      workers[1]?.ready();
      workers[1]?.reply(DECIDED);

      await expect(outcome).resolves.toEqual(DECIDED);
      expect(workers[1]?.jobs).toMatchObject([{ text: "text of a" }]);
    });

    it("is sent once", async () => {
      const { queue, workers } = open();
      const outcome = run(queue, decideJob("a"));
      workers[0]?.ready();
      workers[0]?.reply({ kind: "unknown" });
      workers[0]?.reply({ kind: "unknown" });

      await expect(outcome).resolves.toEqual({ kind: "unknown" });
    });
  });

  describe("close", () => {
    it("ends the worker and all jobs, done or not", async () => {
      const { queue, workers } = open();
      const running = run(queue, compileJob("a"));
      const waiting = run(queue, compileJob("b"));
      workers[0]?.ready();

      const closed = queue.close();

      for (const job of [running, waiting, run(queue, compileJob("c"))]) {
        await expect(job).rejects.toMatchObject({
          code: "policy-unavailable",
          message:
            "the policy engine is not available: the runtime is shutting down",
        });
      }
      await closed;
      expect(workers.map(({ terminated }) => terminated)).toEqual([true]);
      expect(vi.getTimerCount()).toBe(0);
    });

    it("can be called again, and without a worker", async () => {
      const { queue, workers } = open();

      await queue.close();
      await queue.close();

      expect(workers).toHaveLength(0);
    });
  });
});

function open() {
  const { workers, startWorker } = createScriptedWorkers();
  return { queue: createJobQueue(startWorker, LIMITS), workers };
}

function run(queue: JobQueue, job: PolicyJob): Promise<JobOutcome> {
  return queue.run(job, 0).outcome;
}

function compileJob(hash: string): PolicyJob {
  return { kind: "compile", hash, text: "" };
}

function decideJob(hash: string): PolicyJob {
  return {
    kind: "decide",
    hash,
    text: `text of ${hash}`,
    principal: { namespace: "", xrKind: "" },
    question: { action: "usePrivateTmp" },
  };
}
