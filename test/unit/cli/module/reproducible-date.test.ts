import { describe, expect, it } from "vitest";
import { createdDate } from "../../../../src/cli/module/reproducible-date.js";

const NOW_MS = Date.UTC(2026, 1, 3, 4, 5, 6, 789);

describe("cli/module/reproducible-date", () => {
  it.each([
    { name: "nothing", env: {}, want: "2026-02-03T04:05:06.789Z" },
    {
      name: "an empty variable",
      env: { SOURCE_DATE_EPOCH: "" },
      want: "2026-02-03T04:05:06.789Z",
    },
    {
      name: "the first second",
      env: { SOURCE_DATE_EPOCH: "0" },
      want: "1970-01-01T00:00:00.000Z",
    },
    {
      name: "seconds",
      env: { SOURCE_DATE_EPOCH: "1700000000" },
      want: "2023-11-14T22:13:20.000Z",
    },
    {
      name: "leading zeros, which are no octal",
      env: { SOURCE_DATE_EPOCH: "0000000010" },
      want: "1970-01-01T00:00:10.000Z",
    },
    {
      name: "the last second with a year of four digits",
      env: { SOURCE_DATE_EPOCH: "253402300799" },
      want: "9999-12-31T23:59:59.000Z",
    },
  ])("reads $name", ({ env, want }) => {
    const date = createdDate(env, NOW_MS);

    expect(date).toEqual({ kind: "ok", value: new Date(want) });
  });

  it.each<{ text: string; shown?: string }>([
    { text: "253402300800" },
    { text: "999999999999999999999" },
    { text: "-1" },
    { text: "+1" },
    { text: "1.5" },
    { text: "1e9" },
    { text: "0x10" },
    { text: " 1" },
    { text: "1\n", shown: "1\\u000a" },
    { text: "\u0661" },
    { text: "2026-02-03" },
    { text: "NaN" },
  ])("refuses $text", ({ text, shown = text }) => {
    const date = createdDate({ SOURCE_DATE_EPOCH: text }, NOW_MS);

    expect(date).toEqual({
      kind: "error",
      message: `SOURCE_DATE_EPOCH: expected whole seconds since 1970, from 0 to 253402300799, got "${shown}"`,
    });
  });
});
