import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { createRefusalLog } from "../../../src/function/tls-refusal.js";
import { realClock, recordingLogger } from "./fixtures.js";

describe("function/tls-refusal", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout"] });
  });
  afterEach(() => vi.useRealTimers());

  function create() {
    const { logger, lines } = recordingLogger();
    let nowMs = 1_000;
    const clock = { ...realClock, monotonicMs: () => nowMs };
    const tell = createRefusalLog(clock, logger);
    return {
      lines,
      tell: (remoteAddress: string, reason = "no client certificate") => {
        tell(remoteAddress, reason);
      },
      pass: (ms: number) => {
        nowMs += ms;
        vi.advanceTimersByTime(ms);
      },
    };
  }

  it("writes 10 lines at once, then 10 a second, however many peers there are", () => {
    const { lines, tell, pass } = create();

    for (let i = 0; i < 500; i++) tell(`10.0.0.${i}`);
    expect(lines).toHaveLength(10);

    const refused = () =>
      lines.filter(({ message }) => message === "client refused");
    for (let i = 0; i < 72; i++) {
      pass(125);
      for (let j = 0; j < 5; j++) tell(`10.0.${i}.${j}`);
    }
    expect(refused()).toHaveLength(10 + 90);
  });

  it("writes no more for one peer with many reasons", () => {
    const { lines, tell } = create();

    for (let i = 0; i < 500; i++) tell("10.0.0.1", `reason ${i}`);

    expect(lines).toHaveLength(10);
  });

  it("saves up no more than 10 lines", () => {
    const { lines, tell, pass } = create();
    pass(3_600_000);

    for (let i = 0; i < 500; i++) tell(`10.0.0.${i}`);

    expect(lines).toHaveLength(10);
  });

  it("tells every 10 s how many lines there are not", () => {
    const { lines, tell, pass } = create();
    const untold = () => lines.filter(({ message }) => /many/.test(message));

    for (let i = 0; i < 12; i++) tell(`10.0.0.${i}`);
    pass(9_999);
    expect(untold()).toEqual([]);
    for (let i = 0; i < 25; i++) tell(`10.0.1.${i}`);
    pass(1);

    const line = {
      level: "warn",
      message: "clients refused, too many to tell",
      fields: { dropped: 2 + 15 },
    };
    expect(untold()).toEqual([line]);
    pass(60_000);
    expect(untold()).toEqual([line]);

    for (let i = 0; i < 13; i++) tell(`10.0.2.${i}`);
    pass(10_000);
    expect(untold()).toEqual([line, { ...line, fields: { dropped: 3 } }]);
  });

  it("tells of a peer later that there was no line for", () => {
    const { lines, tell, pass } = create();
    for (let i = 0; i < 11; i++) tell(`10.0.0.${i}`);

    pass(100);
    for (let i = 0; i < 11; i++) tell(`10.0.0.${i}`);

    expect(lines.map(({ fields }) => fields["peer"])).toEqual(
      Array.from({ length: 11 }, (_, i) => `10.0.0.${i}`),
    );
  });
});
