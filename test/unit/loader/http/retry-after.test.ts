import { describe, expect, it } from "vitest";
import { retryAfterOf } from "../../../../src/loader/http/retry-after.js";
import { answer } from "./doubles.js";

describe("loader/http/retry-after", () => {
  it.each([
    { values: ["0"], want: { kind: "delay", delayMs: 0 } },
    { values: ["120"], want: { kind: "delay", delayMs: 120_000 } },
    {
      values: ["9999999999"],
      want: { kind: "delay", delayMs: 9_999_999_999_000 },
    },
    {
      values: ["Fri, 31 Dec 1999 23:59:59 GMT"],
      want: { kind: "date", atMs: 946_684_799_000 },
    },
    ...[
      [],
      ["1", "1"],
      [""],
      ["99999999999"],
      ["1.5"],
      ["-1"],
      ["+1"],
      ["0x10"],
      ["1e3"],
      ["1 s"],
      ["soon"],
      ["1999-12-31"],
      ["Fri, 31 Dec 1999 23:59:59 CET"],
      ["Fri, 99 Dec 1999 23:59:59 GMT"],
      ["Fri, 31 Foo 1999 23:59:59 GMT"],
      ["Friday, 31-Dec-99 23:59:59 GMT"],
    ].map((values) => ({ values, want: null })),
  ])("$values", ({ values, want }) => {
    const response = answer({ headers: { "retry-after": values } });

    expect(retryAfterOf(response)).toEqual(want);
  });
});
