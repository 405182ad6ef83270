import { describe, expect, it } from "vitest";

import {
  countCargo,
  countVitest,
  failedFiles,
  summary,
} from "../../../scripts/lib/test-counts.mjs";

const passingFile = testFile("passing.test.ts", "passed", {
  "says yes": "passed",
  "says no": "passed",
});
const failingFile = testFile("failing.test.ts", "failed", {
  "comes in time": "failed",
  "comes at all": "passed",
});
const fileThatDoesNotLoad = testFile("broken.test.ts", "failed", {});

describe("scripts/test-counts", () => {
  it.each([
    {
      name: "all pass",
      reports: [report(passingFile)],
      exitCode: 0,
      want: { passed: 2, failed: 0 },
    },
    {
      name: "one is skipped",
      reports: [report(testFile("a.test.ts", "passed", { a: "skipped" }))],
      exitCode: 0,
      want: { passed: 0, failed: 0 },
    },
    {
      name: "one fails",
      reports: [report(passingFile, failingFile)],
      exitCode: 1,
      want: { passed: 3, failed: 1 },
    },
    {
      name: "a file does not load",
      reports: [report(failingFile, fileThatDoesNotLoad)],
      exitCode: 1,
      want: { passed: 1, failed: 2 },
    },
    {
      name: "it failed outside any test",
      reports: [report(passingFile)],
      exitCode: 1,
      want: { passed: 2, failed: 1 },
    },
    {
      name: "it never ran",
      reports: [""],
      exitCode: 1,
      want: { passed: 0, failed: 1 },
    },
    {
      name: "what failed passes when run again",
      reports: [
        report(passingFile, failingFile),
        report(
          testFile("failing.test.ts", "passed", {
            "comes in time": "passed",
            "comes at all": "passed",
          }),
        ),
      ],
      exitCode: 0,
      want: { passed: 4, failed: 0 },
    },
    {
      name: "it fails again",
      reports: [report(passingFile, failingFile), report(failingFile)],
      exitCode: 1,
      want: { passed: 3, failed: 1 },
    },
    {
      name: "running it again came to nothing",
      reports: [report(passingFile, failingFile), ""],
      exitCode: 1,
      want: { passed: 3, failed: 1 },
    },
  ])("reads vitest's reports when $name", ({ reports, exitCode, want }) => {
    expect(countVitest(reports, exitCode)).toEqual(want);
  });

  it("names what failed", () => {
    const failed = failedFiles(
      report(passingFile, failingFile, fileThatDoesNotLoad),
    );

    expect(failed).toEqual([
      { file: "failing.test.ts", tests: ["comes in time: AssertionError: no"] },
      { file: "broken.test.ts", tests: ["(the file itself)"] },
    ]);
  });

  it("names nothing in a report that is not there", () => {
    expect(failedFiles("")).toEqual([]);
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

function report(...testResults: unknown[]): string {
  return JSON.stringify({ testResults });
}

function testFile(
  name: string,
  status: string,
  tests: Record<string, string>,
): unknown {
  const assertionResults = Object.entries(tests).map(([fullName, outcome]) => ({
    fullName,
    status: outcome,
    failureMessages:
      outcome === "failed" ? ["AssertionError: no\n    at here"] : [],
  }));
  return { name, status, assertionResults };
}
