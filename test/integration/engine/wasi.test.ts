import { afterAll, beforeAll, describe, expect, it } from "vitest";

import {
  createLogCollector,
  messages,
  MiB,
  refusal,
  residentBytes,
  startEngine,
  timed,
  type TestEngine,
} from "../../support/engine.js";

/** What a guest sees to whom nothing was granted; its answer says what it saw. */
describe("integration/engine/wasi", () => {
  let engine: TestEngine;
  beforeAll(async () => {
    engine = await startEngine();
  });
  afterAll(() => engine.close());

  it.each([
    { name: "one argument", guest: "wasi/args", want: "function" },
    { name: "no environment", guest: "wasi/environ", want: "00000000" },
    { name: "both clocks", guest: "wasi/clock", want: "00000001" },
    { name: "an empty stdin", guest: "wasi/stdin", want: "00000000" },
    { name: "EBADF for a preopen", guest: "wasi/prestat", want: "00000008" },
    { name: "no file at all", guest: "wasi/path-open", want: "00000000" },
    { name: "no socket at all", guest: "wasi/sock", want: "00000000" },
    { name: "a sleep that ends", guest: "wasi/poll-short", want: "00000001" },
    { name: "one argument (0.2)", guest: "p2/environment", want: "function" },
    {
      name: "clocks and randomness (0.2)",
      guest: "p2/clocks-random",
      want: "00000001",
    },
    { name: "no preopen (0.2)", guest: "p2/preopens", want: "00000000" },
  ])("gives a guest $name", async ({ guest, want }) => {
    const response = await engine.call(guest);

    expect(messages(response)).toEqual([want]);
  });

  it.each([
    { name: "TCP", guest: "p2/tcp" },
    { name: "name lookup", guest: "p2/name-lookup" },
    { name: "wasi:http", guest: "p2/http" },
    { name: "wasi:http (0.3)", guest: "p3/http" },
  ])("refuses $name inside the guest", async ({ guest }) => {
    const response = await engine.call(guest);

    // 00000000 would be success.
    expect(messages(response)[0]).toMatch(/^000001[0-9a-f]{2}$/);
  });

  it("gives other random bits each time", async () => {
    const lease = await engine.load("wasi/random");

    const responses = await Promise.all(
      Array.from({ length: 8 }, () => engine.run(lease)),
    );

    const answers = new Set(responses.flatMap(messages));
    expect(answers.size).toBeGreaterThan(6);
    lease.release();
  });

  it.each([
    { guest: "wasi/exit-0", status: 0 },
    { guest: "wasi/exit-1", status: 1 },
    { guest: "p2/exit", status: 1 },
  ])("takes $guest for a failure and names the status", async (row) => {
    const error = await refusal(engine.call(row.guest));

    expect(error.code).toBe("run-trap");
    expect(error.message).toContain(`exited with status ${row.status}`);
  });

  it.each([{ guest: "wasi/random-huge" }, { guest: "p2/random-huge" }])(
    "spends no time on $guest",
    async ({ guest }) => {
      const before = residentBytes();

      const { outcome, ms } = await timed(
        engine.call(guest, { memoryBytes: 64 * MiB }),
      );

      // Its answer is the guest's own affair, and a trap is as good as an errno.
      if (outcome.status === "rejected") {
        expect(outcome.reason).toMatchObject({ code: "run-trap" });
      } else {
        expect(messages(outcome.value)).not.toEqual(["00000000"]);
      }
      expect(ms).toBeLessThan(2_000);
      expect(residentBytes() - before).toBeLessThan(150 * MiB);
    },
  );

  it.each([
    { guest: "wasi/stdio" },
    { guest: "p2/stdio" },
    { guest: "p3/stdio" },
  ])("writes what $guest prints to the step's log", async ({ guest }) => {
    const { logger, lines } = createLogCollector();

    await engine.call(guest, { logger });

    const text = JSON.stringify(lines);
    expect(text).toContain("out of run");
    expect(text).toContain("err of run");
    expect(lines.find(has("out of run"))?.level).toBe("info");
    expect(lines.find(has("err of run"))?.level).toBe("warn");
  });

  it("keeps the last line that has no newline", async () => {
    const { logger, lines } = createLogCollector();

    await engine.call("wasi/stdio", { logger });

    expect(lines.some(has("no newline"))).toBe(true);
  });

  it("escapes control characters and bytes that are no text", async () => {
    const { logger, lines } = createLogCollector();

    await engine.call("wasi/write-control", { logger });

    const values = lines.flatMap(({ fields }) => Object.values(fields));
    expect(lines).toHaveLength(1);
    expect(values.join("|")).toContain("red");
    expect(values.join("|")).not.toMatch(/\p{Cc}/u);
  });

  it("keeps a bounded part of a flood and says that it dropped the rest", async () => {
    const { logger, lines } = createLogCollector();

    await engine.call("wasi/write-flood", { logger });

    expect(lines.length).toBeGreaterThan(10);
    expect(lines.length).toBeLessThan(5_000);
    const dropped = lines.at(-1)?.fields["droppedLines"];
    expect(Number(dropped) + lines.length - 1).toBe(100_000);
  });

  it.each([{ guest: "p2/pollable-leak" }, { guest: "p2/stdout-leak" }])(
    "ends $guest before it fills the host's memory",
    async ({ guest }) => {
      const before = residentBytes();

      const error = await refusal(engine.call(guest, { timeoutMs: 3_000 }));

      expect(["run-trap", "run-timeout"]).toContain(error.code);
      expect(residentBytes() - before).toBeLessThan(200 * MiB);
    },
  );

  it("bounds the header fields a guest may hold", async () => {
    const before = residentBytes();

    const { outcome } = await timed(
      engine.call("p2/http-fields-flood", { timeoutMs: 5_000 }),
    );

    if (outcome.status === "rejected") {
      expect(outcome.reason).toMatchObject({ code: "run-trap" });
    } else {
      const taken = Number.parseInt(messages(outcome.value)[0] ?? "", 16);
      expect(taken).toBeLessThan(10_000);
    }
    expect(residentBytes() - before).toBeLessThan(150 * MiB);
  });
});

function has(text: string) {
  return ({ fields }: { fields: object }) =>
    JSON.stringify(fields).includes(text);
}
