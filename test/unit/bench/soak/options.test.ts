import { describe, expect, it } from "vitest";

import { parseSoakOptions } from "../../../../bench/soak/options.js";

describe("bench/soak/options", () => {
  it("has defaults", () => {
    expect(parseSoakOptions([])).toEqual({
      calls: 100_000,
      maxDurationMs: 1_200_000,
      maxGrowthPercent: 10,
      maxHealthMs: 50,
    });
  });

  it("takes every flag", () => {
    const options = parseSoakOptions([
      ...["--requests", "2000", "--minutes", "0.5"],
      ...["--max-growth=-100", "--max-health", "200"],
    ]);

    expect(options).toEqual({
      calls: 2000,
      maxDurationMs: 30_000,
      maxGrowthPercent: -100,
      maxHealthMs: 200,
    });
  });

  it.each([
    { flag: "--requests", text: "999", want: "1000 to 10000000" },
    { flag: "--requests", text: "10000001", want: "1000 to 10000000" },
    { flag: "--requests", text: "many", want: "1000 to 10000000" },
    { flag: "--minutes", text: "0", want: "0.1 to 600" },
    { flag: "--minutes", text: "601", want: "0.1 to 600" },
    { flag: "--max-growth", text: "", want: "-100 to 1000" },
    { flag: "--max-health", text: "NaN", want: "0 to 60000" },
  ])("refuses $flag $text", ({ flag, text, want }) => {
    expect(() => parseSoakOptions([flag, text])).toThrow(
      `${flag}: expected ${want}, got "${text}"`,
    );
  });
});
