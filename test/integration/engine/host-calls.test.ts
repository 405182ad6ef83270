import { afterAll, beforeAll, describe, expect, it } from "vitest";

import {
  createLogCollector,
  messages,
  refusal,
  startEngine,
  timed,
  type TestEngine,
} from "../../support/engine.js";

/** `wasmfn.log` and `wasmfn.http` of ABI v1, and `log` of ABI v2, in the hands of hostile guests. */
describe("integration/engine/host-calls", () => {
  let engine: TestEngine;
  beforeAll(async () => {
    engine = await startEngine();
  });
  afterAll(() => engine.close());

  it("passes wasmfn.log on with level and fields", async () => {
    const { logger, lines } = createLogCollector();

    await engine.call("v1/log", { logger });

    expect(lines.map(({ level }) => level)).toEqual(["info", "debug"]);
    const [first, second] = lines.map(({ fields }) => JSON.stringify(fields));
    expect(first).toContain("rendered");
    expect(first).toContain('"objects":"3"');
    expect(first).toContain('"kind":"ConfigMap"');
    expect(second).toContain("details");
  });

  it("answers wasmfn.http with a refusal that the guest can read", async () => {
    const response = await engine.call("v1/http");

    const reply: unknown = JSON.parse(messages(response)[0] ?? "");
    expect(reply).toEqual({
      status: 0,
      error: expect.stringMatching(/^sandbox\.egress: /) as string,
    });
  });

  it("answers a wasmfn.http request that is no JSON in-band too", async () => {
    expect(messages(await engine.call("hostile/http-bad-json"))).toEqual([
      "00000001",
    ]);
  });

  it.each([
    { guest: "hostile/log-bad-json", want: "not json {{{" },
    { guest: "hostile/log-bad-level", want: "level 99" },
    { guest: "hostile/log-bad-utf8", want: "msg" },
    { guest: "hostile/log-deep-json", want: "deep" },
  ])("logs what it can of $guest", async ({ guest, want }) => {
    const { logger, lines } = createLogCollector();

    await engine.call(guest, { logger });

    expect(lines).toHaveLength(1);
    expect(JSON.stringify(lines)).toContain(want);
    expect(JSON.stringify(lines).length).toBeLessThan(20_000);
  });

  it("escapes control characters in message, key and value", async () => {
    const { logger, lines } = createLogCollector();

    await engine.call("hostile/log-control", { logger });

    const [line] = lines;
    expect(lines).toHaveLength(1);
    expect(flatText(line?.fields)).toContain("forged");
    expect(flatText(line?.fields)).not.toMatch(/\p{Cc}/u);
  });

  it.each([
    { guest: "hostile/log-bad-pointer", want: "wasmfn.log" },
    { guest: "hostile/log-bad-length", want: "wasmfn.log" },
    { guest: "hostile/log-huge", want: "wasmfn.log" },
    { guest: "hostile/http-bad-pointer", want: "wasmfn.http" },
    { guest: "v2/log-bad-pointer", want: /pointer|bounds|string/ },
    { guest: "v2/log-bad-level", want: /discriminant|enum|variant/ },
    { guest: "v2/log-huge-list", want: /list|bounds|pointer|fuel/ },
    { guest: "v2/log-amplify", want: /fuel|limit|large/ },
  ])("ends the run of $guest and names the call", async ({ guest, want }) => {
    const error = await refusal(engine.call(guest));

    expect(error.code).toBe("run-trap");
    expect(error.message).toMatch(/^module Path module-\d+\.wasm failed: /);
    expect(error.message).toMatch(want);
  });

  it("keeps a bounded part of a flood and says that it dropped the rest", async () => {
    const { logger, lines } = createLogCollector();

    await engine.call("hostile/log-flood", { logger });

    expect(lines.length).toBeGreaterThan(10);
    expect(lines.length).toBeLessThan(5_000);
    const dropped = lines.at(-1)?.fields["droppedLines"];
    expect(Number(dropped) + lines.length - 1).toBe(100_000);
  });

  it("ends a guest that recurses through the host in its time", async () => {
    const { outcome, ms } = await timed(
      engine.call("hostile/http-reentrant", { timeoutMs: 500 }),
    );

    expect(outcome).toMatchObject({ status: "rejected" });
    expect(ms).toBeLessThan(1_500);
    expect(messages(await engine.call("v1/hello"))).toEqual(["hello world"]);
  });
});

/** Keys and values at any depth, without JSON's own escapes. */
function flatText(value: unknown): string {
  if (typeof value !== "object" || value === null) return String(value);
  return Object.entries(value)
    .map(([key, member]) => `${key} ${flatText(member)}`)
    .join(" ");
}
