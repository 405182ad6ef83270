import { describe, expect, it } from "vitest";

import {
  countCargo,
  countVitest,
  summary,
} from "../../../scripts/lib/test-counts.mjs";

const passingFile = {
  status: "passed",
  assertionResults: [{ status: "passed" }, { status: "passed" }],
};
const failingFile = {
  status: "failed",
  assertionResults: [{ status: "passed" }, { status: "failed" }],
};
const fileThatDoesNotLoad = { status: "failed", assertionResults: [] };

describe("scripts/test-counts", () => {
  it.each([
    {
      name: "all pass",
      text: report(3, 0, [passingFile]),
      exitCode: 0,
      want: { passed: 3, failed: 0 },
    },
    {
      name: "one fails",
      text: report(3, 1, [passingFile, failingFile]),
      exitCode: 1,
      want: { passed: 3, failed: 1 },
    },
    {
      name: "a file does not load",
      text: report(2, 1, [failingFile, fileThatDoesNotLoad]),
      exitCode: 1,
      want: { passed: 2, failed: 2 },
    },
    {
      name: "it failed outside any test",
      text: report(2, 0, [passingFile]),
      exitCode: 1,
      want: { passed: 2, failed: 1 },
    },
    {
      name: "it never ran",
      text: "",
      exitCode: 1,
      want: { passed: 0, failed: 1 },
    },
  ])("reads vitest's report when $name", ({ text, exitCode, want }) => {
    expect(countVitest(text, exitCode)).toEqual(want);
  });

  it.each([
    {
      name: "two binaries",
      output:
        "running 3 tests\n" +
        "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n" +
        "test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n",
      exitCode: 101,
      want: { passed: 5, failed: 1 },
    },
    {
      name: "a compile error",
      output: "error: could not compile `engine` (lib)\n",
      exitCode: 101,
      want: { passed: 0, failed: 1 },
    },
  ])("reads cargo's output of $name", ({ output, exitCode, want }) => {
    expect(countCargo(output, exitCode)).toEqual(want);
  });

  it("adds the checks that failed", () => {
    const counts = [
      { passed: 5, failed: 1 },
      { passed: 2, failed: 0 },
    ];

    expect(summary(2, counts)).toBe("7 passed, 3 failed");
  });
});

function report(
  numPassedTests: number,
  numFailedTests: number,
  testResults: unknown[],
): string {
  return JSON.stringify({ numPassedTests, numFailedTests, testResults });
}
