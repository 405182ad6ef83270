// Makes a clone ready to run: npm packages, the native addon, dist/. Does only what changed.
// `npm run demo`, `npm test` and `npm run build` run it before anything is installed, so it is plain
// Node without dependencies; and this file stays readable by old versions of Node, which is why
// everything newer is loaded after the version check.
//
//   node scripts/setup.mjs [--no-install]
import { checkNode } from "./lib/node-version.mjs";

const tooOld = checkNode(process.versions.node);
if (tooOld !== null) {
  console.error("setup: " + tooOld);
  process.exit(1);
}

const { reportFailure, setup, thisMachine } = await import("./lib/setup.mjs");
try {
  await setup(thisMachine(), {
    install: !process.argv.includes("--no-install"),
  });
} catch (thrown) {
  reportFailure(thrown);
  process.exit(1);
}
