import { describe, expect, it } from "vitest";

import { createLogger } from "../../../src/function/logger.js";
import { readLogLine } from "../../support/log-lines.js";

function record(debug: boolean) {
  const lines: unknown[] = [];
  const destination = {
    write: (text: string) => lines.push(readLogLine(text.trimEnd())),
  };
  const clock = { nowMs: () => 1_700_000_000_250, monotonicMs: () => 0 };
  return { lines, logger: createLogger({ debug, destination }, clock) };
}

describe("function/logger", () => {
  it("writes JSON lines with level, ts and msg, and nothing it was not told", () => {
    const { logger, lines } = record(false);

    logger.child({ tag: "t" }).info({ address: "[::]:9443" }, "listening");

    expect(lines).toEqual([
      {
        level: "info",
        ts: 1_700_000_000.25,
        tag: "t",
        address: "[::]:9443",
        msg: "listening",
      },
    ]);
  });

  it.each([
    { debug: false, want: ["info", "warn", "error"] },
    { debug: true, want: ["debug", "info", "warn", "error"] },
  ])("writes $want when debug is $debug", ({ debug, want }) => {
    const { logger, lines } = record(debug);

    logger.debug({}, "m");
    logger.info({}, "m");
    logger.warn({}, "m");
    logger.error({}, "m");

    expect(lines.map((line) => (line as { level: string }).level)).toEqual(
      want,
    );
  });

  it("writes lines for people when debug is on", () => {
    let written = "";
    const logger = createLogger(
      { debug: true, destination: { write: (text) => (written += text) } },
      { nowMs: () => 1_700_000_000_250, monotonicMs: () => 0 },
    );

    logger.child({ tag: "t" }).debug({ address: "[::]:9443" }, "listening");
    logger.warn({ reason: "a b" }, "client refused");

    expect(written).toBe(
      '22:13:20.250 DEBUG listening tag=t address=[::]:9443\n22:13:20.250 WARN  client refused reason="a b"\n',
    );
  });

  it.each([
    { debug: false, time: { ts: 1_700_000_000.25 } },
    { debug: true, time: { time: "22:13:20.250" } },
  ])(
    "writes the fields of every logger above, the nearest value of each: debug $debug",
    ({ debug, time }) => {
      const { logger, lines } = record(debug);
      const child = logger.child({ tag: "t", step: "a" });

      child.child({ step: "b", digest: "d" }).warn({ digest: "e" }, "m");
      child.error({}, "m");
      logger.info({}, "m");

      expect(lines).toEqual([
        { level: "warn", ...time, tag: "t", step: "b", digest: "e", msg: "m" },
        { level: "error", ...time, tag: "t", step: "a", msg: "m" },
        { level: "info", ...time, msg: "m" },
      ]);
    },
  );

  it("does not look at the fields of a debug line that is not written", () => {
    const { logger } = record(false);
    const fields = {
      get costly(): string {
        throw new Error("looked at");
      },
    };

    expect(() => logger.debug(fields, "m")).not.toThrow();
    expect(() => logger.info(fields, "m")).toThrow("looked at");
  });

  it("shows where an unexpected error came from", () => {
    const { logger, lines } = record(false);

    logger.error({ err: new TypeError("boom") }, "internal error");

    expect(lines).toMatchObject([
      { err: { type: "TypeError", message: "boom" } },
    ]);
  });
});
