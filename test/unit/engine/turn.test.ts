import { describe, expect, it } from "vitest";

import { createTurnEnd } from "../../../src/engine/turn.js";
import { settle } from "./fixtures.js";

describe("engine/turn", () => {
  it("resolves for all who ask in one turn, in their order, and not before its end", async () => {
    const turnEnd = createTurnEnd();
    const order: string[] = [];

    for (const name of ["a", "b", "c"]) {
      void turnEnd().then(() => order.push(name));
    }
    await Promise.resolve();
    expect(order).toEqual([]);
    await settle();

    expect(order).toEqual(["a", "b", "c"]);
  });

  it("is another turn's end for who asks later", async () => {
    const turnEnd = createTurnEnd();
    const first = turnEnd();
    await first;

    const second = turnEnd();

    expect(second).not.toBe(first);
    await second;
  });
});
