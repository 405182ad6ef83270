/**
 * @typedef {{ passed: number, failed: number }} Counts
 *
 * @typedef {object} VitestReport
 * @property {number} numPassedTests
 * @property {number} numFailedTests
 * @property {{ status: string, assertionResults: { status: string }[] }[]} testResults
 */

/**
 * A test file that could not even be loaded has no tests to count, so it counts as one failure.
 *
 * @param {string} text vitest's JSON report; empty = it did not get that far
 * @param {number} exitCode
 * @returns {Counts}
 */
export function countVitest(text, exitCode) {
  if (text === "") {
    return withExitCode({ passed: 0, failed: 0 }, exitCode);
  }
  const report = /** @type {VitestReport} */ (JSON.parse(text));
  const brokenFiles = report.testResults.filter(
    (file) =>
      file.status === "failed" &&
      !file.assertionResults.some((test) => test.status === "failed"),
  );
  const counts = {
    passed: report.numPassedTests,
    failed: report.numFailedTests + brokenFiles.length,
  };
  return withExitCode(counts, exitCode);
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
