import { Buffer } from "node:buffer";

import {
  type Image,
  layerOf,
  withLayer,
} from "../../../scripts/lib/xpkg/image.mjs";
import { addPackage } from "../../../scripts/lib/xpkg/package-layer.mjs";

/** A package.yaml as small as can be. */
export const STREAM = `---
apiVersion: meta.pkg.crossplane.io/v1
kind: Function
metadata:
  name: function-wasm
`;

/** An image of one layer that has a file where Node would be. */
export function smallImage(architecture = "amd64"): Image {
  const layer = layerOf([
    {
      path: "nodejs/bin/node",
      mode: 0o755,
      bytes: Buffer.from(`node for ${architecture}`),
    },
  ]);
  const empty = { config: { architecture, os: "linux" }, layers: [] };
  return withLayer(empty, layer, "test", {
    Entrypoint: ["/nodejs/bin/node"],
    User: "65532:65532",
    Env: ["PATH=/nodejs/bin", "NODE_ENV=development"],
    Labels: { kept: "yes" },
  });
}

/** The same as a package. */
export function smallPackage(architecture = "amd64"): Image {
  return addPackage(smallImage(architecture), STREAM);
}
