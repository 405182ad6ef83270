import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LoaderError } from "../../../../src/loader/error.js";
import { readManifest } from "../../../../src/loader/oci/manifest.js";

const OCI = "application/vnd.oci.image.manifest.v1+json";
const OCI_INDEX = "application/vnd.oci.image.index.v1+json";
const DOCKER = "application/vnd.docker.distribution.manifest.v2+json";
const DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json";

const digest = (hex: string) => `sha256:${hex.repeat(64)}`;
const layer = (mediaType: string, hex = "b") => ({
  mediaType,
  digest: digest(hex),
  size: 7,
});
const MANIFEST = {
  schemaVersion: 2,
  mediaType: OCI,
  config: layer("application/vnd.wasm.config.v0+json", "a"),
  layers: [layer("application/wasm")],
};
const UNTYPED = { ...MANIFEST, mediaType: undefined };
const INDEX = {
  schemaVersion: 2,
  mediaType: OCI_INDEX,
  manifests: [
    { ...layer(OCI, "c"), platform: { os: "wasip1", architecture: "wasm" } },
  ],
};
const PIN = "expected an image manifest: pin the digest of one manifest in it";
const CHILD = `${digest("c")} (wasip1/wasm)`;

describe("loader/oci/manifest", () => {
  it("reads an image manifest", () => {
    const manifest = read({
      ...MANIFEST,
      artifactType: "application/x",
      annotations: { a: "b" },
      subject: layer(OCI, "d"),
      somethingNew: [1],
    });

    expect(manifest).toEqual({
      mediaType: OCI,
      artifactType: "application/x",
      config: {
        mediaType: "application/vnd.wasm.config.v0+json",
        digest: digest("a"),
        sizeBytes: 7,
        annotations: new Map(),
      },
      layers: [
        {
          mediaType: "application/wasm",
          digest: digest("b"),
          sizeBytes: 7,
          annotations: new Map(),
        },
      ],
      annotations: new Map([["a", "b"]]),
    });
  });

  it.each([
    { name: "its own type", document: MANIFEST, contentType: null, want: OCI },
    {
      name: "its own type, not another one",
      document: MANIFEST,
      contentType: DOCKER,
      want: OCI,
    },
    {
      name: "its own type, not an index's",
      document: MANIFEST,
      contentType: OCI_INDEX,
      want: OCI,
    },
    {
      name: "Docker's type",
      document: { ...MANIFEST, mediaType: DOCKER },
      contentType: OCI,
      want: DOCKER,
    },
    {
      name: "the answer's type",
      document: UNTYPED,
      contentType: DOCKER,
      want: DOCKER,
    },
    {
      name: "the answer's type with a parameter",
      document: UNTYPED,
      contentType: `${DOCKER.toUpperCase()} ; charset=utf-8`,
      want: DOCKER,
    },
    {
      name: "no type, as of a static file",
      document: UNTYPED,
      contentType: "application/octet-stream",
      want: OCI,
    },
    { name: "no type at all", document: UNTYPED, contentType: null, want: OCI },
    {
      name: "a type of null",
      document: { ...MANIFEST, mediaType: null, artifactType: null },
      contentType: null,
      want: OCI,
    },
  ])("goes by $name", ({ document, contentType, want }) => {
    const manifest = read(document, contentType);

    expect(manifest).toMatchObject({ mediaType: want, artifactType: null });
  });

  describe("[C21] refuses an index by name", () => {
    it.each([
      {
        name: "by its own type",
        document: INDEX,
        contentType: OCI,
        want: `the reference leads to an image index (${OCI_INDEX}), ${PIN}: ${CHILD}`,
      },
      {
        name: "of Docker's",
        document: { ...INDEX, mediaType: DOCKER_LIST },
        contentType: null,
        want: `the reference leads to an image index (${DOCKER_LIST}), ${PIN}: ${CHILD}`,
      },
      {
        name: "by the answer's type",
        document: { schemaVersion: 2 },
        contentType: DOCKER_LIST,
        want: `the reference leads to an image index (${DOCKER_LIST}), ${PIN}`,
      },
      {
        name: "by its list of manifests",
        document: { schemaVersion: 2, manifests: INDEX.manifests },
        contentType: null,
        want: `the reference leads to an image index (${OCI_INDEX}), ${PIN}: ${CHILD}`,
      },
      {
        name: "by its type, though it has layers",
        document: { ...MANIFEST, mediaType: OCI_INDEX },
        contentType: OCI,
        want: `the reference leads to an image index (${OCI_INDEX}), ${PIN}`,
      },
      {
        name: "with many children, some of them odd",
        document: {
          ...INDEX,
          manifests: [
            {
              ...layer(OCI, "1"),
              platform: { os: "a\n", architecture: "b", variant: "c" },
            },
            { ...layer(OCI, "2"), platform: { os: 5, architecture: ["x"] } },
            layer(OCI, "3"),
            "4",
            { digest: "evil\u202e" },
            layer(OCI, "6"),
            layer(OCI, "7"),
          ],
        },
        contentType: null,
        want: String.raw`${PIN}: ${digest("1")} (a\u000a/b/c), ${digest("2")}, ${digest("3")}, 2 more`,
      },
      {
        name: "with a platform without end",
        document: {
          ...INDEX,
          manifests: [
            { ...layer(OCI, "1"), platform: { os: "x".repeat(1e5) } },
          ],
        },
        contentType: null,
        want: `(${"x".repeat(40)}…)`,
      },
    ])("$name", ({ document, contentType, want }) => {
      expect(refusal(json(document), contentType)).toMatch(ending(want));
    });

    it.each([{ document: MANIFEST }, { document: UNTYPED }])(
      "and what could be taken for one",
      ({ document }) => {
        const both = { ...document, manifests: [] };

        expect(refusal(json(both), OCI)).toBe(
          "expected an image manifest, got one with a list of manifests in it, as an index has",
        );
      },
    );
  });

  describe("refuses", () => {
    it.each([
      {
        name: "[C23] nothing",
        text: "",
        want: "expected an image manifest, got an empty answer",
      },
      {
        name: "[C23] blanks",
        text: " \r\n",
        want: "expected an image manifest, got an empty answer",
      },
      {
        name: "a page",
        text: "\n<!doctype html><p>sign in",
        want: "expected an image manifest, got a page of HTML or XML",
      },
      {
        name: "no JSON",
        text: "404 page not found\u202e",
        want: "the manifest is bad: it is not JSON: ",
      },
      {
        name: "JSON of another kind",
        text: "[]",
        want: "manifest: expected an object, got a list",
      },
      {
        name: "layers twice",
        text: `{"layers": [], ${JSON.stringify(MANIFEST).slice(1)}`,
        want: 'the manifest is bad: an object has the field "layers" twice',
      },
      {
        name: "a Docker manifest of 2014",
        text: JSON.stringify({ schemaVersion: 1, fsLayers: [] }),
        want: "expected an image manifest, got a Docker schema 1 manifest, which has no media types",
      },
      {
        name: "one by its type",
        text: JSON.stringify({
          schemaVersion: 2,
          mediaType:
            "application/vnd.docker.distribution.manifest.v1+prettyjws",
        }),
        want: "expected an image manifest, got a Docker schema 1 manifest, which has no media types",
      },
      {
        name: "another type",
        text: JSON.stringify({ ...MANIFEST, mediaType: "text/x\n" }),
        want: String.raw`expected an image manifest, got the media type "text/x\u000a"`,
      },
      {
        name: "a type that is no text",
        text: JSON.stringify({ ...MANIFEST, mediaType: [OCI] }),
        want: "manifest.mediaType: expected text, got a list",
      },
      {
        name: "another version",
        text: JSON.stringify({ ...MANIFEST, schemaVersion: 3 }),
        want: "manifest.schemaVersion: expected 2, got 3",
      },
      {
        name: "an answer of an error in JSON",
        text: JSON.stringify({ errors: [{ code: "DENIED" }] }),
        want: "manifest.schemaVersion: expected 2, got nothing",
      },
      {
        name: "no config",
        text: JSON.stringify({ ...MANIFEST, config: undefined }),
        want: "manifest.config: expected an object, got nothing",
      },
      {
        name: "no layers",
        text: JSON.stringify({ ...MANIFEST, layers: null }),
        want: "manifest.layers: expected a list, got nothing",
      },
      {
        name: "a bad layer",
        text: JSON.stringify({ ...MANIFEST, layers: [layer(OCI), 5] }),
        want: "manifest.layers[1]: expected an object, got 5",
      },
      {
        name: "129 layers",
        text: JSON.stringify({
          ...MANIFEST,
          layers: Array.from({ length: 129 }, () => layer("a/b")),
        }),
        want: "the manifest has 129 layers, at most 128 are allowed",
      },
      {
        name: "annotations that are no text",
        text: JSON.stringify({ ...MANIFEST, annotations: { a: 1 } }),
        want: 'manifest.annotations["a"]: expected text, got 1',
      },
    ])("$name", ({ text, want }) => {
      expect(refusal(Buffer.from(text), OCI)).toMatch(starting(want));
    });

    it("no 128 layers", () => {
      const layers = Array.from({ length: 128 }, () => layer("a/b"));

      expect(read({ ...MANIFEST, layers }).layers).toHaveLength(128);
    });
  });

  it("never throws but a LoaderError on one short line, whatever the bytes", () => {
    const member = fc.constantFrom(
      "schemaVersion",
      "mediaType",
      "config",
      "layers",
      "manifests",
      "annotations",
      "artifactType",
    );
    const document = fc
      .dictionary(member, fc.oneof(fc.jsonValue(), fc.constantFrom(OCI_INDEX)))
      .map((changes) => json({ ...MANIFEST, ...changes }));

    fc.assert(
      fc.property(fc.oneof(document, fc.uint8Array()), (bytes) => {
        try {
          readManifest(bytes, null);
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(LoaderError);
          expect(String(thrown)).toMatch(/^[^\p{C}]{1,1500}$/u);
        }
      }),
    );
  });
});

function read(document: object, contentType: string | null = null) {
  return readManifest(json(document), contentType);
}

function refusal(bytes: Uint8Array, contentType: string | null): string {
  try {
    readManifest(bytes, contentType);
  } catch (thrown) {
    expect(thrown).toMatchObject({ code: "artifact-invalid" });
    return thrown instanceof Error ? thrown.message : "";
  }
  return "";
}

function json(document: object): Buffer {
  return Buffer.from(JSON.stringify(document));
}

function starting(text: string): RegExp {
  return new RegExp(`^${literal(text)}`, "u");
}

function ending(text: string): RegExp {
  return new RegExp(`${literal(text)}$`, "u");
}

function literal(text: string): string {
  return text.replace(/[$()*+.?[\\\]^{|}/]/gu, String.raw`\$&`);
}
