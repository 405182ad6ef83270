import { describe, expect, it } from "vitest";
import type { Descriptor } from "../../../../src/loader/oci/descriptor.js";
import { chooseLayers } from "../../../../src/loader/oci/layer.js";
import type { ImageManifest } from "../../../../src/loader/oci/manifest.js";

const WASM = "application/wasm";
const MANIFEST = "application/vnd.wasmfn.manifest.v1+json";
const TAR = "application/vnd.oci.image.layer.v1.tar";
const DOCKER_TAR = "application/vnd.docker.image.rootfs.diff.tar";
const OCTETS = "application/octet-stream";
const EMPTY = "application/vnd.oci.empty.v1+json";

describe("loader/oci/layer", () => {
  it.each([
    { types: [WASM], module: 0, form: "wasm", manifest: null },
    {
      types: ["application/vnd.wasm.content.layer.v1+wasm", MANIFEST],
      module: 0,
      form: "wasm",
      manifest: 1,
    },
    {
      types: [MANIFEST, "application/vnd.module.wasm.content.layer.v1+wasm"],
      module: 1,
      form: "wasm",
      manifest: 0,
    },
    // C24
    {
      types: ["text/plain", TAR, WASM],
      module: 2,
      form: "wasm",
      manifest: null,
    },
    { types: [OCTETS], module: 0, form: "wasm", manifest: null },
    { types: [MANIFEST, OCTETS], module: 1, form: "wasm", manifest: 0 },
    { types: [EMPTY, OCTETS], module: 1, form: "wasm", manifest: null },
    {
      types: ["application/x.star-targets"],
      module: 0,
      form: "wasm",
      manifest: null,
    },
    ...[
      TAR,
      `${TAR}+gzip`,
      `${TAR}+zstd`,
      DOCKER_TAR,
      `${DOCKER_TAR}.gzip`,
      `${DOCKER_TAR}.zstd`,
    ].map((type) => ({
      types: [type, MANIFEST],
      module: 0,
      form: "tar",
      manifest: 1,
    })),
  ])(
    "takes $module as $form of $types",
    ({ types, module, form, manifest }) => {
      const layers = types.map(descriptor);

      const chosen = chooseLayers(manifestOf(layers));

      expect(chosen).toEqual({
        module: layers[module],
        form,
        manifestLayer: manifest === null ? null : layers[manifest],
      });
    },
  );

  it.each([
    { config: "application/vnd.oci.empty.v1+json" },
    { config: "application/vnd.wasm.config.v0+json" },
    { config: "application/vnd.wasm.config.v1+json" },
    { config: "application/vnd.docker.container.image.v1+json" },
  ])("[C25] does not mind a config of type $config", ({ config }) => {
    const layers = [descriptor(WASM, 0)];

    const chosen = chooseLayers({
      ...manifestOf(layers),
      config: descriptor(config, 9),
    });

    expect(chosen.module).toBe(layers[0]);
  });

  it.each([
    {
      name: "two modules",
      types: [WASM, MANIFEST, "application/vnd.wasm.content.layer.v1+wasm"],
      want: `the artifact has 2 layers whose type is that of a module, expected one: ${digest(0)} and ${digest(2)}`,
    },
    {
      name: "two manifests",
      types: [MANIFEST, WASM, MANIFEST],
      want: `the artifact has 2 layers of type ${MANIFEST}, expected one: ${digest(0)} and ${digest(2)}`,
    },
    {
      name: "[C24] two layers that could be it",
      types: [OCTETS, "text/plain"],
      want: `no layer is a module: got "${OCTETS}", "text/plain", expected a layer of type application/wasm, application/vnd.wasm.content.layer.v1+wasm, application/vnd.module.wasm.content.layer.v1+wasm, or as the only layer ${TAR}, ${TAR}+gzip, ${TAR}+zstd, ${DOCKER_TAR}, ${DOCKER_TAR}.gzip, ${DOCKER_TAR}.zstd`,
    },
    {
      name: "no layers",
      types: [],
      want: "no layer is a module: got no layers, expected a layer of type",
    },
    {
      name: "a manifest alone",
      types: [MANIFEST],
      want: `no layer is a module: got "${MANIFEST}", expected`,
    },
    {
      name: "an artifact that is empty",
      types: [EMPTY],
      want: `no layer is a module: got "${EMPTY}", expected`,
    },
    {
      name: "types that would forge a line, and many of them",
      types: ["a\nb", ...Array.from({ length: 8 }, () => "c")],
      want: String.raw`got "a\u000ab", "c", "c", "c", "c", "c", "c", "c", 1 more, expected`,
    },
    ...[
      "application/vnd.oci.image.layer.nondistributable.v1.tar",
      "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip",
      "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
      "application/vnd.oci.image.layer.v1.tar+gzip+encrypted",
      "application/vnd.oci.image.layer.v1.tar+bzip2",
      "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
      "application/wasm+gzip",
      "application/wasm+zstd",
      "application/x-tar",
      "application/tar",
      "application/gzip",
      "application/zip",
      "Application/X-TAR",
    ].map((type) => ({
      name: type,
      types: [type],
      want: `no layer is a module: got "${type}", expected`,
    })),
  ])("refuses $name", ({ types, want }) => {
    expect(() => chooseLayers(manifestOf(types.map(descriptor)))).toThrow(
      expect.objectContaining({
        code: "artifact-invalid",
        message: expect.stringContaining(want) as unknown,
      }),
    );
  });

  it("refuses a manifest above 64 KiB", () => {
    const withManifest = (sizeBytes: number) =>
      manifestOf([
        descriptor(WASM, 0),
        { ...descriptor(MANIFEST, 1), sizeBytes },
      ]);

    expect(chooseLayers(withManifest(65_536)).manifestLayer).not.toBeNull();
    expect(() => chooseLayers(withManifest(65_537))).toThrow(
      "the module manifest's layer has 65537 bytes, at most 65536 are allowed",
    );
  });
});

function manifestOf(layers: readonly Descriptor[]): ImageManifest {
  return {
    mediaType: "application/vnd.oci.image.manifest.v1+json",
    artifactType: null,
    config: descriptor("application/vnd.wasm.config.v0+json", 9),
    layers,
    annotations: new Map(),
  };
}

function descriptor(mediaType: string, i: number): Descriptor {
  return {
    mediaType,
    digest: digest(i),
    sizeBytes: 10,
    annotations: new Map(),
  };
}

function digest(i: number): Descriptor["digest"] {
  return `sha256:${String(i).repeat(64)}`;
}
