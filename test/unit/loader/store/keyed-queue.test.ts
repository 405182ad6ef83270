import { describe, expect, it } from "vitest";
import { createKeyedQueue } from "../../../../src/loader/store/keyed-queue.js";

describe("loader/store/keyed-queue", () => {
  it("runs work of one key in turn, in order", async () => {
    const inTurn = createKeyedQueue();
    const log: string[] = [];
    let finish: () => void = () => undefined;
    const finished = new Promise<void>((resolve) => (finish = resolve));

    const runs = [
      inTurn("a", async () => {
        log.push("first begins");
        await finished;
        log.push("first ends");
      }),
      inTurn("a", () => Promise.resolve(log.push("second"))),
      inTurn("a", () => Promise.resolve(log.push("third"))),
    ];
    await inTurn("b", () => Promise.resolve(log.push("another key")));
    finish();
    await Promise.all(runs);

    expect(log).toEqual([
      "first begins",
      "another key",
      "first ends",
      "second",
      "third",
    ]);
  });

  it("gives what the work gives, and goes on after a failure", async () => {
    const inTurn = createKeyedQueue();

    const failed = inTurn("a", () => Promise.reject(new Error("no")));
    const worked = inTurn("a", () => Promise.resolve(1));

    await expect(failed).rejects.toThrow("no");
    await expect(worked).resolves.toBe(1);
  });
});
