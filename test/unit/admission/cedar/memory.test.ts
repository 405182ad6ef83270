import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { createMemory } from "../../../../src/admission/cedar/memory.js";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe("admission/cedar/memory", () => {
  it("does work once for each key", async () => {
    const { recall, done } = open();

    await expect(recall("a")).resolves.toBe("a 1");
    await expect(recall("a")).resolves.toBe("a 1");
    await expect(recall("b")).resolves.toBe("b 2");
    expect(done).toEqual(["a", "b"]);
  });

  it("shares work that is under way", async () => {
    const { memory } = open();
    let finish: (value: string) => void = () => undefined;
    const work = vi.fn(async () => {
      const value = await new Promise<string>((resolve) => {
        finish = resolve;
      });
      return { value, holdsForMs: null };
    });

    const both = [memory.recall("a", work), memory.recall("a", work)];
    finish("done");

    await expect(Promise.all(both)).resolves.toEqual(["done", "done"]);
    expect(work).toHaveBeenCalledTimes(1);
  });

  it("does work again that failed", async () => {
    const { memory, recall } = open();

    await expect(
      memory.recall("a", () => Promise.reject(new Error("no"))),
    ).rejects.toThrow("no");
    await expect(recall("a")).resolves.toBe("a 1");
  });

  it("forgets after the time that a result holds", async () => {
    const { recall } = open();

    await recall("a", 1_000);
    vi.advanceTimersByTime(999);
    await expect(recall("a")).resolves.toBe("a 1");
    vi.advanceTimersByTime(1);
    await expect(recall("a")).resolves.toBe("a 2");
  });

  it("forgets no later result than the one that has had its time", async () => {
    const { recall } = open({ maxKeys: 1 });

    await recall("a", 1_000);
    await recall("b");
    await recall("a");
    vi.advanceTimersByTime(1_000);

    await expect(recall("a")).resolves.toBe("a 3");
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

  it("does not remember a key that is too long by itself", async () => {
    const { recall, done } = open({ maxChars: 10 });

    for (const key of ["a", "x".repeat(10), "x".repeat(10), "a", ""])
      await recall(key);

    expect(done).toEqual(["a", "x".repeat(10), "x".repeat(10), ""]);
  });
});

function open(bounds: { maxKeys?: number; maxChars?: number } = {}) {
  const memory = createMemory<string>({
    maxKeys: 100,
    maxChars: 100,
    ...bounds,
  });
  const done: string[] = [];
  const recall = (key: string, holdsForMs: number | null = null) =>
    memory.recall(key, () => {
      done.push(key);
      return Promise.resolve({ value: `${key} ${done.length}`, holdsForMs });
    });
  return { memory, recall, done };
}
