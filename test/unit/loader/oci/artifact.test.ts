import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import {
  buildArtifact,
  IMAGE_MANIFEST,
  type PublishedModule,
} from "../../../../src/loader/oci/artifact.js";
import { chooseLayers } from "../../../../src/loader/oci/layer.js";
import { readManifest } from "../../../../src/loader/oci/manifest.js";
import type { Digest } from "../../../../src/ports.js";

const CREATED = new Date("2023-11-14T22:13:20Z");
const MODULE_DIGEST: Digest = `sha256:${"a1".repeat(32)}`;
const CORE = { digest: MODULE_DIGEST, sizeBytes: 1234, abi: 1 } as const;
const COMPONENT = {
  digest: MODULE_DIGEST,
  sizeBytes: 1234,
  abi: 2,
  component: {
    imports: ["wasi:cli/environment@0.2.0", "log"],
    exports: ["run"],
  },
} as const;
const MANIFEST_JSON = Buffer.from('{"name":"greeter","version":"1.2.3"}');
const ANNOTATIONS = [
  ["org.opencontainers.image.title", "greeter"],
  ["org.opencontainers.image.created", "2023-11-14T22:13:20Z"],
  ["Org.example.ä", 'x"\n'],
] as const;

describe("loader/oci/artifact", () => {
  it("writes a core module's artifact", () => {
    const artifact = build({ module: CORE });

    const config = `{"created":"2023-11-14T22:13:20.000Z","architecture":"wasm","os":"wasip1","layerDigests":["${MODULE_DIGEST}"]}`;
    expect(text(artifact.config.bytes)).toBe(config);
    expect(artifact.config.digest).toBe(sha256(config));
    const manifest =
      `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",` +
      `"config":{"mediaType":"application/vnd.wasm.config.v0+json","digest":"${sha256(config)}","size":${config.length}},` +
      `"layers":[{"mediaType":"application/wasm","digest":"${MODULE_DIGEST}","size":1234}]}`;
    expect(text(artifact.manifestBytes)).toBe(manifest);
    expect(artifact.manifestDigest).toBe(sha256(manifest));
    expect(artifact.layers).toEqual([
      { kind: "module", digest: MODULE_DIGEST, sizeBytes: 1234 },
    ]);
  });

  it("writes what a component imports and exports, as the layout demands", () => {
    const artifact = build({ module: COMPONENT });

    expect(text(artifact.config.bytes)).toBe(
      `{"created":"2023-11-14T22:13:20.000Z","architecture":"wasm","os":"wasip2","layerDigests":["${MODULE_DIGEST}"],` +
        `"component":{"exports":["run"],"imports":["wasi:cli/environment@0.2.0","log"]}}`,
    );
  });

  it("puts the module's manifest into a layer after the module", () => {
    const artifact = build({ module: CORE, manifestJson: MANIFEST_JSON });

    const digest = sha256(MANIFEST_JSON);
    expect(artifact.layers).toEqual([
      { kind: "module", digest: MODULE_DIGEST, sizeBytes: 1234 },
      { kind: "module-manifest", digest, bytes: MANIFEST_JSON },
    ]);
    expect(parsed(artifact.config.bytes)).toMatchObject({
      layerDigests: [MODULE_DIGEST, digest],
    });
    expect(parsed(artifact.manifestBytes)).toMatchObject({
      layers: [
        { mediaType: "application/wasm" },
        {
          mediaType: "application/vnd.wasmfn.manifest.v1+json",
          digest,
          size: MANIFEST_JSON.length,
        },
      ],
    });
  });

  it("sorts annotations and escapes what is in them", () => {
    const artifact = build({ module: CORE, annotations: ANNOTATIONS });

    expect(text(artifact.manifestBytes)).toMatch(
      /\],"annotations":\{"Org\.example\.ä":"x\\"\\n","org\.opencontainers\.image\.created":"2023-11-14T22:13:20Z","org\.opencontainers\.image\.title":"greeter"\}\}$/u,
    );
  });

  it("writes what the loader reads", () => {
    const artifact = build({
      module: CORE,
      manifestJson: MANIFEST_JSON,
      annotations: ANNOTATIONS,
    });

    const manifest = readManifest(artifact.manifestBytes, IMAGE_MANIFEST);

    expect(manifest).toMatchObject({
      mediaType: IMAGE_MANIFEST,
      artifactType: null,
      config: {
        mediaType: "application/vnd.wasm.config.v0+json",
        digest: artifact.config.digest,
        sizeBytes: artifact.config.bytes.length,
      },
      annotations: new Map(ANNOTATIONS),
    });
    expect(chooseLayers(manifest)).toMatchObject({
      module: { digest: MODULE_DIGEST, sizeBytes: 1234 },
      form: "wasm",
      manifestLayer: {
        digest: sha256(MANIFEST_JSON),
        sizeBytes: MANIFEST_JSON.length,
      },
    });
  });

  // What these artifacts are pinned to: another digest breaks whoever builds the same module again.
  it.each([
    {
      name: "a bare core module",
      options: { module: CORE },
      want: "sha256:2b18d77a79f285d97418301fb2190a2f7a044027bd03edada5cbdda8ca6e86f0",
    },
    {
      name: "everything",
      options: {
        module: COMPONENT,
        manifestJson: MANIFEST_JSON,
        annotations: ANNOTATIONS,
      },
      want: "sha256:989c002e71a07f2216a9ae26c88d812937ca45c46fa31866f41220d9341bb046",
    },
    {
      name: "everything, with annotations the other way round",
      options: {
        module: COMPONENT,
        manifestJson: MANIFEST_JSON,
        annotations: [...ANNOTATIONS].reverse(),
      },
      want: "sha256:989c002e71a07f2216a9ae26c88d812937ca45c46fa31866f41220d9341bb046",
    },
  ])("gives $name the digest it always had", ({ options, want }) => {
    expect(build(options).manifestDigest).toBe(want);
  });
});

function build(options: {
  module: PublishedModule;
  manifestJson?: Uint8Array;
  annotations?: readonly (readonly [string, string])[];
}) {
  return buildArtifact({
    module: options.module,
    manifestJson: options.manifestJson ?? null,
    annotations: new Map(options.annotations ?? []),
    created: CREATED,
  });
}

function text(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("utf8");
}

function parsed(bytes: Uint8Array): unknown {
  return JSON.parse(text(bytes));
}

function sha256(content: string | Uint8Array): Digest {
  return `sha256:${createHash("sha256").update(content).digest("hex")}`;
}
