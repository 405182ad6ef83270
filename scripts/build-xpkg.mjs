// Makes a Crossplane package of an image, without Docker: an .xpkg file for `crossplane xpkg push`,
// and an OCI layout, with the annotation that archives cannot have, for all other tools. Equal
// input gives equal bytes.
//
//   node scripts/build-xpkg.mjs --image image.tar [--image other-architecture.tar]
//     [--package package] [--output function-wasm.xpkg] [--oci-layout dir]
//
// With several images, one for each architecture, there is an .xpkg file for each, and one layout.
import { writeFileSync } from "node:fs";
import path from "node:path";

import { readArchive, runScript, UsageError } from "./lib/xpkg/command.mjs";
import { imageArchive, readImageArchive } from "./lib/xpkg/image-archive.mjs";
import { ociLayout, writeLayout } from "./lib/xpkg/oci-layout.mjs";
import { addPackage } from "./lib/xpkg/package-layer.mjs";
import { packageStream } from "./lib/xpkg/package-stream.mjs";
import { archiveNames } from "./lib/xpkg/archive-names.mjs";

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
  ({ values: { image: files = [], output, package: dir, ...rest } }) => {
    const layout = rest["oci-layout"];
    if (files.length === 0) throw new UsageError("--image is missing");
    if (output === undefined && layout === undefined) {
      throw new UsageError("--output and --oci-layout are both missing");
    }
    const stream = packageStream(dir ?? path.join(root, "package"));
    const images = files.map((file) =>
      addPackage(readImageArchive(readArchive(file)), stream),
    );
    const names = archiveNames(output ?? "", images);
    if (output !== undefined) {
      for (const [index, image] of images.entries()) {
        writeFileSync(names[index] ?? output, imageArchive(image));
      }
    }
    if (layout !== undefined) writeLayout(layout, ociLayout(images));
  },
);
