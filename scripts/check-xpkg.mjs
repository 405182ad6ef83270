// Checks packages from their bytes alone, and says in a sentence what is wrong.
//
//   node scripts/check-xpkg.mjs <name.xpkg or directory of an OCI layout>...
import { checkXpkg } from "./lib/xpkg/check.mjs";
import { runScript, UsageError } from "./lib/xpkg/command.mjs";

runScript(
  "node scripts/check-xpkg.mjs <name.xpkg or OCI layout>…",
  { allowPositionals: true },
  ({ positionals }) => {
    if (positionals.length === 0) throw new UsageError("nothing to check");
    for (const place of positionals) {
      const problems = checkXpkg(place);
      for (const problem of problems) console.log(`${place}: ${problem}`);
      if (problems.length === 0) console.log(`${place}: is a good package`);
      else process.exitCode = 1;
    }
  },
);
