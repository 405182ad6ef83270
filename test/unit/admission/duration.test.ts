import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseGoDuration } from "../../../src/admission/index.js";

const SECOND = 1_000_000_000n;

describe("admission/duration", () => {
  it.each([
    { text: "0", want: 0n },
    { text: "-0", want: 0n },
    { text: "+0", want: 0n },
    { text: "0s", want: 0n },
    { text: "5s", want: 5n * SECOND },
    { text: "+5s", want: 5n * SECOND },
    { text: "-5s", want: -5n * SECOND },
    { text: "1h30m", want: 5400n * SECOND },
    { text: "1.5s", want: 1_500_000_000n },
    { text: "1.s", want: SECOND },
    { text: ".5s", want: 500_000_000n },
    { text: "1s1s", want: 2n * SECOND, reason: "a unit may come twice" },
    { text: "3m2h", want: 7380n * SECOND, reason: "in any order" },
    { text: "1ns", want: 1n },
    { text: "1us", want: 1000n },
    { text: "1\u00b5s", want: 1000n, reason: "micro sign" },
    { text: "1\u03bcs", want: 1000n, reason: "Greek mu" },
    { text: "1ms", want: 1_000_000n },
    { text: "39h9m14.425s", want: 140_954_425_000_000n },
    { text: "0.3333333333333333333h", want: 1200n * SECOND },
    { text: "0.1ns", want: 0n, reason: "below a nanosecond is cut off" },
    { text: "0.100000000000000000000h", want: 360n * SECOND },
    {
      text: "0.830103483285477580700h",
      want: 2_988_372_539_827n,
      reason: "rounded as Go does",
    },
    {
      text: "9007199254740993ns",
      want: 9_007_199_254_740_993n,
      reason: "not through a double",
    },
    { text: "9223372036854775807ns", want: 9_223_372_036_854_775_807n },
    { text: "9223372036.854775807s", want: 9_223_372_036_854_775_807n },
    { text: "-9223372036854775808ns", want: -9_223_372_036_854_775_808n },
  ])("reads $text as $want ns", ({ text, want }) => {
    expect(parseGoDuration(text)).toEqual({ kind: "ok", nanos: want });
  });

  it.each([
    { text: "", want: "expected a number and a unit" },
    { text: "-", want: "expected a number and a unit" },
    { text: "5", want: "missing unit, expected ns, us, ms, s, m or h" },
    { text: "00", want: "missing unit" },
    { text: "1h5", want: "missing unit" },
    { text: "1.5.5s", want: "missing unit" },
    { text: "1d", want: 'unknown unit "d", expected ns, us, ms, s, m or h' },
    { text: "1S", want: 'unknown unit "S"' },
    { text: "1 s", want: 'unknown unit " s"' },
    { text: "1s ", want: 'unknown unit "s "' },
    { text: "1e3s", want: 'unknown unit "e"' },
    { text: "1s\n", want: 'unknown unit "s\\u000a"' },
    { text: "1h-5m", want: 'unknown unit "h-"' },
    { text: " 1s", want: "expected a number before each unit" },
    { text: "s", want: "expected a number before each unit" },
    { text: ".s", want: "expected a number before each unit" },
    { text: "--5s", want: "expected a number before each unit" },
    {
      text: "9223372037s",
      want: "longer than the 292 years a duration can hold",
    },
    { text: "9223372036854775808ns", want: "longer than the 292 years" },
    { text: "-9223372036854775809ns", want: "longer than the 292 years" },
    { text: "2562048h", want: "longer than the 292 years" },
    { text: "9223372036s1s", want: "longer than the 292 years" },
    { text: `${"9".repeat(120)}h`, want: "longer than the 292 years" },
    { text: `${"1".repeat(128)}s`, want: "longer than 128 characters" },
  ])("refuses $text", ({ text, want }) => {
    const result = parseGoDuration(text);

    expect(result).toMatchObject({ kind: "error" });
    const message = result.kind === "error" ? result.message : "";
    expect(message).toContain(`is not a Go duration such as 5s: ${want}`);
  });

  it("reads back every duration that is written in whole units", () => {
    const nanos = fc.bigInt({ min: -(1n << 63n), max: (1n << 63n) - 1n });

    fc.assert(
      fc.property(nanos, (want) => {
        const size = want < 0n ? -want : want;
        const text = [
          want < 0n ? "-" : "",
          `${String(size / (3600n * SECOND))}h`,
          `${String((size / (60n * SECOND)) % 60n)}m`,
          `${String((size / SECOND) % 60n)}s`,
          `${String(size % SECOND)}ns`,
        ].join("");

        expect(parseGoDuration(text)).toEqual({ kind: "ok", nanos: want });
      }),
    );
  });

  it("reads back seconds written with nine decimals, as Go prints them", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: (1n << 63n) - 1n }), (want) => {
        const decimals = String(want % SECOND).padStart(9, "0");

        const result = parseGoDuration(`${String(want / SECOND)}.${decimals}s`);

        expect(result).toEqual({ kind: "ok", nanos: want });
      }),
    );
  });
});
