import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import {
  create,
  fromBinary,
  toBinary,
  type JsonObject,
} from "@bufbuild/protobuf";
import { Client, credentials } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import {
  startFunction,
  type ServerProcess,
} from "../../../bench/server-process.js";
import {
  RunFunctionRequestSchema,
  RunFunctionResponseSchema,
  type RunFunctionResponse,
} from "../../../src/gen/run_function_pb.js";
import { guest } from "../../support/guests.js";

const OPERATOR_POLICY = `
permit (principal, action in [Action::"setEnv", Action::"spendCredential"], resource)
when { principal.namespace == "team-a" };

permit (principal, action in [Action::"usePrivateTmp", Action::"grantEgress"], resource);
`;

const MANIFEST = `
abi: 1
name: environ-dump
requires:
  env:
  - name: DATABASE_URL
    fromCredential: {name: db, key: url}
`;

/** The whole of admission, with real policies, real modules and a real caller. */
describe("integration/server/admission", () => {
  let dir: string;
  let policyFile: string;
  let server: ServerProcess;
  let client: Client;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), "admission-test-"));
    const moduleDir = join(dir, "modules");
    policyFile = join(dir, "policy.cedar");
    await mkdir(moduleDir);
    const files: Record<string, string | Uint8Array> = {
      "echo.wasm": await guest("v1/echo"),
      "hello.wasm": await guest("v1/hello"),
      "env-v1.wasm": await guest("wasi/environ-dump"),
      "env-v2.wasm": await guest("p2/environment-dump"),
      "v1.yaml": MANIFEST,
      "v2.yaml": MANIFEST.replace("abi: 1", "abi: 2"),
      "tmp.yaml": "{abi: 1, requires: {filesystem: {privateTmp: true}}}",
      "egress.yaml":
        "{abi: 1, requires: {egress: {http: [{host: api.example.com, methods: [GET]}]}}}",
    };
    for (const [name, content] of Object.entries(files))
      await writeFile(join(moduleDir, name), content);
    await writeFile(policyFile, OPERATOR_POLICY);
    server = await startFunction({
      moduleDir,
      cacheDir: join(dir, "cache"),
      flags: ["--sandbox-policy-file", policyFile],
    });
    client = new Client(server.address, credentials.createInsecure());
  });
  afterAll(async () => {
    client.close();
    await server.stop();
    await rm(dir, { recursive: true, force: true });
  });

  async function call(
    input: JsonObject,
    composite: JsonObject = xr(),
  ): Promise<RunFunctionResponse> {
    const bytes = toBinary(
      RunFunctionRequestSchema,
      create(RunFunctionRequestSchema, {
        meta: { tag: "c0ffee" },
        input: {
          apiVersion: "wasm.fn.crossplane.io/v1",
          kind: "Input",
          ...input,
        },
        observed: { composite: { resource: composite } },
        desired: { resources: { kept: { ready: 1 } } },
        credentials: {
          db: credential({
            url: "postgres://u:hunter2@db",
            password: "hunter2",
          }),
          other: credential({ token: "hunter2-other" }),
        },
      }),
    );
    const answer = await new Promise<Buffer>((resolve, reject) => {
      client.makeUnaryRequest(
        "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction",
        (sent: Uint8Array) => Buffer.from(sent),
        (received) => received,
        bytes,
        { deadline: Date.now() + 30_000 },
        (error, received) => {
          if (error !== null) reject(error);
          else resolve(received ?? Buffer.alloc(0));
        },
      );
    });
    return fromBinary(RunFunctionResponseSchema, answer);
  }

  const messageOf = async (...args: Parameters<typeof call>) =>
    (await call(...args)).results.map(({ message }) => message).join();

  it.each([
    { abi: "v1", file: "env-v1.wasm", manifestPath: "v1.yaml" },
    { abi: "v2", file: "env-v2.wasm", manifestPath: "v2.yaml" },
  ])(
    "binds a credential's key to a variable of a guest of ABI $abi",
    async (row) => {
      const module = {
        type: "Path",
        path: row.file,
        manifestPath: row.manifestPath,
      };

      expect(await messageOf({ module })).toBe(
        "DATABASE_URL=postgres://u:hunter2@db;",
      );
      expect(
        await messageOf({ module: { type: "Path", path: row.file } }),
      ).toBe("");
    },
  );

  it("holds a grant to the namespace the operator policy names", async () => {
    const module = {
      type: "Path",
      path: "env-v1.wasm",
      manifestPath: "v1.yaml",
    };

    expect(await messageOf({ module }, xr({}, "team-b"))).toBe(
      "module Path env-v1.wasm requires env [DATABASE_URL] (requires.env), which the operator policy (--sandbox-policy-file) does not permit (setEnv)",
    );
  });

  it("lets the compositionPolicy narrow what the operator permits", async () => {
    const module = {
      type: "Path",
      path: "env-v1.wasm",
      manifestPath: "v1.yaml",
    };
    const narrow = (rule: string) =>
      messageOf({ module, compositionPolicy: rule });

    expect(
      await narrow(
        'forbid (principal, action == Action::"spendCredential", resource == Credential::"db");',
      ),
    ).toBe(
      'module Path env-v1.wasm requires env DATABASE_URL from credential "db", which the compositionPolicy does not permit (spendCredential)',
    );
    expect(await narrow("forbid (principal, action, resource);")).toBe(
      "DATABASE_URL=postgres://u:hunter2@db;",
    );
    expect(
      await narrow(
        'permit (principal, action == Action::"setEnv", resource) when { context.keys.contains("DATABASE_URL") };',
      ),
    ).toBe("DATABASE_URL=postgres://u:hunter2@db;");
    expect(
      await narrow(
        'permit (principal, action == Action::"setEnvv", resource);',
      ),
    ).toMatch(
      /^compositionPolicy is invalid: cannot compile the compositionPolicy as Cedar: /,
    );
  });

  it.each([
    { manifestPath: "tmp.yaml", want: "a private /tmp" },
    { manifestPath: "egress.yaml", want: "egress" },
  ])("does not run a module without $want that it requires", async (row) => {
    const module = {
      type: "Path",
      path: "hello.wasm",
      manifestPath: row.manifestPath,
    };

    const message = await messageOf({ module });

    expect(message).toContain(`requires ${row.want} (requires.`);
    expect(message).toContain("this runtime does not support it yet");
  });

  it("lets the composite resource choose, or leave the step empty", async () => {
    const module = {
      type: "Path",
      from: 'spec.hooks[0]["my.module"]',
      allowEmpty: true,
    };
    const chosen = (name: string) => xr({ hooks: [{ "my.module": name }] });

    expect(await messageOf({ module }, chosen("hello.wasm"))).toBe(
      "hello world",
    );
    expect(await messageOf({ module }, chosen("../policy.cedar"))).toContain(
      "leads out of --module-dir",
    );
    const skipped = await call({ module });
    expect(skipped.results).toEqual([]);
    expect(skipped.meta?.tag).toBe("c0ffee");
    expect(skipped.desired?.resources["kept"]?.ready).toBe(1);
  });

  it("fences an XR-chosen OCI module by its canonical location", async () => {
    const digest = `sha256:${"a".repeat(64)}`;
    const input = {
      module: { type: "OCI", from: "spec.module" },
      compositionPolicy:
        'permit (principal, action == Action::"pullModule", resource in Repository::"localhost:1/example");',
    };
    const naming = (ref: string) => xr({ module: { ref: `${ref}@${digest}` } });

    expect(
      await messageOf(input, naming("LOCALHOST:1/example/greeter")),
    ).toContain("localhost:1: connection refused");
    expect(
      await messageOf(input, naming("localhost:1/example-evil/greeter")),
    ).toBe(
      'cannot resolve module: module.from: spec.module of the composite resource names ref "localhost:1/example-evil/greeter", which the compositionPolicy does not permit (pullModule)',
    );
    expect(
      await messageOf(
        { module: input.module },
        naming("localhost:1/example/greeter"),
      ),
    ).toContain("names a OCI source, but the Input has no compositionPolicy");
  });

  it("goes on after a policy that breaks Cedar", async () => {
    const module = { type: "Path", path: "hello.wasm" };
    const nested = (depth: number) =>
      `permit (principal, action == Action::"setEnv", resource) when { ${"(".repeat(depth)}true${")".repeat(depth)} };`;

    expect(
      await messageOf({ module, compositionPolicy: nested(10_000) }),
    ).toMatch(/^compositionPolicy is invalid: /);
    expect(await messageOf({ module, compositionPolicy: nested(10) })).toBe(
      "hello world",
    );
  });

  it("outlives SIGHUP, which asks for the policy to be read again", async () => {
    const module = { type: "Path", path: "hello.wasm" };

    process.kill(server.pid, "SIGHUP");

    // A signal is handled between two requests.
    expect(await messageOf({ module })).toBe("hello world");
    expect(await messageOf({ module })).toBe("hello world");
  });

  it("follows the operator policy's file", async () => {
    const module = {
      type: "Path",
      path: "env-v1.wasm",
      manifestPath: "v1.yaml",
    };
    const replace = async (text: string) => {
      await writeFile(`${policyFile}.new`, text);
      await rename(`${policyFile}.new`, policyFile);
    };

    await replace("forbid (principal, action, resource);");
    await expect
      .poll(() => messageOf({ module }), { timeout: 15_000 })
      .toContain(
        "which the operator policy (--sandbox-policy-file) does not permit",
      );
    await replace("permit (principal");
    await replace(OPERATOR_POLICY);
    await expect
      .poll(() => messageOf({ module }), { timeout: 15_000 })
      .toBe("DATABASE_URL=postgres://u:hunter2@db;");
  });
});

function xr(spec: JsonObject = {}, namespace = "team-a"): JsonObject {
  return {
    apiVersion: "example.org/v1",
    kind: "XApp",
    metadata: { name: "app", namespace },
    spec,
  };
}

function credential(data: Record<string, string>) {
  return {
    source: {
      case: "credentialData" as const,
      value: {
        data: Object.fromEntries(
          Object.entries(data).map(([key, value]) => [
            key,
            new TextEncoder().encode(value),
          ]),
        ),
      },
    },
  };
}
