import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import {
  createMemory,
  type MemoryBounds,
  type Remembered,
} from "../../../../src/admission/cedar/memory.js";
import { AdmissionError } from "../../../../src/admission/error.js";
import {
  type CancellableScope,
  createRequestScope,
} from "../../../../src/request-scope.js";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe("admission/cedar/memory", () => {
  it("does work once for each key", async () => {
    const { recall, done } = open();

    await expect(recall("a")).resolves.toEqual({ text: "a 1" });
    await expect(recall("a")).resolves.toEqual({ text: "a 1" });
    await expect(recall("b")).resolves.toEqual({ text: "b 2" });
    expect(done).toEqual(["a", "b"]);
  });

  it("shares work that is under way", async () => {
    const { memory } = open();
    const { begin, finish } = slowWork();

    const both = [
      memory.recall("a", begin, null),
      memory.recall("a", begin, null),
    ];
    finish("done");

    await expect(Promise.all(both)).resolves.toEqual([
      { text: "done" },
      { text: "done" },
    ]);
    expect(begin).toHaveBeenCalledTimes(1);
  });

  it("neither forgets nor repeats work under way, whatever else there is", async () => {
    const { memory, recall } = open({ maxKeys: 1 });
    const { begin, finish } = slowWork();

    const first = memory.recall("slow", begin, null);
    for (const key of ["a", "b", "c"]) await recall(key);
    const second = memory.recall("slow", begin, null);
    finish("done");

    await expect(first).resolves.toEqual({ text: "done" });
    await expect(second).resolves.toEqual({ text: "done" });
    expect(begin).toHaveBeenCalledTimes(1);
  });

  describe("when the request ends before the work", () => {
    const DEADLINE = new AdmissionError(
      "policy-unavailable",
      "waiting for the policy engine: deadline exceeded",
    );
    const CANCELLED = new AdmissionError(
      "policy-unavailable",
      "waiting for the policy engine: the caller cancelled the request",
    );

    it.each([
      {
        name: "by its deadline",
        end: () => vi.advanceTimersByTime(1),
        want: DEADLINE,
      },
      {
        name: "because the caller goes away",
        end: (scope: CancellableScope) => {
          scope.cancel();
        },
        want: CANCELLED,
      },
    ])("$name, only its own wait ends", async ({ end, want }) => {
      const { memory, now } = open();
      const { begin, drop, finish } = slowWork();
      const scope = createRequestScope({ deadlineAtMs: now() + 1_000 });
      const leaving = memory.recall("a", begin, scope);
      const staying = memory.recall(
        "a",
        begin,
        createRequestScope({ deadlineAtMs: now() + 9_000 }),
      );

      vi.advanceTimersByTime(999);
      end(scope);
      await expect(leaving).rejects.toThrow(want);
      expect(drop).not.toHaveBeenCalled();
      finish("done");

      await expect(staying).resolves.toEqual({ text: "done" });
      expect(begin).toHaveBeenCalledTimes(1);
      expect(vi.getTimerCount()).toBe(0);
    });

    it("and nobody else waits, work that has not begun is dropped", async () => {
      const { memory, recall } = open();
      const { begin, drop } = slowWork();
      const scopes = [1, 2].map(() =>
        createRequestScope({ deadlineAtMs: Infinity }),
      );
      const waits = scopes.map((scope) => memory.recall("a", begin, scope));

      for (const scope of scopes) scope.cancel();
      for (const wait of waits) await expect(wait).rejects.toThrow(CANCELLED);

      expect(drop).toHaveBeenCalledTimes(1);
      await expect(recall("a")).resolves.toEqual({ text: "a 1" });
    });

    it("and nobody else waits, work that has begun is remembered all the same", async () => {
      const { memory } = open();
      const { begin, drop, finish } = slowWork();
      drop.mockReturnValue(false);
      const scope = createRequestScope({ deadlineAtMs: Infinity });
      const wait = memory.recall("a", begin, scope);
      scope.cancel();
      await expect(wait).rejects.toThrow(CANCELLED);

      const joined = memory.recall("a", begin, null);
      finish("done");

      await expect(joined).resolves.toEqual({ text: "done" });
      await expect(memory.recall("a", begin, null)).resolves.toEqual({
        text: "done",
      });
      expect(begin).toHaveBeenCalledTimes(1);
    });

    it("nobody minds that the work fails later", async () => {
      const { memory } = open();
      const { begin, drop, fail } = slowWork();
      drop.mockReturnValue(false);
      const scope = createRequestScope({ deadlineAtMs: Infinity });
      const wait = memory.recall("a", begin, scope);

      scope.cancel();
      fail(new Error("no"));

      await expect(wait).rejects.toThrow(CANCELLED);
    });

    it.each([
      { name: "its deadline has passed", isCancelled: false, want: DEADLINE },
      { name: "its caller has gone", isCancelled: true, want: CANCELLED },
    ])(
      "since $name already, nothing begins, and what is known is told",
      async ({ isCancelled, want }) => {
        const { memory, recall, now } = open();
        const { begin } = slowWork();
        const scope = createRequestScope({
          deadlineAtMs: isCancelled ? Infinity : now(),
        });
        if (isCancelled) scope.cancel();
        await recall("known");

        await expect(memory.recall("a", begin, scope)).rejects.toThrow(want);
        await expect(memory.recall("known", begin, scope)).resolves.toEqual({
          text: "known 1",
        });
        expect(begin).not.toHaveBeenCalled();
      },
    );
  });

  it("does work again that failed", async () => {
    const { memory, recall } = open();

    await expect(
      memory.recall(
        "a",
        () => ({
          result: Promise.reject(new Error("no")),
          drop: () => false,
        }),
        null,
      ),
    ).rejects.toThrow("no");
    await expect(recall("a")).resolves.toEqual({ text: "a 1" });
  });

  it("forgets after the time that a result holds", async () => {
    const { recall } = open();

    await recall("a", 1_000);
    vi.advanceTimersByTime(999);
    await expect(recall("a")).resolves.toEqual({ text: "a 1" });
    vi.advanceTimersByTime(1);
    await expect(recall("a")).resolves.toEqual({ text: "a 2" });
  });

  it("does not remember a result that does not hold", async () => {
    const { recall } = open();

    await recall("a", 0);

    await expect(recall("a")).resolves.toEqual({ text: "a 2" });
  });

  it("forgets no later result than the one that has had its time", async () => {
    const { recall } = open({ maxKeys: 1 });

    await recall("a", 1_000);
    await recall("b");
    await recall("a");
    vi.advanceTimersByTime(1_000);

    await expect(recall("a")).resolves.toEqual({ text: "a 3" });
  });

  it("forgets the key that was not asked for the longest when there are too many", async () => {
    const { recall, done } = open({ maxKeys: 2 });

    for (const key of ["a", "b", "a", "c", "a", "b"]) await recall(key);

    expect(done).toEqual(["a", "b", "c", "b"]);
  });

  it("forgets keys when they are too long together", async () => {
    const { recall, done } = open({ maxChars: 10 });

    for (const key of ["aaaa", "bbbb", "cccc", "bbbb", "aaaa"])
      await recall(key);

    expect(done).toEqual(["aaaa", "bbbb", "cccc", "aaaa"]);
  });

  it("counts what values hold, too", async () => {
    const { recall, done } = open({
      maxChars: 10,
      charsOf: ({ text }) => (text.startsWith("large") ? 5 : 0),
    });

    for (const key of ["ab", "large", "ab", "large"]) await recall(key);

    expect(done).toEqual(["ab", "large", "large"]);
  });

  it("does not remember a key that is too long by itself", async () => {
    const { recall, done } = open({ maxChars: 10 });

    for (const key of ["a", "x".repeat(10), "x".repeat(10), "a", ""])
      await recall(key);

    expect(done).toEqual(["a", "x".repeat(10), "x".repeat(10), ""]);
  });
});

function slowWork() {
  let finish: (text: string) => void = () => undefined;
  let fail: (error: Error) => void = () => undefined;
  const result = new Promise<Remembered<Value>>((resolve, reject) => {
    finish = (text) => resolve({ value: { text }, holdsForMs: null });
    fail = reject;
  });
  const drop = vi.fn(() => true);
  return { begin: vi.fn(() => ({ result, drop })), drop, finish, fail };
}

interface Value {
  readonly text: string;
}

function open(bounds: Partial<MemoryBounds<Value>> = {}) {
  const now = () => performance.now();
  const memory = createMemory<Value>(
    { maxKeys: 100, maxChars: 100, ...bounds },
    now,
  );
  const done: string[] = [];
  const recall = (key: string, holdsForMs: number | null = null) =>
    memory.recall(
      key,
      () => {
        done.push(key);
        const value = { text: `${key} ${done.length}` };
        return {
          result: Promise.resolve({ value, holdsForMs }),
          drop: () => false,
        };
      },
      null,
    );
  return { memory, recall, done, now };
}
