import { describe, expect, it } from "vitest";

import { readPlainScalar } from "../../../../src/cli/files/scalar.js";

/** What sigs.k8s.io/yaml 1.6.0 makes of each, which Crossplane and kubectl read files with. */
const READINGS: readonly (readonly [unknown, string])[] = [
  [true, "y Y yes Yes YES true True TRUE on On ON"],
  [false, "n N no No NO false False FALSE off Off OFF"],
  [null, "~ null Null NULL"],
  [7, "7 07 007 0_7 0o7 0O7 +7 0x7 0X7 0b111 0B111 7. 7.0 7e0 70e-1"],
  [8, "8 08 0_8 08.0 0010"],
  [15, "15 0o17 017 0xF 0xf 0b1111 1_5 1__5 15_ 0x_F"],
  [-31, "-31 -0x1F -037 -0b11111"],
  [1000, "1000 1_000 1e3 1E3 1e+3 1.e3 01_750"],
  [0, "0 00 -0 +0 0x0 0. .0 0b0"],
  [0.5, "0.5 .5 +.5 5e-1 .5_0 0_0.5"],
  [10.5, "10.5 1_0.5 1_0.5_0"],
  [9007199254740992, "9007199254740992 9007199254740993"],
  [2 ** 63, "9223372036854775807 0x7FFFFFFFFFFFFFFF"],
  [-(2 ** 63), "-9223372036854775808 -0x8000000000000000"],
  [2 ** 64, "18446744073709551615 0xFFFFFFFFFFFFFFFF"],
  [1.2345678901234568e29, "123456789012345678901234567890"],
  // Too large for octal, so decimal.
  [7.777777777777778e23, "0777777777777777777777777"],
  [Infinity, ".inf .Inf .INF +.inf"],
  [-Infinity, "-.inf -.Inf -.INF"],
  [NaN, ".nan .NaN .NAN"],
];

const TEXTS =
  "yEs nO tRue nUll oN 1:30 190:20:30 2001-01-01 2001-1-1 2001-12-14t21:59:43.10-05:00 " +
  "0b12 0o8 0x 0b 0o 0xg _1 ._5 .5_ .5__0 1e 1e400 1.5.1 1.2e3.4 0x1p4 . .. + - = << Infinity inf nan " +
  "0x1FFFFFFFFFFFFFFFFF +0xFFFFFFFFFFFFFFFF -0x8000000000000001 0o7777777777777777777777777 1,000 ١ 1\n2";

describe("cli/files/scalar", () => {
  it.each(
    READINGS.flatMap(([want, texts]) =>
      texts.split(" ").map((text) => ({ name: text, text, want })),
    ),
  )("reads $name as $want", ({ text, want }) => {
    const value = readPlainScalar(text);

    // The sign of zero is nobody's business.
    expect(value === 0 ? 0 : value).toBe(want);
  });

  it.each(TEXTS.split(" ").map((text) => ({ name: text, text })))(
    "leaves $name text",
    ({ text }) => {
      expect(readPlainScalar(text)).toBe(text);
    },
  );

  it("reads nothing as null", () => {
    expect(readPlainScalar("")).toBeNull();
  });

  it.each([
    { name: "decimal digits", text: "9".repeat(1_000_000), want: "text" },
    { name: "leading zeros", text: `0x${"0".repeat(1_000_000)}1`, want: 1 },
    { name: "hex digits", text: `0x${"f".repeat(1_000_000)}`, want: "text" },
    { name: "underscores", text: `1${"_".repeat(1_000_000)}`, want: 1 },
    {
      name: "underscores behind a dot",
      text: `.${"_".repeat(1_000_000)}`,
      want: "text",
    },
  ])("takes a million $name", ({ text, want }) => {
    const value = readPlainScalar(text);

    expect(value === text ? "text" : value).toBe(want);
  });
});
