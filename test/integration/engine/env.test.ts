import { afterAll, beforeAll, describe, expect, it } from "vitest";

import {
  messages,
  startEngine,
  type TestEngine,
} from "../../support/engine.js";

/** Guests that answer with their whole environment, one of each ABI. */
describe("integration/engine/env", () => {
  let engine: TestEngine;
  beforeAll(async () => {
    engine = await startEngine();
  });
  afterAll(() => engine.close());

  it.each([
    { name: "ABI v1", guest: "wasi/environ-dump" },
    { name: "ABI v2", guest: "p2/environment-dump" },
  ])("gives a guest of $name the variables of its run only", async (row) => {
    const lease = await engine.load(row.guest);
    const runWith = async (env: { name: string; value: string }[]) =>
      messages(await engine.run(lease, { env }));

    const answers = await Promise.all([
      runWith([
        { name: "DATABASE_URL", value: "postgres://u:hunter2@db/x?a=b" },
        { name: "EMPTY", value: "" },
      ]),
      runWith([{ name: "GREETING", value: "grüß dich 🌍" }]),
      runWith([]),
    ]);

    lease.release();
    expect(answers).toEqual([
      ["DATABASE_URL=postgres://u:hunter2@db/x?a=b;EMPTY=;"],
      ["GREETING=grüß dich 🌍;"],
      [""],
    ]);
  });
});
