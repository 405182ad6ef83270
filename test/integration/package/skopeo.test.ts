import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { labelsOf } from "../../../scripts/lib/xpkg/image.mjs";
import {
  imageArchive,
  readImageArchive,
} from "../../../scripts/lib/xpkg/image-archive.mjs";
import {
  ociLayout,
  writeLayout,
} from "../../../scripts/lib/xpkg/oci-layout.mjs";
import { checkXpkg } from "../../../scripts/lib/xpkg/check.mjs";
import { missingTool } from "../../support/tools.js";
import { smallImage } from "../../unit/scripts/xpkg-images.js";

const root = path.resolve(import.meta.dirname, "../../..");

interface Inspected {
  readonly Digest: string;
  readonly Architecture: string;
  readonly Os: string;
  readonly Labels: Readonly<Record<string, string>>;
  readonly Layers: readonly string[];
}

/** The packages that scripts/build-xpkg.mjs makes, read by a tool that is not ours. */
describe.skipIf(missingTool("skopeo"))("integration/package/skopeo", () => {
  let dir: string;
  const place = (name: string) => path.join(dir, name);

  beforeAll(() => {
    dir = mkdtempSync(path.join(tmpdir(), "skopeo-test-"));
    for (const name of ["amd64", "arm64"])
      writeFileSync(place(`${name}.tar`), imageArchive(smallImage(name)));
    const amd64 = ["--image", place("amd64.tar")];
    build(
      ...amd64,
      ...["--output", place("f.xpkg"), "--oci-layout", place("oci")],
    );
    build(
      ...[...amd64, "--image", place("arm64.tar")],
      ...["--oci-layout", place("both")],
    );
  });

  afterAll(() => {
    rmSync(dir, { recursive: true, force: true });
  });

  it("is read as an archive", () => {
    const inspected = inspect(`docker-archive:${place("f.xpkg")}`);

    expect(inspected).toMatchObject({ Architecture: "amd64", Os: "linux" });
    expect(inspected.Layers).toHaveLength(2);
    expect(packageLabels(inspected)).toHaveLength(1);
  });

  it("is read as an OCI layout, whose label is the digest of a layer", () => {
    const inspected = inspect(`oci:${place("oci")}`);

    const index = JSON.parse(
      readFileSync(path.join(place("oci"), "index.json"), "utf8"),
    ) as { manifests: [{ digest: string }] };
    expect(inspected.Digest).toBe(index.manifests[0].digest);
    expect(packageLabels(inspected)).toEqual([inspected.Layers[1]]);
    expect(inspected.Labels["kept"]).toBe("yes");
  });

  it("is copied as an OCI layout with annotation, label and digest as they are", () => {
    const copy = place("copy");
    skopeo("copy", `oci:${place("oci")}`, `oci:${copy}`);

    expect(inspect(`oci:${copy}`).Digest).toBe(
      inspect(`oci:${place("oci")}`).Digest,
    );
    const manifest = JSON.parse(
      skopeo("inspect", "--raw", `oci:${copy}`),
    ) as object;
    expect(manifest).toMatchObject({
      layers: [{}, { annotations: { "io.crossplane.xpkg": "base" } }],
    });
  });

  it.each(["amd64", "arm64"])("is read as an index for %s", (name) => {
    const inspected = inspect(
      `oci:${place("both")}`,
      ...["--override-arch", name, "--override-os", "linux"],
    );

    expect(inspected.Architecture).toBe(name);
    expect(packageLabels(inspected)).toEqual([inspected.Layers[1]]);
  });

  it("is made of an archive that skopeo saved, too", () => {
    const image = smallImage();
    writeLayout(place("image"), ociLayout([image]));
    const saved = place("saved.tar");
    skopeo("copy", `oci:${place("image")}`, `docker-archive:${saved}`);

    // skopeo decompresses the layers, and they are compressed again as they were.
    expect(readImageArchive(readFileSync(saved))).toEqual(image);
  });

  it("loses what Crossplane needs when the archive is converted, which the layout is for", () => {
    const converted = place("converted");
    skopeo("copy", `docker-archive:${place("f.xpkg")}`, `oci:${converted}`);

    // The reason for writing both, as docs/releasing.md says.
    expect(checkXpkg(converted)).not.toEqual([]);
  });

  function build(...args: string[]): void {
    const file = path.join(root, "scripts/build-xpkg.mjs");
    const { status, stderr } = spawnSync(process.execPath, [file, ...args], {
      encoding: "utf8",
    });
    if (status !== 0) throw new Error(stderr);
  }
});

function inspect(reference: string, ...flags: string[]): Inspected {
  return JSON.parse(skopeo(...flags, "inspect", reference)) as Inspected;
}

function packageLabels({ Labels }: Inspected): string[] {
  return Object.keys(labelsOf({ config: { Labels } }))
    .filter((name) => name.startsWith("io.crossplane.xpkg:"))
    .map((name) => name.slice("io.crossplane.xpkg:".length));
}

function skopeo(...args: string[]): string {
  // Debian's package brings no policy for pulls when recommendations are left out.
  const { status, stdout, stderr } = spawnSync(
    "skopeo",
    ["--insecure-policy", ...args],
    { encoding: "utf8" },
  );
  if (status !== 0) throw new Error(stderr);
  return stdout;
}
