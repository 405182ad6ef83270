import { describe, expect, it } from "vitest";
import { ownTurn } from "../../../src/loader/turns.js";

describe("loader/turns", () => {
  it("gives everybody who waits a turn of their own, in order", async () => {
    const { turn, stop } = countTurns();
    const had: { name: string; turn: number }[] = [];
    const work = async (name: string): Promise<void> => {
      for (let piece = 0; piece < 2; piece++) {
        await ownTurn();
        had.push({ name, turn: turn() });
      }
    };

    await Promise.all(["a", "b", "c"].map(work));
    stop();

    expect(had.map(({ name }) => name).join("")).toBe("abcabc");
    expect(new Set(had.map((each) => each.turn)).size).toBe(6);
  });

  it("gives turns again after nobody waited", async () => {
    await ownTurn();
    await new Promise((resolve) => setTimeout(resolve, 5));

    await expect(ownTurn()).resolves.toBeUndefined();
  });
});

function countTurns(): { turn: () => number; stop: () => void } {
  let turns = 0;
  let immediate = setImmediate(function count() {
    turns += 1;
    immediate = setImmediate(count);
  });
  return { turn: () => turns, stop: () => clearImmediate(immediate) };
}
