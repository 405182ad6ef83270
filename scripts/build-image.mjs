// Makes the image that runs the program, as an archive, without Docker: of what `npm run build` made,
// the packages it needs, and Node.
//
//   node scripts/build-image.mjs --output image.tar [--base base.tar]
//
// `--base` is an image with Node, as `docker save` writes it. Without it, this machine's own Node goes
// in with the libraries it is linked with.
import path from "node:path";

import { runScript, UsageError } from "./lib/xpkg/command.mjs";
import {
  checkOutput,
  readImage,
  writeOutput,
} from "./lib/xpkg/given-files.mjs";
import { imageArchive } from "./lib/xpkg/image-archive.mjs";
import { runtimeImage } from "./lib/xpkg/runtime-image.mjs";

const root = path.dirname(import.meta.dirname);

runScript(
  "node scripts/build-image.mjs --output <image.tar> [--base <image.tar>]",
  { options: { output: { type: "string" }, base: { type: "string" } } },
  ({ values: { output, base } }) => {
    if (output === undefined) throw new UsageError("--output is missing");
    checkOutput(output);
    const below = base === undefined ? null : readImage("--base", base);
    writeOutput(output, imageArchive(runtimeImage(root, below)));
  },
);
