// Prints what failed in a run of vitest: a path on each line, or with --names the tests, too.
//
//   node scripts/failed-tests.mjs [--names] <its JSON report>
import { relative } from "node:path";

import { failedFiles } from "./lib/test-counts.mjs";
import { textOf } from "./lib/text-of.mjs";

const withNames = process.argv[2] === "--names";
for (const { file, tests } of failedFiles(textOf(process.argv.at(-1)))) {
  const path = relative(process.cwd(), file);
  const lines = withNames ? tests.map((test) => `${path}: ${test}`) : [path];
  console.log(lines.join("\n"));
}
