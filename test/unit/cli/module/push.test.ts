import { readdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { CommanderError } from "commander";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

import {
  type Engine,
  EngineError,
  type EngineOptions,
} from "../../../../src/engine/index.js";
import { assembleText } from "../../../support/guests.js";
import {
  PushRegistry,
  REPOSITORY,
  Store,
} from "../../loader/oci/push-registry.js";
import { dirOf, runModule, sha256, type World } from "./run-module.js";

const WASM = Buffer.from("\0asm\x01\0\0\0 a module");
const MANIFEST = `\
abi: 1
name: greeter
version: v1.2.3
source: https://example.com/greeter
requires:
  env: [{ name: URL, fromCredential: { name: db, key: url } }]
  credentials: [cmdb]
  filesystem: { privateTmp: true }
  egress:
    http:
      - { host: API.example.com, methods: [GET], pathPrefix: /v1 }
      - { hostPattern: "*.example.org", methods: [PUT], scheme: http }
`;
const EPOCH = { SOURCE_DATE_EPOCH: "1700000000" };
const CREATED = "2023-11-14T22:13:20.000Z";
const PREFIX = "org.opencontainers.image.";

interface StoredManifest {
  readonly config: { digest: string };
  readonly layers: { mediaType: string; digest: string; size: number }[];
  readonly annotations: Record<string, string>;
}

let store: Store;
let registry: PushRegistry;

beforeEach(async () => {
  store = new Store();
  registry = await new PushRegistry(store, null).listen();
});
afterEach(() => registry.close());

describe("cli/module/push", () => {
  it("publishes a module with the manifest beside it, and says what to paste", async () => {
    const dir = await dirOf({ "greeter.wasm": WASM, "wasmfn.yaml": MANIFEST });

    const { code, stdout, stderr } = await push([
      join(dir, "greeter.wasm"),
      target("v1"),
    ]);

    const digest = digestOf("v1");
    const pinned = `${registry.host}/${REPOSITORY}:v1@${digest}`;
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
    - cmdb
  egress:
    http:
      - host: api.example.com
        methods:
          - GET
        pathPrefix: /v1
        port: 443
        scheme: https
      - hostPattern: "*.example.org"
        methods:
          - PUT
        port: 80
        scheme: http
  env:
    - fromCredential:
        key: url
        name: db
      name: URL
  filesystem:
    privateTmp: true
`,
    });
    const lines = stderr.trimEnd().split("\n");
    expect(lines[0]).toBe(`module push: manifest ${join(dir, "wasmfn.yaml")}`);
    expect(lines.at(-1)).toBe(
      `module push: artifact ${digest} (${store.manifests.get("v1")?.bytes.length} bytes) pushed`,
    );
    expect(lines.every((line) => line.startsWith("module push: "))).toBe(true);
  });

  it("lays the artifact out as the runtime reads it", async () => {
    const dir = await dirOf({ "greeter.wasm": WASM, "wasmfn.yaml": MANIFEST });

    await push([
      join(dir, "greeter.wasm"),
      target("v1"),
      "--annotation=team=a=b",
      `--annotation=${PREFIX}version=9`,
    ]);

    const { annotations, config, layers } = manifestOf("v1");
    expect(annotations).toEqual({
      [`${PREFIX}created`]: CREATED,
      [`${PREFIX}source`]: "https://example.com/greeter",
      [`${PREFIX}title`]: "greeter.wasm",
      [`${PREFIX}version`]: "9",
      team: "a=b",
    });
    expect(layers.map(({ mediaType }) => mediaType)).toEqual([
      "application/wasm",
      "application/vnd.wasmfn.manifest.v1+json",
    ]);
    expect(layers[0]).toMatchObject({
      digest: sha256(WASM),
      size: WASM.length,
    });
    expect(jsonBlob(layers[1]?.digest)).toMatchObject({
      abi: 1,
      version: "v1.2.3",
      requires: { credentials: ["cmdb"] },
    });
    expect(jsonBlob(config.digest)).toMatchObject({
      created: CREATED,
      os: "wasip1",
    });
  });

  it("names what a component imports and exports", async () => {
    const component = await assembleText(
      '(component (import "log" (func $f)) (export "run" (func $f)))',
    );
    const dir = await dirOf({ "c.wasm": component });

    const outcome = await push([join(dir, "c.wasm"), target("v1")], {
      engine: loadingAs(2),
    });

    expect(outcome.code).toBe(0);
    expect(jsonBlob(manifestOf("v1").config.digest)).toMatchObject({
      os: "wasip2",
      component: { imports: ["log"], exports: ["run"] },
    });
  });

  it("makes the same digest of the same files, and pushes nothing twice", async () => {
    const dir = await dirOf({ "greeter.wasm": WASM, "wasmfn.yaml": MANIFEST });
    const argv = [join(dir, "greeter.wasm"), target("v1")];

    const first = await push(argv);
    const puts = registry.asked.filter((asked) => asked.startsWith("PUT"));
    const second = await push(argv);

    expect(second.stdout).toBe(first.stdout);
    expect(puts).toHaveLength(4);
    expect(registry.asked.filter((asked) => asked.startsWith("PUT"))).toEqual(
      puts,
    );
    expect(second.stderr).toMatch(
      /artifact sha256:\w+ \(\d+ bytes\) is there already/,
    );
  });

  it("does not move a tag, unless it is told to", async () => {
    const dir = await dirOf({ "a.wasm": WASM, "b.wasm": "other" });
    await push([join(dir, "a.wasm"), target("v1")]);
    const first = digestOf("v1");

    const refused = await push([join(dir, "b.wasm"), target("v1")]);
    const kept = digestOf("v1");
    const second = await push([join(dir, "b.wasm"), target("other")]);
    const moved = await push([
      join(dir, "b.wasm"),
      target("v1"),
      "--overwrite",
    ]);

    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(second.code).toBe(0);
    expect(lastLine(refused.stderr)).toBe(
      `module push: cannot push ${registry.host}/${REPOSITORY}:v1: the tag leads to ${first} already, and is not moved to ${digestOf("other")}; --overwrite moves it`,
    );
    expect(kept).toBe(first);
    expect(moved.code).toBe(0);
    expect(digestOf("v1")).not.toBe(first);
  });

  it("publishes under the digest alone without a tag", async () => {
    const dir = await dirOf({ "a.wasm": WASM });

    const { stdout, code } = await push([
      join(dir, "a.wasm"),
      `${registry.host}/${REPOSITORY}`,
    ]);

    const [reference] = [...store.manifests.keys()];
    expect(code).toBe(0);
    expect(store.manifests.size).toBe(1);
    expect(stdout).toMatch(`${registry.host}/${REPOSITORY}@${reference}\n`);
  });

  it("tells programs the same in one object", async () => {
    const dir = await dirOf({ "a.wasm": WASM });

    const { stdout } = await push([
      join(dir, "a.wasm"),
      target("v1"),
      "--output=json",
    ]);

    const ref = `${registry.host}/${REPOSITORY}:v1@${digestOf("v1")}`;
    expect(stdout.split("\n")).toHaveLength(2);
    expect(JSON.parse(stdout)).toStrictEqual({
      ref,
      digest: digestOf("v1"),
      moduleDigest: sha256(WASM),
      sizeBytes: WASM.length,
      abi: 1,
      hasManifest: false,
      module: { type: "OCI", oci: { ref } },
      requires: null,
    });
  });

  it.each([
    { name: "there is none", files: {}, argv: [], want: /no manifest: there/ },
    {
      name: "it is not wanted",
      files: { "wasmfn.yaml": MANIFEST },
      argv: ["--no-manifest"],
      want: /^(?!.*manifest .*yaml)/,
    },
  ])("publishes no manifest when $name", async ({ files, argv, want }) => {
    const dir = await dirOf({ "a.wasm": WASM, ...files });

    const { code, stdout, stderr } = await push([
      join(dir, "a.wasm"),
      target("v1"),
      ...argv,
    ]);

    expect(code).toBe(0);
    expect(manifestOf("v1").layers).toHaveLength(1);
    expect(stdout).toMatch(/\nrequires nothing: .*\n$/);
    expect(stderr).toMatch(want);
  });

  it("publishes the manifest that it is given", async () => {
    const dir = await dirOf({
      "a.wasm": WASM,
      "wasmfn.yaml": "abi: 7",
      "other.yaml": "abi: 1\nname: other\n",
    });

    await push([
      join(dir, "a.wasm"),
      target("v1"),
      `--manifest=${join(dir, "other.yaml")}`,
    ]);

    expect(jsonBlob(manifestOf("v1").layers[1]?.digest)).toEqual({
      abi: 1,
      name: "other",
    });
  });

  it.each([
    {
      name: "a field that there is not",
      manifest: "abi: 1\nrequire: {}\n",
      want: /its manifest is invalid: .*wasmfn\.yaml: unknown field require, did you mean requires$/,
    },
    {
      name: "another ABI than the module has",
      manifest: "abi: 2\n",
      want: /its manifest declares abi 2, but its binary is of abi 1$/,
    },
    {
      name: "a newer runtime",
      manifest: "abi: 1\nminRuntime: v999.0.0\n",
      want: /requires runtime v999\.0\.0 or newer/,
    },
  ])("refuses a manifest with $name", async ({ manifest, want }) => {
    const dir = await dirOf({ "a.wasm": WASM, "wasmfn.yaml": manifest });

    const outcome = await push([join(dir, "a.wasm"), target("v1")]);

    expect(outcome).toMatchObject({ code: 1, stdout: "" });
    expect(lastLine(outcome.stderr)).toMatch(want);
    expect(registry.asked).toEqual([]);
  });

  it("takes a manifest whose schema no empty config matches", async () => {
    const schema = "config: { schema: { required: [greeting] } }";
    const dir = await dirOf({
      "a.wasm": WASM,
      "wasmfn.yaml": `abi: 1\n${schema}\n`,
    });

    const outcome = await push([join(dir, "a.wasm"), target("v1")]);

    expect(outcome.code).toBe(0);
  });

  it("refuses what the sandbox refuses, in its words", async () => {
    const dir = await dirOf({ "a.wasm": WASM });
    const engines: EngineOptions[] = [];

    const outcome = await push(
      [join(dir, "a.wasm"), target("v1"), "--module-memory-limit=64Mi"],
      {
        engine: {
          load: () =>
            Promise.reject(new EngineError("module-invalid", "no such export")),
        },
        onEngine: (options) => engines.push(options),
      },
    );

    expect(outcome).toMatchObject({ code: 1, stdout: "" });
    expect(lastLine(outcome.stderr)).toBe(
      `module push: module ${join(dir, "a.wasm")}: no such export`,
    );
    expect(registry.asked).toEqual([]);
    expect(engines).toMatchObject([{ memoryLimitBytes: 64 * 1024 * 1024 }]);
    // What was compiled is gone.
    await expect(readdir(engines[0]?.cacheDir ?? "")).rejects.toThrow("ENOENT");
  });

  it.each([
    {
      name: "an empty file",
      content: "",
      argv: [],
      code: 1,
      want: /: the file is empty$/,
    },
    {
      name: "a file above --max-module-size",
      content: Buffer.alloc(1024 * 1024 + 1),
      argv: ["--max-module-size=1"],
      code: 1,
      want: /1048577 bytes, --max-module-size allows 1048576$/,
    },
    {
      name: "no file",
      content: null,
      argv: [],
      code: 2,
      want: /: no such file$/,
    },
    {
      name: "a manifest that is not there",
      content: WASM,
      argv: ["--manifest=/nowhere.yaml"],
      code: 2,
      want: /^module push: --manifest: cannot read "\/nowhere\.yaml"/,
    },
    {
      name: "a flag that does not parse",
      content: WASM,
      argv: ["--module-memory-limit=x"],
      code: 2,
      want: /^module push: --module-memory-limit: expected/,
    },
    {
      name: "an annotation without key",
      content: WASM,
      argv: ["--annotation==x"],
      code: 2,
      want: /^module push: --annotation: expected key=value/,
    },
  ])("ends with $code for $name", async ({ content, argv, code, want }) => {
    const dir = await dirOf();
    if (content !== null) await writeFile(join(dir, "a.wasm"), content);

    const outcome = await push([join(dir, "a.wasm"), target("v1"), ...argv]);

    expect(outcome).toMatchObject({ code, stdout: "" });
    expect(lastLine(outcome.stderr)).toMatch(want);
    expect(registry.asked).toEqual([]);
  });

  it.each([
    {
      name: "a digest",
      ref: `example/greeter@sha256:${"0".repeat(64)}`,
      want: /expected registry\/repository\[:tag\], got .*: the digest of an artifact comes from its content/,
    },
    {
      name: "a password",
      ref: "https://user:hunter2@example.com/a",
      want: /^module push: reference: (?!.*hunter2)/,
    },
    { name: "no name", ref: "A", want: /^module push: reference: / },
    {
      name: "a scheme",
      ref: "oci://example.com/a:v1",
      want: /^module push: reference: a reference has no "oci:\/\/", expected registry\/repository\[:tag\]\n$/,
    },
  ])("refuses a reference with $name", async ({ ref, want }) => {
    const dir = await dirOf({ "a.wasm": WASM });

    const outcome = await push([join(dir, "a.wasm"), ref]);

    expect(outcome).toMatchObject({ code: 2, stdout: "" });
    expect(outcome.stderr).toMatch(want);
    expect(outcome.stderr.split("\n")).toHaveLength(2);
  });

  it("refuses a SOURCE_DATE_EPOCH that is none", async () => {
    const dir = await dirOf({ "a.wasm": WASM });

    const outcome = await push([join(dir, "a.wasm"), target("v1")], {
      env: { SOURCE_DATE_EPOCH: "today" },
    });

    expect(outcome).toMatchObject({ code: 2, stdout: "" });
    expect(outcome.stderr).toMatch(/^module push: SOURCE_DATE_EPOCH: expected/);
  });

  it("says what the registry says, and ends with 2", async () => {
    const dir = await dirOf({ "a.wasm": WASM });
    const errors = [{ code: "DENIED", message: "no\u001b[2J way" }];
    registry.answer = () => ({ status: 403, body: JSON.stringify({ errors }) });

    const outcome = await push([join(dir, "a.wasm"), target("v1")]);

    expect(outcome).toMatchObject({ code: 2, stdout: "" });
    expect(lastLine(outcome.stderr)).toContain("no\\u001b[2J way");
  });

  it.each([
    {
      asks: "GET manifests",
      answer: { status: 401 },
      want: "the registry wants a credential and there is none for it",
    },
    {
      asks: "GET manifests",
      answer: { status: 307 },
      want: "HTTP 307 without a location that can be read",
    },
    {
      asks: "POST uploads",
      answer: { status: 403 },
      want: "HTTP 403 Forbidden",
    },
    {
      asks: "POST uploads",
      answer: { status: 500 },
      want: "HTTP 500 Internal Server Error",
    },
    {
      asks: "POST uploads",
      answer: { status: 202 },
      want: "expected one Location header in the answer that opens an upload, got 0",
    },
    {
      asks: "POST uploads",
      answer: { status: 202, headers: { location: "http://127.0.0.1:1/" } },
      want: "the registry sent on to 127.0.0.1:1: connection refused (ECONNREFUSED)",
    },
    { asks: "PUT uploads", answer: { status: 413 }, want: "HTTP 413" },
    {
      asks: "PUT manifests",
      answer: { status: 200 },
      want: "expected HTTP 201, got 200",
    },
  ])(
    "names the place once when $answer.status answers $asks: $want",
    async ({ asks, answer, want }) => {
      const dir = await dirOf({ "a.wasm": WASM });
      registry.answer = ({ method, target: at }) =>
        asks === `${method} ${/manifests|uploads/u.exec(at)?.[0]}`
          ? answer
          : null;

      const outcome = await push([join(dir, "a.wasm"), target("v1")]);

      expect(outcome).toMatchObject({ code: 2, stdout: "" });
      expect(lastLine(outcome.stderr)).toBe(
        `module push: cannot push ${target("v1")}: ${want}`,
      );
    },
  );

  it("names the place once when nobody answers", async () => {
    const dir = await dirOf({ "a.wasm": WASM });
    const ref = "127.0.0.1:1/a/b:v1";

    const outcome = await push([join(dir, "a.wasm"), ref]);

    expect(outcome).toMatchObject({ code: 2, stdout: "" });
    expect(lastLine(outcome.stderr)).toBe(
      `module push: cannot push ${ref}: connection refused (ECONNREFUSED)`,
    );
  });

  it("names the place once when the Docker config cannot be used", async () => {
    const dir = await dirOf({ "a.wasm": WASM, "config.json": '{"auths":[]}' });

    const outcome = await push([join(dir, "a.wasm"), target("v1")], {
      env: { ...EPOCH, DOCKER_CONFIG: dir },
    });

    expect(outcome).toMatchObject({ code: 2, stdout: "" });
    expect(lastLine(outcome.stderr)).toBe(
      `module push: cannot push ${target("v1")}: the runtime's Docker config (DOCKER_CONFIG): auths: expected a JSON object`,
    );
  });

  it("names a file of --registry-ca by its variable when it comes from there", async () => {
    const dir = await dirOf({ "a.wasm": WASM });

    const outcome = await push([join(dir, "a.wasm"), target("v1")], {
      env: { REGISTRY_CA: "c.example=/nowhere" },
    });

    expect(outcome).toMatchObject({ code: 2, stdout: "" });
    expect(outcome.stderr).toMatch(
      /^module push: --registry-ca \(REGISTRY_CA\) c\.example: ENOENT/,
    );
  });

  it.each([
    {
      name: "nothing for a module",
      argv: () => ["", target("v1")],
      want: () => 'module: expected the path of a file, got ""',
    },
    {
      name: "a directory for a module",
      argv: (dir: string) => [dir, target("v1")],
      want: (dir: string) => `module ${dir}: expected a file, got a directory`,
    },
    {
      name: "nothing for a reference",
      argv: (dir: string) => [join(dir, "a.wasm"), ""],
      want: () => 'reference: expected registry/repository[:tag], got ""',
    },
    {
      name: "a directory for a manifest",
      argv: (dir: string) => [
        join(dir, "a.wasm"),
        target("v1"),
        `--manifest=${dir}`,
      ],
      want: (dir: string) =>
        `--manifest: cannot read "${dir}": expected a file, got a directory`,
    },
  ])("says what is wrong with $name", async ({ argv, want }) => {
    const dir = await dirOf({ "a.wasm": WASM });

    const outcome = await push(argv(dir));

    expect(outcome).toMatchObject({ code: 2, stdout: "" });
    expect(lastLine(outcome.stderr)).toBe(`module push: ${want(dir)}`);
    expect(registry.asked).toEqual([]);
  });

  it("does not lose a manifest that leads nowhere", async () => {
    const dir = await dirOf({ "a.wasm": WASM });
    await symlink("nowhere", join(dir, "wasmfn.yaml"));

    const outcome = await push([join(dir, "a.wasm"), target("v1")]);

    expect(outcome).toMatchObject({ code: 2, stdout: "" });
    expect(lastLine(outcome.stderr)).toContain("wasmfn.yaml");
    expect(registry.asked).toEqual([]);
  });

  it.each([
    ["--manifest=x.yaml", "--no-manifest"],
    ["--no-manifest", "--manifest=x.yaml"],
  ])("refuses %s with %s", async (...options) => {
    const dir = await dirOf({ "a.wasm": WASM });

    await expect(
      push([join(dir, "a.wasm"), target("v1"), ...options]),
    ).rejects.toThrow(
      "option '--manifest' cannot be used with option '--no-manifest'",
    );
    expect(registry.asked).toEqual([]);
  });

  it.each([
    { name: "no reference", argv: ["a.wasm"] },
    { name: "another output", argv: ["a.wasm", "b", "--output=xml"] },
    { name: "a flag of the server", argv: ["a.wasm", "b", "--address=:1"] },
  ])("leaves $name to the parser", async ({ argv }) => {
    await expect(push(argv)).rejects.toThrow(CommanderError);
  });
});

function push(argv: readonly string[], world: World = {}) {
  return runModule(["push", ...argv], { env: EPOCH, ...world });
}

function target(tag: string): string {
  return `${registry.host}/${REPOSITORY}:${tag}`;
}

function loadingAs(abi: 1 | 2): Partial<Engine> {
  return {
    load: ({ digest, description }) =>
      Promise.resolve({ digest, description, abi, release: () => undefined }),
  };
}

function manifestOf(reference: string): StoredManifest {
  const text = store.manifests.get(reference)?.bytes.toString() ?? "null";
  return JSON.parse(text) as StoredManifest;
}

function digestOf(reference: string): string {
  return sha256(store.manifests.get(reference)?.bytes ?? "");
}

function jsonBlob(digest = ""): unknown {
  return JSON.parse(store.blobs.get(digest)?.toString() ?? "null");
}

function lastLine(text: string): string {
  return text.trimEnd().split("\n").at(-1) ?? "";
}
