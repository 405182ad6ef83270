import { join } from "node:path";

import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { EngineError } from "../../../../src/engine/index.js";
import {
  type ScriptedRegistry,
  startScriptedRegistry,
} from "../../../support/scripted-registry.js";
import { dirOf, runModule, sha256 } from "./run-module.js";

const WASM = Buffer.from("\0asm\x01\0\0\0 a module");
const MANIFEST =
  '{"abi":2,"name":"greeter","requires":{"credentials":["db"]},"config":{"schema":{}}}';
const OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json";

let registry: ScriptedRegistry;

beforeEach(async () => {
  registry = await startScriptedRegistry();
});
afterEach(() => registry.stop());

describe("cli/module/inspect", () => {
  it("tells what a file is", async () => {
    const dir = await dirOf({
      "a.wasm": WASM,
      "wasmfn.yaml": "abi: 1\nname: greeter\nrequires: {credentials: [db]}\n",
    });

    const { code, stdout } = await inspect([join(dir, "a.wasm")]);

    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: `\
module: ${sha256(WASM)} (${WASM.length} bytes)
abi: 1
name: greeter
requires:
  credentials:
    - db
`,
    });
  });

  it("tells programs what a file is", async () => {
    const dir = await dirOf({ "a.wasm": WASM });

    const { stdout } = await inspect([join(dir, "a.wasm"), "--output=json"]);

    expect(JSON.parse(stdout)).toStrictEqual({
      moduleDigest: sha256(WASM),
      sizeBytes: WASM.length,
      abi: 1,
      hasManifest: false,
      name: null,
      version: null,
      source: null,
      minRuntime: null,
      hasConfigSchema: false,
      requires: null,
    });
  });

  it("tells what a reference leads to, and pulls no module", async () => {
    const { manifestDigest, layerDigest } = registry.addModule("a/b", {
      wasm: WASM,
      manifest: MANIFEST,
      tag: "v1",
    });

    const { code, stdout, stderr } = await inspect([
      `${registry.authority}/a/b:v1`,
    ]);

    const size = registry.requests.length;
    expect({ code, stderr, size }).toEqual({ code: 0, stderr: "", size: 2 });
    expect(stdout).toMatch(
      new RegExp(
        [
          `^artifact: ${registry.authority}/a/b:v1@${manifestDigest}`,
          `manifest: ${manifestDigest} application/vnd\\.oci\\.image\\.manifest\\.v1\\+json \\(\\d+ bytes\\)`,
          `config: ${sha256("{}")} application/vnd\\.wasm\\.config\\.v0\\+json \\(2 bytes\\)`,
          `layer: ${layerDigest} application/wasm \\(${WASM.length} bytes\\), the module`,
          `layer: ${sha256(MANIFEST)} application/vnd\\.wasmfn\\.manifest\\.v1\\+json \\(${MANIFEST.length} bytes\\), the manifest of the module`,
          "abi: 2",
          "name: greeter",
          "config: has a schema",
          "requires:",
          "  credentials:",
          "    - db\n$",
        ].join("\n"),
      ),
    );
    expect(registry.requests.map(({ path }) => path)).not.toContainEqual(
      expect.stringContaining(layerDigest),
    );
  });

  it("tells programs what a reference leads to", async () => {
    const { manifestDigest, layerDigest } = registry.addModule("a/b", {
      wasm: WASM,
      tag: "v1",
    });
    const ref = `${registry.authority}/a/b@${manifestDigest}`;

    const { stdout } = await inspect([ref, "--output=json"]);

    expect(JSON.parse(stdout)).toStrictEqual({
      ref,
      digest: manifestDigest,
      mediaType: OCI_MANIFEST,
      sizeBytes: expect.any(Number) as number,
      config: {
        digest: sha256("{}"),
        mediaType: "application/vnd.wasm.config.v0+json",
        sizeBytes: 2,
      },
      layers: [
        {
          digest: layerDigest,
          mediaType: "application/wasm",
          sizeBytes: WASM.length,
          role: "module",
        },
      ],
      annotations: {},
      abi: null,
      hasManifest: false,
      name: null,
      version: null,
      source: null,
      minRuntime: null,
      hasConfigSchema: false,
      requires: null,
    });
  });

  it.each(["text", "json"])(
    "shows nothing in %s that a terminal would obey",
    async (format) => {
      const evil = "\u001b[2J\u202e\nabi: 1";
      publishImage({
        annotations: { [evil]: evil },
        layerType: `application/wasm\u001b[2J`,
      });

      const { code, stdout } = await inspect([
        `${registry.authority}/a/b:v1`,
        `--output=${format}`,
      ]);

      expect(code).toBe(0);
      expect(stdout).toContain("\\u001b[2J\\u202e");
      expect(stdout).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}]/u);
      expect(stdout.match(/^abi: /gm)?.length ?? 0).toBeLessThan(2);
    },
  );

  it("does not print every annotation of thousands", async () => {
    const names = Array.from({ length: 4000 }, (_, i) => [`a${i}`, "x"]);
    publishImage({ annotations: Object.fromEntries(names) as object });

    const { stdout } = await inspect([`${registry.authority}/a/b:v1`]);

    expect(stdout.match(/^annotation: a\d+="x"$/gm)).toHaveLength(50);
    expect(stdout).toContain("\nannotation: 3950 more\n");
  });

  it("takes what exists for a file, and a directory for a repository", async () => {
    const dir = await dirOf({ "a.wasm": WASM });

    const outcome = await inspect([dir]);

    expect(outcome).toMatchObject({ code: 2, stdout: "" });
    expect(outcome.stderr).toContain("expected a file, got a directory");
    expect((await inspect(["src"])).stderr).toContain(
      '"src" is no file here, and as a reference it has no tag and no digest',
    );
  });

  it.each(["./nowhere.wasm", "../nowhere.wasm", "/nowhere.wasm"])(
    "takes %s for a file",
    async (subject) => {
      expect(await inspect([subject])).toEqual({
        code: 2,
        stdout: "",
        stderr: `module inspect: module ${subject}: no such file\n`,
      });
    },
  );

  it("says what it expects when it is given nothing", async () => {
    expect(await inspect([""])).toEqual({
      code: 2,
      stdout: "",
      stderr:
        'module inspect: expected the path of a file or a reference, got ""\n',
    });
  });

  it("names the place once when nobody answers", async () => {
    expect(await inspect(["127.0.0.1:1/a/b:v1"])).toEqual({
      code: 2,
      stdout: "",
      stderr:
        "module inspect: cannot inspect 127.0.0.1:1/a/b:v1: connection refused (ECONNREFUSED)\n",
    });
  });

  it("says of what is misspelt that it is no file", async () => {
    expect(await inspect(["greetr.wasm"])).toEqual({
      code: 2,
      stdout: "",
      stderr:
        'module inspect: "greetr.wasm" is no file here, and as a reference it has no tag and no digest\n',
    });
  });

  it("refuses a file that the sandbox refuses", async () => {
    const dir = await dirOf({ "a.wasm": WASM });

    const outcome = await runModule(["inspect", join(dir, "a.wasm")], {
      engine: {
        load: () => Promise.reject(new EngineError("module-invalid", "no")),
      },
    });

    expect(outcome).toMatchObject({ code: 1, stdout: "" });
  });

  it("refuses an artifact whose module's manifest is none", async () => {
    registry.addModule("a/b", { wasm: WASM, manifest: "{}", tag: "v1" });

    const outcome = await inspect([`${registry.authority}/a/b:v1`]);

    expect(outcome).toMatchObject({ code: 1, stdout: "" });
    expect(outcome.stderr).toMatch(
      /^module inspect: module OCI .*\/a\/b:v1: its manifest is invalid: abi is required\n$/,
    );
  });

  it.each([
    {
      name: "a manifest of another digest",
      ref: () => `@sha256:${"0".repeat(64)}`,
      intercept: "manifests",
      want: /^module inspect: cannot inspect .*: the registry delivered a manifest with digest sha256:/,
    },
    {
      name: "a module's manifest of another digest",
      ref: () => ":v1",
      intercept: "blobs",
      want: /^module inspect: cannot inspect .*: its module's manifest: expected sha256:/,
    },
    {
      name: "a tag that is not there",
      ref: () => ":gone",
      intercept: "nothing",
      want: /^module inspect: cannot inspect .*:gone: /,
    },
  ])("ends with 2 for $name", async ({ ref, intercept, want }) => {
    registry.addModule("a/b", { wasm: WASM, manifest: MANIFEST, tag: "v1" });
    registry.intercept(({ path }) =>
      path.includes(`/${intercept}/`)
        ? {
            status: 200,
            body: JSON.stringify({ schemaVersion: 2 }),
            headers: { "content-type": OCI_MANIFEST },
          }
        : "pass",
    );

    const outcome = await inspect([`${registry.authority}/a/b${ref()}`]);

    expect(outcome).toMatchObject({ code: 2, stdout: "" });
    expect(outcome.stderr).toMatch(want);
  });

  it("takes no manifest for a reference", async () => {
    const outcome = await inspect(["a/b:v1", "--manifest=x"]);

    expect(outcome).toMatchObject({ code: 2, stdout: "" });
    expect(outcome.stderr).toContain("--manifest is for a file");
  });

  it("refuses --manifest with --no-manifest", async () => {
    await expect(
      inspect(["./a.wasm", "--manifest=x.yaml", "--no-manifest"]),
    ).rejects.toThrow(
      "option '--manifest' cannot be used with option '--no-manifest'",
    );
  });

  it("says what the Docker config lacks", async () => {
    registry.addModule("a/b", { wasm: WASM, tag: "v1" });
    const dir = await dirOf({
      "config.json": JSON.stringify({ auths: { [registry.authority]: {} } }),
    });

    const { code, stderr } = await runModule(
      ["inspect", `${registry.authority}/a/b:v1`],
      { env: { DOCKER_CONFIG: dir } },
    );

    expect(code).toBe(0);
    expect(stderr).toMatch(
      /^module inspect: a Docker config entry has no secret, pulling anonymously \(key .*\)\n$/,
    );
  });
});

function inspect(argv: readonly string[]) {
  return runModule(["inspect", ...argv]);
}

function publishImage({
  annotations,
  layerType = "application/wasm",
}: {
  annotations: object;
  layerType?: string;
}) {
  const config = registry.addBlob(Buffer.from("{}"));
  const layer = registry.addBlob(WASM);
  registry.addManifest(
    "a/b",
    {
      schemaVersion: 2,
      mediaType: OCI_MANIFEST,
      config: { mediaType: "application/x", digest: config, size: 2 },
      layers: [{ mediaType: layerType, digest: layer, size: WASM.length }],
      annotations,
    },
    "v1",
  );
}
