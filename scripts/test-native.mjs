// Runs the Rust unit tests in the shared target directory: `npm run test:native`.
import path from "node:path";

import { run } from "./lib/run.mjs";
import { reportFailure, thisMachine } from "./lib/setup.mjs";
import { cargoEnv, withTargetDir } from "./lib/target-dir.mjs";
import { checkToolchain } from "./lib/toolchain.mjs";

const machine = thisMachine();
try {
  checkToolchain(machine);
  await withTargetDir(machine, () =>
    run(
      machine,
      [
        "cargo",
        "test",
        "--release",
        "--locked",
        "--workspace",
        "--manifest-path",
        path.join(machine.root, "native/Cargo.toml"),
      ],
      { what: "cargo test", env: cargoEnv(machine) },
    ),
  );
} catch (thrown) {
  reportFailure(thrown);
  process.exit(1);
}
