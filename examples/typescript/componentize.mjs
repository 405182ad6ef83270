/** Turns out/greeter.js into out/greeter.wasm, a component of the world in wit/. */
import { readFile, writeFile } from "node:fs/promises";

import { componentize } from "@bytecodealliance/componentize-js";

const source = await readFile("out/greeter.js", "utf8");
const { component } = await componentize(source, {
  witPath: "wit/world.wit",
  worldName: "function",
  // The function computes; what it does not use is not linked in, and nothing has to grant it.
  disableFeatures: ["http", "fetch-event"],
});
await writeFile("out/greeter.wasm", component);
