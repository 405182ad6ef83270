// Prints `N passed, N failed`, the last line of .ci/run.
//
//   node scripts/test-counts.mjs <failed checks> \
//     <exit code of vitest> <its JSON report> <exit code of cargo test> <its output>
import { readFileSync } from "node:fs";

import { countCargo, countVitest, summary } from "./lib/test-counts.mjs";

const [failedChecks, vitestCode, vitestFile, cargoCode, cargoFile] =
  process.argv.slice(2);
console.log(
  summary(Number(failedChecks), [
    countVitest(textOf(vitestFile), Number(vitestCode)),
    countCargo(textOf(cargoFile), Number(cargoCode)),
  ]),
);

/**
 * @param {string | undefined} file
 * @returns {string} empty when the step that writes it did not get that far
 */
function textOf(file) {
  try {
    return file === undefined ? "" : readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
