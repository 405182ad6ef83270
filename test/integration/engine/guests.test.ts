import { describe, expect, it } from "vitest";

import { assembleText, guest, guestNames } from "../../support/guests.js";

const names = guestNames();

describe("integration/engine/guests", () => {
  it.each(names)("%s assembles", async (name) => {
    const bytes = await guest(name);

    expect(Buffer.from(bytes.subarray(0, 4)).toString("latin1")).toBe("\0asm");
  });

  it("has no two guests that are the same module", async () => {
    const modules = await Promise.all(names.map(guest));
    const distinct = new Set(modules.map((module) => module.join()));

    expect(distinct.size).toBe(names.length);
  });

  it("says what is wrong with text that does not parse", async () => {
    await expect(assembleText("(module (memory")).rejects.toThrow(/expected/);
  });
});
