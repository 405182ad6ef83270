import { Buffer } from "node:buffer";
import { spawnSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import os from "node:os";
import path from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { parseAllDocuments } from "yaml";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { checkXpkg } from "../../../scripts/lib/xpkg/check.mjs";
import {
  digestOf,
  type Image,
  labelsOf,
} from "../../../scripts/lib/xpkg/image.mjs";
import {
  filesIn,
  imageArchive,
  readImageArchive,
} from "../../../scripts/lib/xpkg/image-archive.mjs";
import { packageStream } from "../../../scripts/lib/xpkg/package-stream.mjs";
import { readTar } from "../../../scripts/lib/xpkg/tar-reader.mjs";
import { tarOf } from "../../../scripts/lib/xpkg/tar-writer.mjs";
import { smallImage, smallPackage } from "./xpkg-images.js";

const root = path.resolve(import.meta.dirname, "../../..");

let scratch: string;

beforeEach(() => {
  scratch = mkdtempSync(path.join(os.tmpdir(), "xpkg-build-test-"));
});

afterEach(() => {
  rmSync(scratch, { recursive: true, force: true });
});

describe("scripts/build-xpkg", () => {
  it("makes an archive and a layout of the same blobs, the same each time, that check-xpkg accepts", () => {
    const image = save("image.tar", smallImage());

    const builds = ["a", "b"].map((name) => {
      const output = path.join(scratch, `${name}.xpkg`);
      const layout = path.join(scratch, `${name}-oci`);
      expect(
        script(
          "build-xpkg",
          ...["--image", image, "--output", output, "--oci-layout", layout],
        ),
      ).toEqual({ code: 0, output: "" });
      return { output, layout };
    });
    const [first, second] = builds;

    expect(readFileSync(first?.output ?? "")).toEqual(
      readFileSync(second?.output ?? ""),
    );
    expect(treeOf(first?.layout ?? "")).toEqual(treeOf(second?.layout ?? ""));
    const archived = [...filesIn(readFileSync(first?.output ?? "")).values()];
    const stored = [...treeOf(first?.layout ?? "").values()];
    const shared = archived
      .map((bytes) => digestOf(bytes))
      .filter((digest) => stored.includes(digest));
    // The configuration, the image's layer and the package's.
    expect(shared).toHaveLength(3);
    expect(
      script("check-xpkg", first?.output ?? "", first?.layout ?? ""),
    ).toEqual({
      code: 0,
      output: `${first?.output ?? ""}: is a good package\n${first?.layout ?? ""}: is a good package\n`,
    });
  });

  it("makes an archive for each architecture and one index of all", () => {
    const images = ["arm64", "amd64"].flatMap((name) => [
      "--image",
      save(`${name}.tar`, smallImage(name)),
    ]);
    const layout = path.join(scratch, "oci");

    const { code } = script(
      "build-xpkg",
      ...[...images, "--output", path.join(scratch, "f.xpkg")],
      ...["--oci-layout", layout],
    );

    expect(code).toBe(0);
    const archives = ["f-amd64.xpkg", "f-arm64.xpkg"].map((name) =>
      path.join(scratch, name),
    );
    for (const place of [...archives, layout]) {
      expect(checkXpkg(place)).toEqual([]);
    }
    const [top] = manifestsIn(readFileSync(path.join(layout, "index.json")));
    const index = readFileSync(
      path.join(layout, "blobs/sha256", top?.digest.slice(7) ?? ""),
    );
    expect(manifestsIn(index).map(({ platform }) => platform)).toEqual([
      { architecture: "arm64", os: "linux" },
      { architecture: "amd64", os: "linux" },
    ]);
  });

  it("leaves the image as it is, but for the layer, its label and its history", () => {
    const image = smallImage();
    image.config["history"] = [{ created_by: "before" }];
    const file = save("image.tar", image);
    const output = path.join(scratch, "f.xpkg");

    script("build-xpkg", "--image", file, "--output", output);

    const built = readImageArchive(readFileSync(output));
    const added = built.layers.at(-1);
    expect(built.layers.slice(0, -1)).toEqual(image.layers);
    expect(labelsOf(built.config)).toEqual({
      kept: "yes",
      [`io.crossplane.xpkg:${added?.digest ?? ""}`]: "base",
    });
    expect(built.config).toMatchObject({
      architecture: "amd64",
      os: "linux",
      config: { Entrypoint: ["/nodejs/bin/node"] },
      history: [{ created_by: "before" }, { created_by: "build-xpkg" }],
    });
    const entries = readTar(gunzipSync(added?.gzip ?? ""));
    expect(
      entries.map(({ path: name, mode, kind }) => ({ name, mode, kind })),
    ).toEqual([{ name: "package.yaml", mode: 0o644, kind: "file" }]);
  });

  it("takes the digest of the compressed layer for the label", () => {
    const image = smallPackage();
    const [label] = Object.keys(labelsOf(image.config)).filter((name) =>
      name.startsWith("io.crossplane.xpkg:"),
    );

    expect(label).toBe(
      `io.crossplane.xpkg:${digestOf(image.layers.at(-1)?.gzip ?? Buffer.alloc(0))}`,
    );
  });

  it("writes gzip without time or operating system", () => {
    for (const { gzip } of smallPackage().layers) {
      expect(gzip.subarray(0, 4)).toEqual(Buffer.from([0x1f, 0x8b, 8, 0]));
      expect(gzip.subarray(4, 8)).toEqual(Buffer.alloc(4));
      expect(gzip[9]).toBe(255);
    }
  });

  it.each([
    { name: "no image", args: ["--output", "x"], want: /^--image is missing/ },
    {
      name: "no output",
      args: ["--image", "x"],
      want: /^--output and --oci-layout are both missing/,
    },
    {
      name: "an unknown flag",
      args: ["--imgae", "x"],
      want: /^Unknown option '--imgae'/,
    },
  ])("says how to use it with $name", ({ args, want }) => {
    const { code, output } = script("build-xpkg", ...args);

    expect(code).toBe(2);
    expect(output).toMatch(want);
    expect(output).toContain("usage: node scripts/build-xpkg.mjs ");
  });

  it.each([
    {
      name: "two images for one architecture",
      args: () => {
        const file = save("image.tar", smallImage());
        return ["--image", file, "--image", file];
      },
      want: () =>
        `--image: there are two images for amd64: ${scratch}/image.tar and ${scratch}/image.tar\n`,
    },
    {
      name: "a package",
      args: () => ["--image", save("image.tar", smallPackage())],
      want: () =>
        `--image ${scratch}/image.tar: the image is a package already\n`,
    },
    {
      name: "no file",
      args: () => ["--image", "/nowhere"],
      want: () => "--image: cannot read /nowhere: ENOENT\n",
    },
    {
      name: "a file that is cut off",
      args: () => {
        const file = save("image.tar", smallImage());
        truncateSync(file, 700);
        return ["--image", save("good.tar", smallImage()), "--image", file];
      },
      want: () => `--image ${scratch}/image.tar: the tar archive is cut off\n`,
    },
    {
      name: "no package directory",
      args: () => ["--image", "/nowhere", "--package", "/nonexist"],
      want: () => "--package: cannot read /nonexist: ENOENT\n",
    },
    {
      name: "a package directory without crossplane.yaml",
      args: () => ["--image", "/nowhere", "--package", scratch],
      want: () => `--package: cannot read ${scratch}/crossplane.yaml: ENOENT\n`,
    },
    {
      name: "a package directory that Crossplane would refuse",
      args: () => {
        writeFileSync(path.join(scratch, "crossplane.yaml"), "kind: Provider");
        const file = save("image.tar", smallImage());
        return ["--image", file, "--package", scratch];
      },
      want: () =>
        '--package: the package must begin with one Function of meta.pkg.crossplane.io/v1, got "Provider" of nothing\n',
    },
    {
      name: "a layout directory that is not empty",
      args: () => {
        const file = save("image.tar", smallImage());
        mkdirSync(path.join(scratch, "full/of"), { recursive: true });
        return ["--image", file, "--oci-layout", path.join(scratch, "full")];
      },
      want: () =>
        `--oci-layout: ${scratch}/full is not empty: expected a new directory\n`,
    },
    {
      name: "a layout directory that is a file",
      args: () => {
        const file = save("image.tar", smallImage());
        return ["--image", file, "--oci-layout", file];
      },
      want: () => `--oci-layout: cannot read ${scratch}/image.tar: ENOTDIR\n`,
    },
    {
      name: "a layout directory that the system does not make",
      args: () => {
        const file = save("image.tar", smallImage());
        return ["--image", file, "--oci-layout", "/proc/x/y"];
      },
      want: () => "--oci-layout: cannot make /proc/x/y: ENOENT\n",
    },
  ])("refuses $name, and writes nothing", ({ args, want }) => {
    const given = args();
    const { code, output } = script(
      "build-xpkg",
      ...given,
      ...["--output", path.join(dist(), "out.xpkg")],
    );

    expect({ code, output }).toEqual({ code: 1, output: want() });
    expect(readdirSync(dist())).toEqual([]);
  });

  it.each([
    {
      name: "no directory for it",
      output: () => "/nonexist/x",
      want: () => "--output: cannot write /nonexist/x: ENOENT\n",
    },
    {
      name: "a directory in its place",
      output: () => dist(),
      want: () => `--output: cannot write ${dist()}: EISDIR\n`,
    },
  ])("refuses $name as --output", ({ output, want }) => {
    const image = save("image.tar", smallImage());

    expect(
      script("build-xpkg", "--image", image, "--output", output()),
    ).toEqual({ code: 1, output: want() });
  });

  it("refuses an archive that would lie in the layout", () => {
    const image = save("image.tar", smallImage());
    const file = path.join(dist(), "f.xpkg");

    const { code, output } = script(
      "build-xpkg",
      ...["--image", image, "--output", file, "--oci-layout", dist()],
    );

    expect(code).toBe(2);
    expect(output).toMatch(`--output: ${file} would lie in --oci-layout\n`);
    expect(readdirSync(dist())).toEqual([]);
  });
});

describe("scripts/build-image", () => {
  it.each([
    {
      name: "--output in no directory, before it does anything else",
      args: ["--output", "/nonexist/x", "--base", "/nowhere"],
      want: "--output: cannot write /nonexist/x: ENOENT\n",
    },
    {
      name: "--base that is not there",
      args: ["--output", "/tmp/never-written.tar", "--base", "/nowhere"],
      want: "--base: cannot read /nowhere: ENOENT\n",
    },
  ])("refuses $name", ({ args, want }) => {
    expect(script("build-image", ...args)).toEqual({ code: 1, output: want });
  });
});

describe("scripts/lib/xpkg/command", () => {
  it.each(
    ["build-image", "build-xpkg", "check-xpkg"].flatMap((name) => [
      { name, args: ["--help"] },
      { name, args: ["-h"] },
      { name, args: ["--imgae", "x", "--help"] },
    ]),
  )("$name $args says how to use it, and does nothing", ({ name, args }) => {
    expect(script(name, ...args)).toEqual({
      code: 0,
      output: expect.stringMatching(
        `^usage: node scripts/${name}\\.mjs .*\n$`,
      ) as string,
    });
  });

  it("takes --help for an argument where it is one", () => {
    expect(script("check-xpkg", "--", "--help")).toEqual({
      code: 1,
      output: "--help: cannot read --help: ENOENT\n",
    });
  });
});

describe("scripts/lib/xpkg/image-archive", () => {
  it("reads an OCI archive with uncompressed layers, as docker save writes it", () => {
    const { config, layers } = smallImage();
    const tar = gunzipSync(layers[0]?.gzip ?? "");
    const archive = archiveOf(config, [tar], "blobs/sha256/");

    const read = readImageArchive(archive);

    expect(read).toEqual({ config, layers });
  });

  it("keeps a layer that is compressed, whoever did it", () => {
    const { config, layers } = smallImage();
    const gzip = gzipSync(gunzipSync(layers[0]?.gzip ?? ""), { level: 1 });

    const read = readImageArchive(archiveOf(config, [gzip], ""));

    expect(read.layers).toEqual([
      { gzip, digest: digestOf(gzip), diffId: layers[0]?.diffId },
    ]);
  });

  it.each([
    {
      name: "no manifest.json, as pure OCI archives have none",
      archive: () => tarOf([file("index.json", "{}")]),
      want: "the archive has no manifest.json: expected one made by docker save, or its like",
    },
    {
      name: "two images",
      archive: () => tarOf([file("manifest.json", "[{},{}]")]),
      want: "the archive must hold one image, and holds 2",
    },
    {
      name: "a layer that is not there",
      archive: () =>
        tarOf([
          file("manifest.json", '[{"Config":"c","Layers":["l\\u202e"]}]'),
          file("c", "{}"),
        ]),
      want: 'the archive has no file "l\\u202e"',
    },
    {
      name: "a configuration that is another one than its name says",
      archive: () =>
        tarOf([
          file(
            "manifest.json",
            `[{"Config":"${"0".repeat(64)}.json","Layers":[]}]`,
          ),
          file(`${"0".repeat(64)}.json`, "{}"),
        ]),
      want: `the archive's "${"0".repeat(64)}.json" is not what its name is`,
    },
    {
      name: "a layer of zstd",
      archive: () => {
        const zstd = Buffer.from("28b52ffd00", "hex");
        return archiveOf(smallImage().config, [zstd], "");
      },
      want: "a layer is compressed with zstd: save the image with gzip or none",
    },
    {
      name: "an empty file for a layer",
      archive: () => archiveOf(smallImage().config, [Buffer.alloc(0)], ""),
      want: "the image's layers are not those of its configuration",
    },
    {
      name: "a layer that is not the configuration's",
      archive: () => archiveOf(smallImage().config, [tarOf([])], ""),
      want: "the image's layers are not those of its configuration",
    },
    {
      name: "no architecture",
      archive: () => {
        const { config, layers } = smallImage();
        const rest = { ...config, architecture: undefined };
        return imageArchive({ config: rest, layers });
      },
      want: "the image's configuration does not say its architecture",
    },
  ])("refuses $name", ({ archive, want }) => {
    expect(() => readImageArchive(archive())).toThrow(want);
  });
});

describe("scripts/lib/xpkg/package-stream", () => {
  it("has the package first, then the rest by path, the same in YAML 1.1 and 1.2", () => {
    mkdirSync(path.join(scratch, "z"));
    const crd = (plural: string) =>
      `# gone\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n` +
      `metadata: {name: ${plural}.example.org}\nspec:\n  group: example.org\n` +
      `  names: {plural: ${plural}}\n  x: ["yes", "0755", "12:30", "null", "~", "1e3"]\n`;
    const meta = parseAllDocuments(
      readFileSync(path.join(root, "package/crossplane.yaml"), "utf8"),
    );
    writeFileSync(path.join(scratch, "b.yaml"), `---\n${crd("b")}---\n`);
    writeFileSync(path.join(scratch, "z/a.yml"), `${crd("a")}---\n${crd("c")}`);
    writeFileSync(path.join(scratch, "readme.md"), "not: a document");
    writeFileSync(path.join(scratch, "crossplane.yaml"), String(meta[0]));

    const stream = packageStream(scratch);

    const [old, current] = (["1.1", "1.2"] as const).map((version) =>
      parseAllDocuments(stream, { version }).map(
        (each) => each.toJS() as unknown,
      ),
    );
    expect(current).toEqual(old);
    expect(current?.[0]).toEqual(meta[0]?.toJS());
    expect(current?.slice(1)).toMatchObject(
      ["b", "a", "c"].map((plural) => ({
        metadata: { name: `${plural}.example.org` },
        spec: { x: ["yes", "0755", "12:30", "null", "~", "1e3"] },
      })),
    );
    expect(stream.startsWith("---\n")).toBe(true);
  });

  it("refuses what is no YAML", () => {
    writeFileSync(path.join(scratch, "crossplane.yaml"), "a: {");

    expect(() => packageStream(scratch)).toThrow(
      /^crossplane\.yaml is not YAML: /,
    );
  });
});

/** An empty directory. */
function dist(): string {
  const dir = path.join(scratch, "dist");
  mkdirSync(dir, { recursive: true });
  return dir;
}

function save(name: string, image: Image): string {
  const place = path.join(scratch, name);
  writeFileSync(place, imageArchive(image));
  return place;
}

/** An archive whose files are called as docker save does it. */
function archiveOf(config: object, layers: Buffer[], prefix: string): Buffer {
  const stored = [Buffer.from(JSON.stringify(config)), ...layers].map((bytes) =>
    file(`${prefix}${digestOf(bytes).slice(7)}`, bytes),
  );
  const [configName, ...layerNames] = stored.map((entry) => entry.path);
  const manifest = [{ Config: configName, Layers: layerNames }];
  return tarOf([...stored, file("manifest.json", JSON.stringify(manifest))]);
}

function file(name: string, content: string | Buffer) {
  return { path: name, mode: 0o644, bytes: Buffer.from(content) };
}

interface Manifest {
  readonly digest: string;
  readonly platform?: object;
}

function manifestsIn(index: Buffer): Manifest[] {
  const { manifests } = JSON.parse(index.toString()) as {
    manifests: Manifest[];
  };
  return manifests;
}

/** The digest of each file below a directory, by its path. */
function treeOf(dir: string): Map<string, string> {
  const names = readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name));
  return new Map(
    names.map((name) => [
      path.relative(dir, name),
      digestOf(readFileSync(name)),
    ]),
  );
}

function script(name: string, ...args: string[]) {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [path.join(root, `scripts/${name}.mjs`), ...args],
    { encoding: "utf8" },
  );
  return { code: status, output: stdout + stderr };
}
