import { describe, expect, it } from "vitest";

import { ascending, percentile } from "../../../bench/percentile.js";
import { formatUs, judge, renderTable } from "../../../bench/table.js";

describe("bench/table", () => {
  it.each([
    {
      name: "at a limit from above",
      figure: 1.5,
      kind: "at-most",
      want: "≤ 1.5 × echo: met",
    },
    {
      name: "over it",
      figure: 1.51,
      kind: "at-most",
      want: "≤ 1.5 × echo: missed",
    },
    {
      name: "at a limit from below",
      figure: 1.5,
      kind: "at-least",
      want: "≥ 1.5 × echo: met",
    },
    {
      name: "under it",
      figure: 1.49,
      kind: "at-least",
      want: "≥ 1.5 × echo: missed",
    },
    {
      name: "that is no number",
      figure: NaN,
      kind: "at-most",
      want: "≤ 1.5 × echo: missed",
    },
    {
      name: "that is no number",
      figure: NaN,
      kind: "at-least",
      want: "≥ 1.5 × echo: missed",
    },
  ] as const)("judges a figure $name ($kind)", ({ figure, kind, want }) => {
    expect(judge(figure, { kind, limit: 1.5, unit: "× echo" })).toBe(want);
  });

  it.each([
    { us: 0, want: "0 µs" },
    { us: 87.4, want: "87 µs" },
    { us: 4210, want: "4.21 ms" },
    { us: 43_210, want: "43.2 ms" },
    { us: 432_100, want: "432 ms" },
    { us: 43_000_000, want: "43.0 s" },
    { us: -7_669, want: "-7.67 ms" },
    { us: NaN, want: "–" },
  ])("writes $us µs as $want", ({ us, want }) => {
    expect(formatUs(us)).toBe(want);
  });

  it("pads every column to its widest cell", () => {
    const row = {
      what: "a long name",
      ours: "1 µs",
      beside: "",
      ratio: "",
      target: "",
    };

    expect(renderTable([row]).split("\n")).toEqual([
      "| what        | ours | beside | ratio | target |",
      "| ----------- | ---- | ------ | ----- | ------ |",
      "| a long name | 1 µs |        |       |        |",
    ]);
  });
});

describe("bench/percentile", () => {
  it.each([
    { percent: 50, want: 2 },
    { percent: 51, want: 3 },
    { percent: 99, want: 4 },
    { percent: 100, want: 4 },
    { percent: 0, want: 1 },
  ])("takes the nearest rank for $percent %", ({ percent, want }) => {
    expect(percentile(ascending([4, 1, 3, 2]), percent)).toBe(want);
  });

  it("has no figure for no samples", () => {
    expect(percentile([], 50)).toBeNaN();
  });
});
