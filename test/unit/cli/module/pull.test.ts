import { mkdir, readdir, readFile, symlink } from "node:fs/promises";
import { join, relative } from "node:path";

import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { layerOfFile } from "../../../../src/admission/index.js";
import {
  type ScriptedRegistry,
  startScriptedRegistry,
} from "../../../support/scripted-registry.js";
import { dirOf, runModule, sha256 } from "./run-module.js";

const WASM = Buffer.from("\0asm\x01\0\0\0 a module");
const MANIFEST =
  '{"requires":{"credentials":["yes"]},"abi":1,"version":"1.0.0","x-new":"a\\u2028b"}';

let registry: ScriptedRegistry;

beforeEach(async () => {
  registry = await startScriptedRegistry();
});
afterEach(() => registry.stop());

describe("cli/module/pull", () => {
  it("writes the module and its manifest, and says which digest the tag led to", async () => {
    const dir = await dirOf();
    const { manifestDigest } = publish({ manifest: MANIFEST });

    const { code, stdout, stderr } = await pull([
      `${location()}:v1`,
      `--output-file=${join(dir, "fn.wasm")}`,
    ]);

    const pinned = `${location()}:v1@${manifestDigest}`;
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: `\
${pinned}

module:
  type: OCI
  oci:
    ref: ${pinned}

requires:
  credentials:
    - "yes"
`,
    });
    expect(stderr).toContain(
      `module pull: wrote ${join(dir, "fn.wasm")} (${WASM.length} bytes)\n`,
    );
    expect((await readdir(dir)).sort()).toEqual(["fn.wasm", "wasmfn.yaml"]);
    expect(await readFile(join(dir, "fn.wasm"))).toEqual(WASM);
  });

  it("writes a manifest that is read as it was published", async () => {
    const dir = await dirOf();
    publish({ manifest: MANIFEST.replace(',"x-new":"a\\u2028b"', "") });

    await pull([`${location()}:v1`, `--output-file=${join(dir, "fn.wasm")}`]);

    const file = await readFile(join(dir, "wasmfn.yaml"));
    expect(layerOfFile(file)).toMatchObject({
      kind: "ok",
      value: {
        manifest: { version: "1.0.0", requires: { credentials: ["yes"] } },
      },
    });
  });

  it("writes the manifest's own bytes to a .json file", async () => {
    const dir = await dirOf();
    publish({ manifest: MANIFEST });

    await pull([
      `${location()}:v1`,
      `--output-file=${join(dir, "fn.wasm")}`,
      `--manifest-file=${join(dir, "m.json")}`,
    ]);

    expect((await readdir(dir)).sort()).toEqual(["fn.wasm", "m.json"]);
    expect(await readFile(join(dir, "m.json"), "utf8")).toBe(MANIFEST);
  });

  it("tells programs the same in one object", async () => {
    const dir = await dirOf();
    const { manifestDigest } = publish({ manifest: MANIFEST });
    const ref = `${location()}@${manifestDigest}`;

    const { stdout } = await pull([
      ref,
      `--output-file=${join(dir, "fn.wasm")}`,
      "--no-manifest-file",
      "--output=json",
    ]);

    expect(JSON.parse(stdout)).toStrictEqual({
      ref,
      moduleDigest: sha256(WASM),
      sizeBytes: WASM.length,
      outputFile: join(dir, "fn.wasm"),
      manifestFile: null,
      module: { type: "OCI", oci: { ref } },
      requires: { credentials: ["yes"] },
    });
    expect(await readdir(dir)).toEqual(["fn.wasm"]);
  });

  it.each([
    { name: "the module's", file: "fn.wasm", advice: "--output-file writes" },
    { name: "the manifest's", file: "wasmfn.yaml", advice: "--manifest-file" },
  ])("replaces $name file with --force only", async ({ file, advice }) => {
    const dir = await dirOf({ [file]: "precious" });
    publish({ manifest: MANIFEST });
    const argv = [`${location()}:v1`, `--output-file=${join(dir, "fn.wasm")}`];

    const refused = await pull(argv);
    const left = await readdir(dir);
    const content = await readFile(join(dir, file), "utf8");
    const forced = await pull([...argv, "--force"]);

    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(refused.stderr).toContain(`"${join(dir, file)}" is there already`);
    expect(refused.stderr).toContain(advice);
    expect({ left, content }).toEqual({ left: [file], content: "precious" });
    expect(forced.code).toBe(0);
    expect(await readFile(join(dir, file), "utf8")).not.toBe("precious");
  });

  it("ends with 2 for a registry that gives no answer, and names no flag that it lacks", async () => {
    const dir = await dirOf();
    publish({});
    await registry.stop();

    const outcome = await pull([
      `${location()}:v1`,
      `--output-file=${join(dir, "fn.wasm")}`,
    ]);

    expect(outcome).toMatchObject({ code: 2, stdout: "" });
    expect(outcome.stderr).toBe(
      `module pull: cannot resolve module: module OCI ${location()}:v1: connection refused (ECONNREFUSED)\n`,
    );
  });

  it.each([
    {
      name: "a directory of the module that is not there",
      argv: (dir: string) => [`--output-file=${dir}/gone/fn.wasm`],
      want: (dir: string) =>
        `--output-file "${dir}/gone/fn.wasm": expected a directory to write to, there is no "${dir}/gone"`,
    },
    {
      name: "a directory of the manifest that is not there",
      argv: (dir: string) => [
        `--output-file=${dir}/fn.wasm`,
        `--manifest-file=${dir}/gone/m.yaml`,
      ],
      want: (dir: string) =>
        `--manifest-file "${dir}/gone/m.yaml": expected a directory to write to, there is no "${dir}/gone"`,
    },
    {
      name: "a directory in the manifest's place, forced",
      argv: (dir: string) => [
        `--output-file=${dir}/fn.wasm`,
        `--manifest-file=${dir}`,
        "--force",
      ],
      want: (dir: string) =>
        `--manifest-file "${dir}": expected a file or nothing in that place, got a directory`,
    },
    {
      name: "a manifest's file without a name",
      argv: (dir: string) => [
        `--output-file=${dir}/fn.wasm`,
        "--manifest-file=",
      ],
      want: () => '--manifest-file: expected the path of a file, got ""',
    },
  ])("asks nobody and writes nothing for $name", async ({ argv, want }) => {
    const dir = await dirOf();
    publish({ manifest: MANIFEST });

    const outcome = await pull([`${location()}:v1`, ...argv(dir)]);

    expect(outcome).toEqual({
      code: 2,
      stdout: "",
      stderr: `module pull: ${want(dir)}\n`,
    });
    expect(await readdir(dir)).toEqual([]);
    expect(registry.requests).toEqual([]);
  });

  it("writes no module when its manifest has no place beside it", async () => {
    const dir = await dirOf();
    await mkdir(join(dir, "wasmfn.yaml"));
    const argv = [
      `${location()}:v1`,
      `--output-file=${join(dir, "fn.wasm")}`,
      "--force",
    ];
    publish({ manifest: MANIFEST });

    const outcome = await pull(argv);
    const left = await readdir(dir);
    publish({});
    const without = await pull(argv);

    expect(outcome).toMatchObject({ code: 2, stdout: "" });
    expect(outcome.stderr).toMatch(
      /\nmodule pull: --manifest-file "[^"]*wasmfn\.yaml": expected a file or nothing in that place, got a directory\n$/,
    );
    expect(left).toEqual(["wasmfn.yaml"]);
    // What has no manifest needs no place for it.
    expect(without.code).toBe(0);
  });

  it("asks no registry when the module's file is there", async () => {
    const dir = await dirOf({ "fn.wasm": "precious" });

    await pull([`${location()}:v1`, `--output-file=${join(dir, "fn.wasm")}`]);

    expect(registry.requests).toEqual([]);
  });

  it.each([
    {
      name: "one name",
      files: (dir: string) => [join(dir, "a.wasm"), join(dir, "a.wasm")],
    },
    {
      name: "two ways to write it",
      files: (dir: string) => [
        join(dir, "a.wasm"),
        `${relative(process.cwd(), dir)}/./sub/../a.wasm`,
      ],
    },
    {
      name: "a link to its directory",
      files: (dir: string) => [
        join(dir, "sub", "a.wasm"),
        join(dir, "link", "a.wasm"),
      ],
    },
    {
      name: "a directory that is not there",
      files: (dir: string) => [
        join(dir, "gone", "a.wasm"),
        `${dir}/gone/../gone/a.wasm`,
      ],
    },
    {
      name: "the manifest's own name",
      files: (dir: string) => [join(dir, "wasmfn.yaml")],
      byDefault: " (by default wasmfn.yaml beside the module)",
    },
  ])(
    "refuses to write both to one file: $name",
    async ({ files, byDefault = "" }) => {
      const dir = await dirOf();
      await mkdir(join(dir, "sub"));
      await symlink("sub", join(dir, "link"));
      publish({ manifest: MANIFEST });
      const [wasmFile = "", manifestFile] = files(dir);
      const argv = [
        `${location()}:v1`,
        `--output-file=${wasmFile}`,
        ...(manifestFile === undefined
          ? []
          : [`--manifest-file=${manifestFile}`]),
      ];

      const outcomes = [await pull(argv), await pull([...argv, "--force"])];

      for (const outcome of outcomes)
        expect(outcome).toEqual({
          code: 2,
          stdout: "",
          stderr: `module pull: --output-file and --manifest-file${byDefault} are the same file, "${wasmFile}"\n`,
        });
      expect((await readdir(dir)).sort()).toEqual(["link", "sub"]);
      expect(await readdir(join(dir, "sub"))).toEqual([]);
      expect(registry.requests).toEqual([]);
    },
  );

  it("writes a module under the manifest's name when there is to be none", async () => {
    const dir = await dirOf();
    publish({ manifest: MANIFEST });
    const file = join(dir, "wasmfn.yaml");

    const { code } = await pull([
      `${location()}:v1`,
      `--output-file=${file}`,
      "--no-manifest-file",
    ]);

    expect(code).toBe(0);
    expect(await readFile(file)).toEqual(WASM);
  });

  it("refuses --manifest-file with --no-manifest-file", async () => {
    await expect(
      pull([`${location()}:v1`, "--manifest-file=a", "--no-manifest-file"]),
    ).rejects.toThrow(
      "option '--manifest-file' cannot be used with option '--no-manifest-file'",
    );
    expect(registry.requests).toEqual([]);
  });

  it("leaves a manifest alone that is not its own", async () => {
    const dir = await dirOf({ "wasmfn.yaml": "of another module" });
    publish({});

    const { code, stdout } = await pull([
      `${location()}:v1`,
      `--output-file=${join(dir, "fn.wasm")}`,
    ]);

    expect(code).toBe(0);
    expect(stdout).toMatch(/\nrequires nothing: .*\n$/);
    expect(await readFile(join(dir, "wasmfn.yaml"), "utf8")).toBe(
      "of another module",
    );
  });

  it("keeps what it pulled in the cache it is given", async () => {
    const dir = await dirOf();
    await mkdir(join(dir, "cache"), { mode: 0o700 });
    publish({});
    const argv = (name: string) => [
      `${location()}:v1`,
      `--output-file=${join(dir, name)}`,
      `--cache-dir=${join(dir, "cache")}`,
    ];

    await pull(argv("a.wasm"));
    await pull(argv("b.wasm"));

    const layer = registry.requests.filter(
      ({ method, path }) => method === "GET" && path.endsWith(sha256(WASM)),
    );
    expect(layer).toHaveLength(1);
    expect(await readFile(join(dir, "b.wasm"))).toEqual(WASM);
  });

  it.each([
    {
      name: "a manifest that is none",
      content: { manifest: '{"abi":3}' },
      code: 1,
      want: /its manifest is invalid: abi: expected 1 or 2, got 3$/,
    },
    {
      name: "a requirement that is not known",
      content: { manifest: '{"abi":1,"requires":{"gpu":true}}' },
      code: 1,
      want: /unknown field requires\.gpu/,
    },
    {
      name: "no module",
      content: { layerMediaType: "application/zip" },
      code: 1,
      want: /no layer is a module/,
    },
  ])("ends with $code for $name", async ({ content, code, want }) => {
    const dir = await dirOf();
    publish(content);

    const outcome = await pull([
      `${location()}:v1`,
      `--output-file=${join(dir, "fn.wasm")}`,
    ]);

    expect(outcome).toMatchObject({ code, stdout: "" });
    expect(outcome.stderr.trimEnd()).toMatch(want);
    expect(await readdir(dir)).toEqual([]);
  });

  it("ends with 2 for bytes that are not those of the digest, and writes none", async () => {
    const dir = await dirOf();
    const { layerDigest } = publish({});
    registry.intercept(({ method, path }) =>
      method === "GET" && path.endsWith(layerDigest)
        ? { status: 200, body: Buffer.alloc(WASM.length) }
        : "pass",
    );

    const outcome = await pull([
      `${location()}:v1`,
      `--output-file=${join(dir, "fn.wasm")}`,
    ]);

    expect(outcome).toMatchObject({ code: 2, stdout: "" });
    expect(await readdir(dir)).toEqual([]);
  });

  it.each([
    {
      name: "a tag that is not there",
      ref: () => `${location()}:gone`,
      want: /^module pull: cannot resolve module: module OCI .*:gone: /,
    },
    {
      name: "a scheme",
      ref: () => `oci://${location()}:v1`,
      want: /^module pull: reference: a reference has no "oci:\/\/", expected registry\/repository with a tag or a digest\n$/,
    },
    {
      name: "neither tag nor digest",
      ref: () => location(),
      want: /^module pull: reference: expected a tag or a digest/,
    },
  ])("ends with 2 for $name", async ({ ref, want }) => {
    const dir = await dirOf();
    publish({});

    const outcome = await pull([
      ref(),
      `--output-file=${join(dir, "fn.wasm")}`,
    ]);

    expect(outcome).toMatchObject({ code: 2, stdout: "" });
    expect(outcome.stderr).toMatch(want);
    expect(await readdir(dir)).toEqual([]);
  });
});

function pull(argv: readonly string[]) {
  return runModule(["pull", ...argv]);
}

function location(): string {
  return `${registry.authority}/example/greeter`;
}

function publish(content: { manifest?: string; layerMediaType?: string }) {
  return registry.addModule("example/greeter", {
    wasm: WASM,
    tag: "v1",
    ...content,
  });
}
