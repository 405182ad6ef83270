import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ScriptedRegistry } from "../../support/scripted-registry.js";
import { pinned, tagged } from "./loading.js";
import { createRig, pull, type Rig, WASM } from "./pulling.js";

let rig: Rig;
let registry: ScriptedRegistry;

beforeEach(async () => {
  rig = createRig();
  registry = await rig.registry();
});

afterEach(() => rig.close());

describe("loader: what registries are asked for", () => {
  it.each(["pinned", "tagged"] as const)(
    "[C21] is a manifest or an index of OCI's or Docker's, for some say 404 to who does not accept what is there: %s",
    async (kind) => {
      const { manifestDigest } = registry.addModule("a/b", {
        wasm: WASM,
        tag: "v1",
      });
      const at = `${registry.authority}/a/b`;
      const sources = {
        pinned: pinned(at, manifestDigest),
        tagged: tagged(`${at}:v1`),
      };

      await pull(rig.loader(), sources[kind]);

      const accepted = registry.requests
        .filter(({ path }) => path.includes("/manifests/"))
        .map(({ headers }) => String(headers.accept).split(", ").toSorted());
      expect(accepted).toEqual([
        [
          "application/vnd.docker.distribution.manifest.list.v2+json",
          "application/vnd.docker.distribution.manifest.v2+json",
          "application/vnd.oci.image.index.v1+json",
          "application/vnd.oci.image.manifest.v1+json",
        ],
      ]);
    },
  );
});
