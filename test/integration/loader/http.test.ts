import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

import type { JsonObject } from "@bufbuild/protobuf";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";

import { guest } from "../../support/guests.js";
import {
  startScriptedRegistry,
  type ScriptedRegistry,
} from "../../support/scripted-registry.js";
import { usePrograms, type Program } from "./program.js";

const MANIFEST = `
abi: 1
name: environ-dump
requires:
  env:
  - name: DATABASE_URL
    fromCredential: {name: db, key: url}
`;
const CREDENTIALS = { db: { url: "postgres://u:hunter2@db" } };

/** Modules on a web server, for which the registry is taken: it answers what it is told. */
describe("integration/loader/http", () => {
  const programs = usePrograms("suite");
  let server: ScriptedRegistry;
  let program: Program;
  /** Each test has paths of its own, so that none finds what another one was delivered. */
  let root = "";
  const files = new Map<string, Uint8Array>();
  /** By path, to where. */
  const redirects = new Map<string, string>();

  beforeAll(async () => {
    server = await startScriptedRegistry();
    server.intercept(({ path }) => {
      const location = redirects.get(path);
      if (location !== undefined) return { status: 302, headers: { location } };
      const body = files.get(path);
      return body === undefined ? "pass" : { status: 200, body };
    });
    const policyFile = join(programs.dir(), "policy.cedar");
    await writeFile(policyFile, "permit (principal, action, resource);");
    program = await programs.start(["--sandbox-policy-file", policyFile]);
  });
  afterAll(async () => {
    await server.stop();
  });
  beforeEach(async ({ task }) => {
    root = `/${task.id}`;
    files.set(`${root}/modules/hello.wasm`, await guest("v1/hello"));
    files.set(`${root}/modules/environ.wasm`, await guest("wasi/environ-dump"));
    files.set(`${root}/modules/wasmfn.yaml`, Buffer.from(MANIFEST));
    files.set(`${root}/private/hello.wasm`, await guest("v1/hello"));
  });

  const urlOf = (path: string) => `${server.url}${root}${path}`;

  /** The fields of an HTTP source; the digest is that of what is there, or of `content`. */
  function source(
    path: string,
    content = files.get(`${root}${path}`),
  ): JsonObject {
    return { url: urlOf(path), digest: digestOf(content) };
  }

  function withManifest(path: string): JsonObject {
    return {
      ...source(path),
      manifestURL: urlOf("/modules/wasmfn.yaml"),
      manifestDigest: digestOf(files.get(`${root}/modules/wasmfn.yaml`)),
    };
  }

  /** Runs what the Input's author names. */
  async function runNamed(http: JsonObject): Promise<string> {
    const module = { type: "HTTP", http };
    const { messages } = await program.call({
      module,
      credentials: CREDENTIALS,
    });
    return messages.join();
  }

  /** Runs what the composite resource names, where the policy permits to pull from these paths. */
  async function runChosen(
    chosen: JsonObject,
    ...permitted: readonly string[]
  ): Promise<string> {
    const { messages } = await program.call({
      module: { type: "HTTP", from: "spec.module" },
      compositionPolicy: permitted.map((path) => permitting(path)).join("\n"),
      spec: { module: chosen },
      credentials: CREDENTIALS,
    });
    return messages.join();
  }

  function permitting(path: string): string {
    return `permit (principal, action == Action::"pullModule", resource in Repository::"${urlOf(path)}");`;
  }

  /** What was asked for in this test. */
  const paths = () =>
    server.requests
      .filter(({ path }) => path.startsWith(`${root}/`))
      .map(({ path }) => path.slice(root.length));

  it("runs a module that the Input names, and asks for it once", async () => {
    const http = source("/modules/hello.wasm");

    expect(await runNamed(http)).toBe("hello world");
    expect(await runNamed(http)).toBe("hello world");
    expect(paths()).toEqual(["/modules/hello.wasm"]);
  });

  it("refuses other bytes than those of the digest", async () => {
    const http = source("/modules/hello.wasm", Buffer.from("other"));

    const message = await runNamed(http);

    expect(message).toBe(
      `FATAL: cannot resolve module: module HTTP ${urlOf("/modules/hello.wasm")}: expected ${digestOf(Buffer.from("other"))}, got ${digestOf(files.get(`${root}/modules/hello.wasm`))}`,
    );
  });

  it("runs a module by the manifest that the Input names", async () => {
    expect(await runNamed(source("/modules/environ.wasm"))).toBe("");
    expect(await runNamed(withManifest("/modules/environ.wasm"))).toBe(
      "DATABASE_URL=postgres://u:hunter2@db;",
    );
  });

  it("runs what the composite resource names where the policy permits it", async () => {
    expect(
      await runChosen(source("/modules/hello.wasm"), "/modules/hello.wasm"),
    ).toBe("hello world");
    expect(
      await runChosen(withManifest("/modules/environ.wasm"), "/modules"),
    ).toBe("DATABASE_URL=postgres://u:hunter2@db;");
  });

  it("asks nobody for what the policy does not permit", async () => {
    expect(await runChosen(source("/private/hello.wasm"), "/modules")).toBe(
      `FATAL: cannot resolve module: module.from: spec.module of the composite resource names url "${urlOf("/private/hello.wasm")}", which the compositionPolicy does not permit (pullModule)`,
    );
    expect(
      await runChosen(
        withManifest("/modules/environ.wasm"),
        "/modules/environ.wasm",
      ),
    ).toBe(
      `FATAL: cannot resolve module: module.from: spec.module of the composite resource names manifestURL "${urlOf("/modules/wasmfn.yaml")}", which the compositionPolicy does not permit (pullModule)`,
    );
    expect(paths()).toEqual([]);
  });

  it("holds where a URL redirects to the same policy", async () => {
    redirects.set(`${root}/modules/moved.wasm`, urlOf("/private/hello.wasm"));
    const moved = source(
      "/modules/moved.wasm",
      files.get(`${root}/private/hello.wasm`),
    );
    const refused = `FATAL: cannot resolve module: module.from: spec.module of the composite resource names a url that redirects to "${urlOf("/private/hello.wasm")}", which the compositionPolicy does not permit (pullModule)`;

    expect(await runChosen(moved, "/modules")).toBe(refused);
    expect(paths()).toEqual(["/modules/moved.wasm"]);
    // Whoever may be led there gets it, and after him still nobody else.
    expect(await runChosen(moved, "/modules", "/private")).toBe("hello world");
    expect(await runChosen(moved, "/modules")).toBe(refused);
    expect(await runNamed(moved)).toBe("hello world");
  });
});

function digestOf(bytes: Uint8Array = Buffer.alloc(0)): string {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}
