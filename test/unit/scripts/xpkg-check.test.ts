import { Buffer } from "node:buffer";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { checkXpkg } from "../../../scripts/lib/xpkg/check.mjs";
import {
  digestOf,
  type Image,
  type JsonObject,
  layerOf,
  withLayer,
} from "../../../scripts/lib/xpkg/image.mjs";
import {
  filesIn,
  imageArchive,
} from "../../../scripts/lib/xpkg/image-archive.mjs";
import { packageLayerProblems } from "../../../scripts/lib/xpkg/image-rules.mjs";
import {
  ociLayout,
  writeLayout,
} from "../../../scripts/lib/xpkg/oci-layout.mjs";
import { packageProblems } from "../../../scripts/lib/xpkg/package-rules.mjs";
import { tarOf } from "../../../scripts/lib/xpkg/tar-writer.mjs";
import { smallImage, smallPackage, STREAM } from "./xpkg-images.js";

const NO_LABEL =
  "the image must have one label io.crossplane.xpkg:<digest> that is base, and has";
const ANNOTATION =
  "the layer that the label names, and no other, must be annotated with io.crossplane.xpkg";

let scratch: string;

beforeEach(() => {
  scratch = mkdtempSync(path.join(os.tmpdir(), "xpkg-check-test-"));
});

afterEach(() => {
  rmSync(scratch, { recursive: true, force: true });
});

describe("scripts/check-xpkg of an archive", () => {
  it.each<{ name: string; archive: () => Buffer; want: unknown[] }>([
    {
      name: "nothing that is wrong",
      archive: () => imageArchive(smallPackage()),
      want: [],
    },
    {
      name: "a changed layer",
      archive: () =>
        edited((files) => {
          const [name = ""] = layerNames(files);
          const layer = Buffer.from(files.get(name) ?? "");
          // The time in gzip's header: it can be read as before.
          layer[4] = 1;
          files.set(name, layer);
        }),
      want: [
        expect.stringMatching(
          /^a layer's digest is not its name, "[0-9a-f]{64}\.tar\.gz"$/,
        ),
      ],
    },
    {
      name: "a layer that was cut off",
      archive: () =>
        edited((files) => {
          const [name = ""] = layerNames(files);
          files.set(name, files.get(name)?.subarray(0, -9) ?? Buffer.alloc(0));
        }),
      want: ["a layer is damaged: it cannot be decompressed"],
    },
    {
      name: "a missing layer",
      archive: () =>
        edited((files) => {
          files.delete(layerNames(files)[0] ?? "");
        }),
      want: [expect.stringMatching(/^the archive has no "[0-9a-f]{64}/)],
    },
    {
      name: "a changed configuration",
      archive: () =>
        edited((files) => {
          for (const [name, bytes] of files) {
            if (name.startsWith("sha256:"))
              files.set(name, Buffer.concat([bytes, Buffer.from(" ")]));
          }
        }),
      want: [
        expect.stringMatching(/^the configuration's digest is not its name, /),
      ],
    },
    {
      name: "a file that nothing names",
      archive: () =>
        edited((files) => files.set("st\u202eray", Buffer.from(""))),
      want: ['nothing names "st\\u202eray" in the archive'],
    },
    {
      name: "no package",
      archive: () => imageArchive(smallImage()),
      want: [`${NO_LABEL} 0`],
    },
    {
      name: "two packages",
      archive: () =>
        imageArchive(
          withLabels(smallPackage(), {
            [`io.crossplane.xpkg:sha256:${"0".repeat(64)}`]: "base",
          }),
        ),
      want: [`${NO_LABEL} 2`],
    },
    {
      name: "a label of a layer that went",
      archive: () => {
        const { config, layers } = smallPackage();
        const { rootfs } = smallImage().config;
        const kept = layers.slice(0, 1);
        return imageArchive({ config: { ...config, rootfs }, layers: kept });
      },
      want: [
        expect.stringMatching(
          /^the label names "sha256:[0-9a-f]{64}", which is none of the layers$/,
        ),
      ],
    },
    {
      name: "neither operating system nor architecture",
      archive: () => {
        const { config, layers } = smallPackage();
        const rest = { ...config, os: undefined, architecture: "" };
        return imageArchive({ config: rest, layers });
      },
      want: [
        "the configuration does not say its os",
        "the configuration does not say its architecture",
      ],
    },
    ...[undefined, null, [], [""], [1], "node"].map((entrypoint) => ({
      name: `the entrypoint ${JSON.stringify(entrypoint)}`,
      archive: () =>
        imageArchive(withSettings(smallPackage(), { Entrypoint: entrypoint })),
      want: [
        `the image's Entrypoint must be the program, got ${shownJson(entrypoint)}`,
      ],
    })),
    ...[
      undefined,
      "",
      "0",
      "0:0",
      "00",
      "root",
      "nonroot",
      "1000:staff",
      1000,
    ].map((user) => ({
      name: `the user ${JSON.stringify(user)}`,
      archive: () => imageArchive(withSettings(smallPackage(), { User: user })),
      want: [
        `the image's User must be a number other than 0, got ${shownJson(user)}`,
      ],
    })),
    ...["65532", "1000:0"].map((user) => ({
      name: `nothing, with the user ${user}`,
      archive: () => imageArchive(withSettings(smallPackage(), { User: user })),
      want: [],
    })),
    {
      name: "layers of another image",
      archive: () => {
        const { config, layers } = smallPackage();
        const { rootfs } = smallPackage("arm64").config;
        return imageArchive({ config: { ...config, rootfs }, layers });
      },
      want: ["the layers are not those of the configuration's diff_ids"],
    },
    {
      name: "a package of another kind",
      archive: () =>
        imageArchive(packageOf(STREAM.replace("Function", "Provider"))),
      want: [
        'the package must begin with one Function of meta.pkg.crossplane.io/v1, got "Provider" of "meta.pkg.crossplane.io/v1"',
      ],
    },
    {
      name: "more than package.yaml in the package's layer",
      archive: () =>
        imageArchive(
          packageOf(STREAM, [
            { path: "x", mode: 0o644, bytes: Buffer.alloc(0) },
          ]),
        ),
      want: ["the package's layer must hold package.yaml alone"],
    },
    {
      name: "no archive",
      archive: () => Buffer.from("PK"),
      want: ["the tar archive is cut off"],
    },
  ])("says what is wrong with $name", ({ archive, want }) => {
    const file = path.join(scratch, "f.xpkg");
    writeFileSync(file, archive());

    expect(checkXpkg(file)).toEqual(want);
  });

  it("says that there is none", () => {
    expect(checkXpkg("/nowhere")).toEqual(["cannot read /nowhere: ENOENT"]);
  });
});

describe("scripts/check-xpkg of an OCI layout", () => {
  it.each<{
    name: string;
    images?: Image[];
    edit: (files: Map<string, Buffer>) => void;
    want: unknown[];
  }>([
    { name: "nothing that is wrong", edit: () => undefined, want: [] },
    {
      name: "a changed blob",
      edit: (files) => {
        for (const [name, bytes] of files) {
          if (bytes[0] === 0x1f) files.set(name, Buffer.alloc(bytes.length));
        }
      },
      want: [
        expect.stringMatching(
          /^a blob's digest is not its name, sha256:[0-9a-f]{64}$/,
        ),
      ],
    },
    {
      name: "a missing blob",
      edit: (files) => {
        for (const [name, bytes] of files) {
          if (bytes[0] === 0x1f) files.delete(name);
        }
      },
      want: [
        expect.stringMatching(/^there is no "blobs\/sha256\/[0-9a-f]{64}"$/),
      ],
    },
    {
      name: "a blob that nothing names",
      edit: (files) => files.set("blobs/sha256/stray", Buffer.from("")),
      want: ['nothing names "blobs/sha256/stray"'],
    },
    {
      name: "a wrong size",
      edit: editManifest(({ config }) => {
        config.size = 7;
      }),
      want: [
        expect.stringMatching(
          /^the size of sha256:[0-9a-f]{64} is \d+, but its descriptor says 7$/,
        ),
      ],
    },
    {
      name: "no annotation",
      edit: editManifest(({ layers }) => {
        delete layers[1]?.annotations;
      }),
      want: [ANNOTATION],
    },
    {
      name: "an annotation on two layers",
      edit: editManifest(({ layers }) => {
        for (const layer of layers)
          layer.annotations = { "io.crossplane.xpkg": "base" };
      }),
      want: [ANNOTATION],
    },
    {
      name: "an annotation on the wrong layer",
      edit: editManifest(({ layers }) => {
        const [first, second] = layers;
        if (first === undefined || second === undefined) return;
        first.annotations = { "io.crossplane.xpkg": "base" };
        delete second.annotations;
      }),
      want: [ANNOTATION],
    },
    {
      name: "another platform than the image's",
      edit: (files) => {
        const text = files.get("index.json")?.toString() ?? "";
        files.set("index.json", Buffer.from(text.replace("amd64", "arm64")));
      },
      want: ["a manifest's platform is not that of its configuration"],
    },
    {
      name: "an index without amd64",
      images: [smallPackage("arm64"), smallPackage("riscv64")],
      edit: () => undefined,
      want: ["the index has no image for linux/amd64, which Crossplane reads"],
    },
    {
      name: "an index with amd64 twice",
      images: [smallPackage(), smallPackage()],
      edit: () => undefined,
      want: ["the index has two images for one platform"],
    },
    {
      name: "two images at the top",
      edit: (files) =>
        files.set("index.json", Buffer.from('{"manifests":[{},{}]}')),
      want: ["index.json must name one image or index, and names 2"],
    },
    {
      name: "an unknown version",
      edit: (files) => files.set("oci-layout", Buffer.from("{}")),
      want: ["the layout's version is not 1.0.0"],
    },
    {
      name: "a digest that leads out of the layout",
      edit: (files) =>
        files.set(
          "index.json",
          Buffer.from('{"manifests":[{"digest":"../../etc/passwd"}]}'),
        ),
      want: [
        "expected a manifest of type application/vnd.oci.image.manifest.v1+json, got nothing",
        expect.stringContaining("nothing names"),
        expect.stringContaining("nothing names"),
        expect.stringContaining("nothing names"),
        expect.stringContaining("nothing names"),
      ],
    },
  ])(
    "says what is wrong with $name",
    ({ images = [smallPackage()], edit, want }) => {
      const files = ociLayout(images);
      edit(files);
      const dir = path.join(scratch, "oci");
      writeLayout(dir, files);

      expect(checkXpkg(dir)).toEqual(want);
    },
  );
});

describe("scripts/check-xpkg of a directory", () => {
  it("says that it is no layout, without reading what is in it", () => {
    symlinkSync("/nowhere", path.join(scratch, "dangling"));

    expect(checkXpkg(scratch)).toEqual([
      'is no OCI layout: there is no "oci-layout"',
    ]);
  });

  it("names the file in a layout that cannot be read", () => {
    writeLayout(path.join(scratch, "oci"), ociLayout([smallPackage()]));
    symlinkSync("/nowhere", path.join(scratch, "oci/dangling"));

    expect(checkXpkg(path.join(scratch, "oci"))).toEqual([
      `cannot read ${scratch}/oci/dangling: ENOENT`,
    ]);
  });

  it("finds an image for one other architecture good, which has no index to choose from", () => {
    writeLayout(path.join(scratch, "oci"), ociLayout([smallPackage("arm64")]));

    expect(checkXpkg(path.join(scratch, "oci"))).toEqual([]);
  });
});

describe("scripts/lib/xpkg/image-rules", () => {
  it("refuses a package.yaml that is larger than Crossplane reads", () => {
    const bytes = Buffer.from(STREAM);
    const archive = tarOf([{ path: "package.yaml", mode: 0o644, bytes }]);

    expect(packageLayerProblems(archive, bytes.length)).toEqual([]);
    expect(packageLayerProblems(archive, bytes.length - 1)).toEqual([
      `package.yaml is too large: Crossplane reads at most ${bytes.length - 1} bytes, got ${bytes.length}`,
    ]);
  });

  it("refuses a package.yaml that not everybody can read", () => {
    const bytes = Buffer.from(STREAM);

    expect(
      packageLayerProblems(
        tarOf([{ path: "package.yaml", mode: 0o640, bytes }]),
      ),
    ).toEqual(["package.yaml is not readable for all"]);
  });
});

describe("scripts/lib/xpkg/package-rules", () => {
  const meta = (spec: object | undefined, name: unknown = "function-wasm") => ({
    apiVersion: "meta.pkg.crossplane.io/v1",
    kind: "Function",
    metadata: { name },
    ...(spec && { spec }),
  });
  const crd = {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "inputs.example.org" },
    spec: { group: "example.org", names: { plural: "inputs" } },
  };

  it.each([
    { name: "no spec", documents: [meta(undefined)] },
    { name: "a CRD", documents: [meta(undefined), crd] },
    {
      name: "v1beta1",
      documents: [
        { ...meta(undefined), apiVersion: "meta.pkg.crossplane.io/v1beta1" },
      ],
    },
    ...[">=v1.17.0-0", ">=1.14.0, <3", "^1.20 || ~2.1"].map((version) => ({
      name: `versions ${version}`,
      documents: [meta({ crossplane: { version } })],
    })),
    {
      name: "capabilities",
      documents: [meta({ capabilities: ["operation", "composition"] })],
    },
  ])("finds nothing wrong with $name", ({ documents }) => {
    expect(packageProblems(documents)).toEqual([]);
  });

  it.each([
    {
      name: "nothing at all",
      documents: [],
      want: "the package must begin with one Function of meta.pkg.crossplane.io/v1, got nothing",
    },
    {
      name: "the CRD first",
      documents: [crd, meta(undefined)],
      want: 'the package must begin with one Function of meta.pkg.crossplane.io/v1, got "CustomResourceDefinition" of "apiextensions.k8s.io/v1"',
    },
    {
      name: "a second Function",
      documents: [meta(undefined), meta(undefined)],
      want: "the package has a second Function: expected one",
    },
    {
      name: "anything but a CRD",
      documents: [meta(undefined), { apiVersion: "v1", kind: "Secret" }],
      want: 'the package may hold CustomResourceDefinitions only, got "Secret" of "v1"',
    },
    {
      name: "a CRD of the wrong name",
      documents: [meta(undefined), { ...crd, metadata: { name: "x" } }],
      want: 'a CustomResourceDefinition must be called "inputs.example.org", got "x"',
    },
    {
      name: "a name that no Service can have",
      documents: [meta(undefined, "Function_WASM")],
      want: 'the Function\'s metadata.name must be a DNS label, got "Function_WASM"',
    },
    ...["wasm", "functions-wasm", "a-function-wasm"].map((name) => ({
      name: `the name ${name}`,
      documents: [meta(undefined, name)],
      want: `the Function's metadata.name must begin with function-, got "${name}"`,
    })),
    {
      name: "a name that is the beginning alone",
      documents: [meta(undefined, "function-")],
      want: 'the Function\'s metadata.name must be a DNS label, got "function-"',
    },
    ...["newest", "", "  ", 1, undefined].map((version) => ({
      name: `the version ${String(version)}`,
      documents: [meta({ crossplane: { version } })],
      want: `the Function's spec.crossplane.version must be a range of versions, got ${shownJson(version)}`,
    })),
    ...[["operation"], [], "composition"].map((capabilities) => ({
      name: `the capabilities ${JSON.stringify(capabilities)}`,
      documents: [meta({ capabilities })],
      want: `the Function's spec.capabilities must contain composition, got ${JSON.stringify(capabilities)}`,
    })),
  ])("refuses $name", ({ documents, want }) => {
    expect(packageProblems(documents)[0]).toBe(want);
  });
});

function edited(edit: (files: Map<string, Buffer>) => void): Buffer {
  const files = filesIn(imageArchive(smallPackage()));
  edit(files);
  return tarOf(
    [...files].map(([name, bytes]) => ({ path: name, mode: 0o644, bytes })),
  );
}

function layerNames(files: Map<string, Buffer>): string[] {
  return [...files.keys()].filter((name) => name.endsWith(".tar.gz"));
}

function withLabels(image: Image, labels: JsonObject): Image {
  const { Labels } = image.config["config"] as { Labels: object };
  return withSettings(image, { Labels: { ...Labels, ...labels } });
}

function withSettings({ config, layers }: Image, settings: JsonObject): Image {
  const inner = config["config"] as JsonObject;
  return { layers, config: { ...config, config: { ...inner, ...settings } } };
}

function shownJson(value: unknown): string {
  return value === undefined ? "nothing" : JSON.stringify(value);
}

/** A package with any text for a package.yaml, and other files in its layer. */
function packageOf(
  text: string,
  others: Parameters<typeof layerOf>[0] = [],
): Image {
  const layer = layerOf([
    { path: "package.yaml", mode: 0o644, bytes: Buffer.from(text) },
    ...others,
  ]);
  return withLayer(smallImage(), layer, "test", {
    Labels: { [`io.crossplane.xpkg:${layer.digest}`]: "base" },
  });
}

interface Manifest {
  config: { size: number };
  layers: { annotations?: Record<string, string> }[];
}

/** Changes the manifest of a layout of one image, so that only what was changed is wrong. */
function editManifest(edit: (manifest: Manifest) => void) {
  return (files: Map<string, Buffer>) => {
    const index = files.get("index.json")?.toString() ?? "";
    const { digest } = (
      JSON.parse(index) as { manifests: [{ digest: string }] }
    ).manifests[0];
    const place = `blobs/sha256/${digest.slice(7)}`;
    const old = files.get(place) ?? Buffer.alloc(0);
    const manifest = JSON.parse(old.toString()) as Manifest;
    edit(manifest);
    const bytes = Buffer.from(JSON.stringify(manifest));
    files.delete(place);
    files.set(`blobs/sha256/${digestOf(bytes).slice(7)}`, bytes);
    files.set(
      "index.json",
      Buffer.from(
        index
          .replace(digest, digestOf(bytes))
          .replace(`"size":${old.length}`, `"size":${bytes.length}`),
      ),
    );
  };
}
