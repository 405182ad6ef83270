// Makes a Crossplane package of an image, without Docker: an .xpkg file for `crossplane xpkg push`,
// and an OCI layout, with the annotation that archives cannot have, for all other tools. Equal
// input gives equal bytes.
//
//   node scripts/build-xpkg.mjs --image image.tar [--image other-architecture.tar]
//     [--package package] [--output function-wasm.xpkg] [--oci-layout dir]
//
// With several images, one for each architecture, there is an .xpkg file for each, and one layout.
import path from "node:path";

import { archiveNames } from "./lib/xpkg/archive-names.mjs";
import { about } from "./lib/xpkg/attempt.mjs";
import { runScript, UsageError } from "./lib/xpkg/command.mjs";
import {
  checkOutput,
  readImage,
  writeOutput,
} from "./lib/xpkg/given-files.mjs";
import { imageArchive } from "./lib/xpkg/image-archive.mjs";
import {
  makeLayoutDir,
  ociLayout,
  writeLayout,
} from "./lib/xpkg/oci-layout.mjs";
import { addPackage } from "./lib/xpkg/package-layer.mjs";
import { packageStream } from "./lib/xpkg/package-stream.mjs";

const root = path.dirname(import.meta.dirname);

runScript(
  "node scripts/build-xpkg.mjs --image <image.tar>… [--package <dir>] [--output <name.xpkg>] [--oci-layout <dir>]",
  {
    options: {
      image: { type: "string", multiple: true },
      package: { type: "string" },
      output: { type: "string" },
      "oci-layout": { type: "string" },
    },
  },
  ({ values: { image: files = [], output, package: given, ...rest } }) => {
    const layout = rest["oci-layout"];
    const dir = given ?? path.join(root, "package");
    if (files.length === 0) throw new UsageError("--image is missing");
    if (output === undefined && layout === undefined) {
      throw new UsageError("--output and --oci-layout are both missing");
    }
    if (output !== undefined) checkOutput(output);
    const stream = about("--package", () => packageStream(dir));
    const images = files.map((file) => {
      const image = readImage("--image", file);
      return about(`--image ${file}`, () => addPackage(image, stream));
    });
    const names = about("--image", () =>
      archiveNames(output ?? "", images, files),
    );
    // Before the archives, which are not to be left behind when the layout is refused.
    if (layout !== undefined) {
      refuseOutputsIn(layout, output === undefined ? [] : names);
      about("--oci-layout", () => makeLayoutDir(layout));
    }
    if (output !== undefined) {
      for (const [index, image] of images.entries()) {
        writeOutput(names[index] ?? output, imageArchive(image));
      }
    }
    if (layout !== undefined)
      about("--oci-layout", () => writeLayout(layout, ociLayout(images)));
  },
);

/**
 * @param {string} layout
 * @param {readonly string[]} outputs
 */
function refuseOutputsIn(layout, outputs) {
  const dir = `${path.resolve(layout)}${path.sep}`;
  const inside = outputs.find((file) => path.resolve(file).startsWith(dir));
  if (inside !== undefined) {
    throw new UsageError(`--output: ${inside} would lie in --oci-layout`);
  }
}
