/**
 * @typedef {{ passed: number, failed: number }} Counts
 *
 * @typedef {object} TestFile
 * @property {string} name its path
 * @property {string} status
 * @property {{ status: string, fullName: string, failureMessages: string[] }[]} assertionResults
 */

/**
 * A test file that could not even be loaded has no tests to count, so it counts as one failure.
 *
 * @param {string[]} reports JSON reports of vitest, the later one about files that failed in the
 *   earlier ones; an empty one = it did not get that far
 * @param {number} exitCode of the last one
 * @returns {Counts}
 */
export function countVitest(reports, exitCode) {
  const files = new Map(
    reports.flatMap(testFiles).map((file) => [file.name, file]),
  );
  const counts = { passed: 0, failed: 0 };
  for (const file of files.values()) {
    const passed = file.assertionResults.filter(
      ({ status }) => status === "passed",
    );
    counts.passed += passed.length;
    counts.failed += failures(file).length;
  }
  return withExitCode(counts, exitCode);
}

/**
 * @param {string} report of vitest, in JSON
 * @returns {{ file: string, tests: string[] }[]} what failed: path, and its tests, each with
 *   the first line of what was wrong
 */
export function failedFiles(report) {
  return testFiles(report)
    .map((file) => ({ file: file.name, tests: failures(file) }))
    .filter(({ tests }) => tests.length > 0);
}

/**
 * @param {string} output of `cargo test`: one result line for each test binary
 * @param {number} exitCode
 * @returns {Counts}
 */
export function countCargo(output, exitCode) {
  const line =
    /^test result: .* (?<passed>\d+) passed; (?<failed>\d+) failed;/gm;
  const counts = { passed: 0, failed: 0 };
  for (const { groups } of output.matchAll(line)) {
    counts.passed += Number(groups?.["passed"]);
    counts.failed += Number(groups?.["failed"]);
  }
  return withExitCode(counts, exitCode);
}

/**
 * @param {number} failedChecks steps without tests of their own that failed
 * @param {Counts[]} counts
 * @returns {string} `N passed, N failed`
 */
export function summary(failedChecks, counts) {
  const passed = counts.reduce((sum, count) => sum + count.passed, 0);
  const failed = counts.reduce((sum, count) => sum + count.failed, 0);
  return `${String(passed)} passed, ${String(failed + failedChecks)} failed`;
}

/**
 * A run that failed without a failed test to show for it is one failure.
 *
 * @param {Counts} counts
 * @param {number} exitCode
 * @returns {Counts}
 */
function withExitCode(counts, exitCode) {
  const least = exitCode === 0 ? 0 : 1;
  return { passed: counts.passed, failed: Math.max(counts.failed, least) };
}

/**
 * @param {string} report
 * @returns {TestFile[]}
 */
function testFiles(report) {
  if (report === "") return [];
  /** @type {{ testResults: TestFile[] }} */
  const { testResults } = JSON.parse(report);
  return testResults;
}

/**
 * @param {TestFile} file
 * @returns {string[]} one at least when the file failed
 */
function failures(file) {
  const failed = file.assertionResults.filter(
    ({ status }) => status === "failed",
  );
  if (failed.length === 0 && file.status === "failed") {
    return ["(the file itself)"];
  }
  return failed.map(({ fullName, failureMessages }) =>
    [fullName, ...failureMessages.map(firstLine)].join(": "),
  );
}

/** @param {string} text */
function firstLine(text) {
  return text.split("\n", 1)[0] ?? "";
}
