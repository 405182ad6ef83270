// Prints `N passed, N failed`, the last line of .ci/run.
//
//   node scripts/test-counts.mjs <failed checks> <exit code of cargo test> <its output> \
//     <exit code of the last run of vitest> <JSON reports of vitest, from first to last>...
import { countCargo, countVitest, summary } from "./lib/test-counts.mjs";
import { textOf } from "./lib/text-of.mjs";

const [failedChecks, cargoCode, cargoFile, vitestCode, ...vitestFiles] =
  process.argv.slice(2);
console.log(
  summary(Number(failedChecks), [
    countVitest(vitestFiles.map(textOf), Number(vitestCode)),
    countCargo(textOf(cargoFile), Number(cargoCode)),
  ]),
);
