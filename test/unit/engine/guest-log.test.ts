import { describe, expect, it } from "vitest";

import { logGuestLines } from "../../../src/engine/guest-log.js";
import type { GuestLine } from "../../../src/engine/native.js";
import { createLogCollector } from "../../support/engine.js";

describe("engine/guest-log", () => {
  it.each<{ source: GuestLine["source"]; level: string; message: string }>([
    { source: "debug", level: "debug", message: "guest log" },
    { source: "info", level: "info", message: "guest log" },
    { source: "warn", level: "warn", message: "guest log" },
    { source: "error", level: "error", message: "guest log" },
    { source: "stdout", level: "info", message: "guest stdout" },
    { source: "stderr", level: "warn", message: "guest stderr" },
  ])("logs $source at level $level", ({ source, level, message }) => {
    const { logger, lines } = createLogCollector();

    logGuestLines([{ source, message: "hello", pairs: [] }], 0, logger);

    // What the guest said is a field; the message is ours.
    expect(lines).toEqual([{ level, message, fields: { guest: "hello" } }]);
  });

  it("keeps the order of the lines", () => {
    const { logger, lines } = createLogCollector();
    const said = ["one", "two", "three"];

    logGuestLines(
      said.map((message) => ({ source: "info", message, pairs: [] })),
      0,
      logger,
    );

    expect(lines.map(({ fields }) => fields["guest"])).toEqual(said);
  });

  it("puts the pairs below kv, the last of equal keys", () => {
    const { logger, lines } = createLogCollector();
    const pairs: GuestLine["pairs"] = [
      ["a", "1"],
      ["b", "2"],
      ["a", "3"],
    ];

    logGuestLines([{ source: "info", message: "hello", pairs }], 0, logger);

    expect(lines[0]?.fields).toEqual({
      guest: "hello",
      kv: { a: "3", b: "2" },
    });
  });

  it("takes keys that mean something to an object for mere keys", () => {
    const { logger, lines } = createLogCollector();
    const keys = ["__proto__", "constructor", "toJSON", "guest", "level"];
    const pairs = keys.map((key): [string, string] => [key, `value of ${key}`]);

    logGuestLines([{ source: "info", message: "hello", pairs }], 0, logger);

    const fields = lines[0]?.fields ?? {};
    const kv = fields["kv"] as object;
    expect(fields["guest"]).toBe("hello");
    expect(Object.getPrototypeOf(kv)).toBe(Object.prototype);
    expect(Object.entries(kv)).toEqual(pairs);
    expect("polluted" in {}).toBe(false);
  });

  it("says how many lines were dropped, last", () => {
    const { logger, lines } = createLogCollector();

    logGuestLines([{ source: "info", message: "hello", pairs: [] }], 7, logger);

    expect(lines[1]).toEqual({
      level: "warn",
      message: "guest output truncated",
      fields: { droppedLines: 7 },
    });
  });

  it("logs nothing of a guest that said nothing", () => {
    const { logger, lines } = createLogCollector();

    logGuestLines([], 0, logger);

    expect(lines).toEqual([]);
  });
});
