import { setTimeout as delay } from "node:timers/promises";

import { describe, expect, it } from "vitest";

import { repeat } from "../../../../bench/soak/repeat.js";

describe("bench/soak/repeat", () => {
  it("acts one at a time until it is stopped", async () => {
    const turns: number[] = [];
    let atOnce = 0;
    const repeated = repeat(1, async (turn) => {
      expect(++atOnce).toBe(1);
      await delay(2);
      turns.push(turn);
      atOnce--;
    });
    await expect.poll(() => turns.length).toBeGreaterThanOrEqual(3);

    await repeated.stop();

    expect(turns.slice(0, 3)).toEqual([1, 2, 3]);
    expect(repeated.count()).toBe(turns.length);
    expect(atOnce).toBe(0);
    await delay(10);
    expect(repeated.count()).toBe(turns.length);
  });

  it("tells who stops it what went wrong", async () => {
    const repeated = repeat(1, () => Promise.reject(new Error("no disk")));
    await delay(20);

    await expect(repeated.stop()).rejects.toThrow("no disk");
    expect(repeated.count()).toBe(0);
  });
});
