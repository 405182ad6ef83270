import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { fromBinary } from "@bufbuild/protobuf";
import { afterAll, describe, expect, it } from "vitest";

import {
  compileOperatorPolicy,
  createAdmission,
  type JsonObject,
} from "../../../src/admission/index.js";
import {
  inputCeilings,
  loaderOptions,
  schemeOptions,
} from "../../../src/cli/settings.js";
import { EngineError, type Engine } from "../../../src/engine/index.js";
import { createRunFunction } from "../../../src/function/index.js";
import { RunFunctionResponseSchema } from "../../../src/gen/run_function_pb.js";
import { createLoader } from "../../../src/loader/index.js";
import { startScriptedRegistry } from "../../support/scripted-registry.js";
import { sourceParsers } from "../../support/source-parsers.js";
import {
  fakeEngine,
  openScope,
  realClock,
  recordingLogger,
  recordingMetrics,
  requestBytes,
} from "../function/fixtures.js";
import { digestOf } from "../loader/store/store-content.js";
import { settingsOf } from "./settings-of.js";
import {
  compositionOf,
  filesOf,
  inputOf,
  jsonLines,
  policies,
  validate,
} from "./validate-fixtures.js";

const zeros = "0".repeat(64);
const pinned = `ghcr.io/example/greeter@sha256:${zeros}`;

const moduleDir = mkdtempSync(join(tmpdir(), "validate-parity-"));
const cacheDir = mkdtempSync(join(tmpdir(), "validate-parity-cache-"));
const put = (name: string, content: string) => {
  writeFileSync(join(moduleDir, name), content);
};
put("m.wasm", "module");
put("huge.wasm", "x".repeat(2 * 1024 * 1024));
put("plain.yaml", "abi: 1\n");
put("abi2.yaml", "abi: 2\n");
put("broken.yaml", "abi: 3\n");
put("newer.yaml", "abi: 1\nminRuntime: 99.0.0\n");
put(
  "config.yaml",
  "abi: 1\nconfig: {schema: {type: object, properties: {greeting: {type: string}}}}\n",
);
put("tmp.yaml", "abi: 1\nrequires: {filesystem: {privateTmp: true}}\n");
put(
  "egress.yaml",
  "abi: 1\nrequires: {egress: {http: [{host: api.example.com, methods: [GET]}]}}\n",
);
put(
  "env.yaml",
  "abi: 1\nrequires: {env: [{name: TOKEN, fromCredential: {name: db, key: token}}]}\n",
);
put("credentials.yaml", "abi: 1\nrequires: {credentials: [cmdb, db]}\n");
put(
  "operator.cedar",
  'permit(principal, action, resource) unless { resource == Credential::"secret" };\n',
);
put("nothing.cedar", "// grants nothing\n");
put(
  "signed.cedar",
  'permit (principal, action == Action::"requireSignature", resource);\n',
);
put(
  "kind.cedar",
  'permit(principal, action == Action::"spendCredential", resource) when { principal.xrKind == "Other" };\n',
);

const registry = await startScriptedRegistry();
registry.intercept(({ path: asked }) => {
  if (asked === "/sent-on.wasm") {
    const location = registry.url.replace("127.0.0.1", "localhost");
    return { status: 302, headers: { location: `${location}/m.wasm` } };
  }
  if (asked === "/m.wasm") return { status: 200, body: "module" };
  return asked === "/no.wasm" ? { status: 405 } : "pass";
});
const published = (
  name: string,
  manifest?: string,
  wasm = Buffer.from("module"),
) => {
  const { manifestDigest } = registry.addModule(name, {
    wasm,
    tag: "1",
    ...(manifest !== undefined && { manifest }),
  });
  return `${registry.authority}/${name}@${manifestDigest}`;
};
const inRegistry = (ref: string, fields: JsonObject = {}): JsonObject =>
  inputOf({ module: { type: "OCI", oci: { ref, ...fields } } });
const onServer = (file: string, more: JsonObject = {}): JsonObject =>
  inputOf({
    module: {
      type: "HTTP",
      http: { url: `${registry.url}/${file}`, digest: digestOf("module") },
      ...more,
    },
  });

const operatorFlags = (file: string) => [
  "--sandbox-policy-file",
  join(moduleDir, file),
];
const path = (manifest?: string, more: JsonObject = {}): JsonObject =>
  inputOf({
    module: {
      type: "Path",
      path: "m.wasm",
      ...(manifest !== undefined && { manifestPath: manifest }),
    },
    ...more,
  });
const oci = (fields: JsonObject, more: JsonObject = {}): JsonObject =>
  inputOf({
    module: { type: "OCI", oci: { ref: pinned, ...fields } },
    ...more,
  });
const from = (policy: string | null, more: JsonObject = {}): JsonObject =>
  inputOf({
    module: { type: "OCI", from: "spec.module", ...more },
    ...(policy !== null && { compositionPolicy: policy }),
  });
const xr = (module: unknown) => ({ spec: { module } }) as JsonObject;
const permitGhcr =
  'permit(principal, action == Action::"pullModule", resource in Repository::"ghcr.io/example");';
/** What is left of 9007199254740993, which is what the file says. */
const rounded = 2 ** 53;
const deep = (levels: number): JsonObject =>
  JSON.parse(`${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`) as JsonObject;

interface Row {
  readonly name: string;
  /** Absent = the step has no input. */
  readonly input?: JsonObject;
  readonly xr?: JsonObject;
  readonly credentials?: readonly string[];
  readonly flags?: readonly string[];
  readonly engine?: Partial<Engine>;
  readonly code: string;
}

const rows: readonly Row[] = [
  { name: "no input", code: "input-missing" },
  { name: "an empty input", input: {}, code: "input-version" },
  {
    name: "another version",
    input: { ...path(), apiVersion: "wasm.fn.crossplane.io/v2" },
    code: "input-version",
  },
  {
    name: "another kind",
    input: { ...path(), kind: "Resources" },
    code: "input-version",
  },
  {
    name: "a deep Input",
    input: path(undefined, { limits: deep(40) }),
    code: "input-unreadable",
  },
  {
    name: "no module",
    input: inputOf({ module: null }),
    code: "input-invalid",
  },
  {
    name: "a null module.oci",
    input: inputOf({ module: { type: "OCI", oci: null } }),
    code: "input-invalid",
  },
  {
    name: "a misspelt fence",
    input: path(undefined, { compositionPolcy: "permit" }),
    code: "field-unknown",
  },
  {
    name: "a field with a strange name",
    input: path(undefined, { "a\u202eb\n": 1 }),
    code: "field-unknown",
  },
  {
    name: "a removed field",
    input: path(undefined, { policy: "permit" }),
    code: "field-removed",
  },
  {
    name: "a memory limit above the ceiling",
    input: path(undefined, { limits: { memory: "1Gi" } }),
    code: "limit-exceeded",
  },
  {
    name: "a memory limit that is rounded",
    input: path(undefined, { limits: { memory: rounded } }),
    code: "limit-exceeded",
  },
  {
    name: "a timeout above the ceiling",
    input: path(undefined, { limits: { timeout: "1h" } }),
    code: "limit-exceeded",
  },
  {
    name: "a timeout that is none",
    input: path(undefined, { limits: { timeout: "1d" } }),
    code: "input-invalid",
  },
  {
    name: "a fraction of bytes",
    input: path(undefined, { limits: { memory: 1.5 } }),
    code: "input-invalid",
  },
  {
    name: "a concurrency of nothing",
    input: path(undefined, { limits: { concurrency: 0 } }),
    code: "input-invalid",
  },
  {
    name: "a config that is no object",
    input: path(undefined, { config: "text" }),
    code: "input-invalid",
  },
  {
    name: "a tag alone",
    input: oci({ ref: "ghcr.io/example/greeter:1" }),
    code: "source-refused",
  },
  {
    name: "a reference that is none",
    input: oci({ ref: "GHCR.io/UPPER/x" }),
    code: "input-invalid",
  },
  {
    name: "a URL with a password",
    input: inputOf({
      module: {
        type: "HTTP",
        http: {
          url: "https://u:hunter2@example.com/m",
          digest: `sha256:${zeros}`,
        },
      },
    }),
    code: "input-invalid",
  },
  {
    name: "allowEmpty without from",
    input: inputOf({
      module: { type: "Path", path: "m.wasm", allowEmpty: true },
    }),
    code: "input-invalid",
  },
  {
    name: "an XR's choice without a fence",
    input: from(null),
    code: "policy-missing",
  },
  {
    name: "a policy that does not parse",
    input: path(undefined, { compositionPolicy: "permit(" }),
    code: "policy-invalid",
  },
  {
    name: "a policy that does not type-check",
    input: path(undefined, {
      compositionPolicy:
        'permit(principal, action == Action::"pullModul", resource);',
    }),
    code: "policy-invalid",
  },
  {
    name: "a field the XR has not set",
    input: from(permitGhcr),
    xr: { spec: {} },
    code: "from-unset",
  },
  {
    name: "a field the XR has set to null",
    input: from(permitGhcr),
    xr: xr(null),
    code: "from-unset",
  },
  {
    name: "a field that is no source",
    input: from(permitGhcr),
    xr: xr({ reff: pinned }),
    code: "from-invalid",
  },
  {
    name: "an XR's tag",
    input: from(permitGhcr),
    xr: xr({ ref: "ghcr.io/example/greeter:1" }),
    code: "source-refused",
  },
  {
    name: "a location outside the fence",
    input: from(permitGhcr),
    xr: xr({ ref: `docker.io/evil/x@sha256:${zeros}` }),
    code: "pull-refused",
  },
  {
    name: "a credential outside the fence",
    input: from(permitGhcr),
    xr: xr({ ref: pinned, credentials: "registry" }),
    credentials: ["registry"],
    code: "spend-refused",
  },
  {
    name: "a module that the operator wants signed",
    input: oci({}),
    flags: operatorFlags("signed.cedar"),
    code: "signature-unverifiable",
  },
  {
    name: "a file that is not there",
    input: inputOf({ module: { type: "Path", path: "gone.wasm" } }),
    code: "module-not-found",
  },
  {
    name: "a path that leads out",
    input: inputOf({ module: { type: "Path", path: "../m.wasm" } }),
    code: "path-outside-module-dir",
  },
  {
    name: "a file that is too large",
    input: inputOf({ module: { type: "Path", path: "huge.wasm" } }),
    code: "module-too-large",
  },
  {
    name: "a manifest that is not there",
    input: path("gone.yaml"),
    code: "module-not-found",
  },
  {
    name: "a manifest that is none",
    input: path("broken.yaml"),
    code: "manifest-invalid",
  },
  {
    name: "a manifest of another ABI",
    input: path("abi2.yaml"),
    code: "abi-mismatch",
  },
  {
    name: "a module for a newer runtime",
    input: path("newer.yaml"),
    code: "runtime-too-old",
  },
  {
    name: "a config against the schema",
    input: path("config.yaml", { config: { greeting: 7 } }),
    code: "config-invalid",
  },
  {
    name: "a config that is rounded, against the schema",
    input: path("config.yaml", { config: { greeting: rounded } }),
    code: "config-invalid",
  },
  {
    name: "a config that is too deep",
    input: path("config.yaml", { config: deep(140) }),
    code: "input-unreadable",
  },
  {
    name: "a requirement without an operator policy",
    input: path("tmp.yaml"),
    code: "operator-policy-missing",
  },
  {
    name: "egress without an operator policy",
    input: path("egress.yaml"),
    code: "operator-policy-missing",
  },
  {
    name: "a requirement the composition refuses",
    input: path("tmp.yaml", {
      compositionPolicy:
        'forbid(principal, action == Action::"usePrivateTmp", resource);',
    }),
    flags: operatorFlags("operator.cedar"),
    code: "composition-refused",
  },
  {
    name: "a requirement the operator refuses",
    input: path("tmp.yaml"),
    flags: operatorFlags("nothing.cedar"),
    code: "operator-refused",
  },
  {
    name: "a requirement the operator grants to another kind",
    input: path("credentials.yaml"),
    xr: { kind: "XThing" },
    flags: operatorFlags("kind.cedar"),
    credentials: ["cmdb", "db"],
    code: "operator-refused",
  },
  {
    name: "a capability that is not built",
    input: path("egress.yaml"),
    flags: operatorFlags("operator.cedar"),
    code: "capability-not-supported",
  },
  {
    name: "a credential the step lacks",
    input: path("credentials.yaml"),
    flags: operatorFlags("operator.cedar"),
    credentials: ["cmdb"],
    code: "credential-missing",
  },
  {
    name: "a variable from a credential the step lacks",
    input: path("env.yaml"),
    flags: operatorFlags("operator.cedar"),
    credentials: ["cmdb"],
    code: "credential-missing",
  },
  {
    name: "a module that no registry has",
    input: inRegistry(`${registry.authority}/gone/x@sha256:${zeros}`),
    code: "module-not-found",
  },
  {
    name: "a tag that leads elsewhere",
    input: inRegistry(`${published("moved").split("@")[0]}:1`, {
      expectedDigest: `sha256:${zeros}`,
    }),
    code: "expected-digest-mismatch",
  },
  {
    name: "an image without module",
    input: inRegistry(
      `${registry.authority}/image@${registry.addManifest("image", { schemaVersion: 2, config: {}, layers: [] })}`,
    ),
    code: "artifact-invalid",
  },
  {
    name: "a layer that is too large",
    input: inRegistry(
      published("large", undefined, Buffer.alloc(2 * 1024 * 1024)),
    ),
    code: "module-too-large",
  },
  {
    name: "a layer's manifest that is none",
    input: inRegistry(published("broken", '{"abi":3}')),
    code: "manifest-invalid",
  },
  {
    name: "a layer's requirement without an operator policy",
    input: inRegistry(
      published(
        "tmp",
        '{"abi":1,"requires":{"filesystem":{"privateTmp":true}}}',
      ),
    ),
    code: "operator-policy-missing",
  },
  {
    name: "a module from a registry that does not compile",
    input: inRegistry(published("uncompiled")),
    engine: failing("compile-failed", "the compiler ran out of memory"),
    code: "compile-failed",
  },
  {
    name: "a module that no web server has",
    input: onServer("gone.wasm"),
    code: "module-not-found",
  },
  {
    name: "a web server that wants something else",
    input: onServer("no.wasm"),
    code: "registry-refused",
  },
  {
    name: "another module than the digest's",
    input: inputOf({
      module: {
        type: "HTTP",
        http: { url: `${registry.url}/m.wasm`, digest: `sha256:${zeros}` },
      },
    }),
    code: "digest-mismatch",
  },
  {
    name: "an XR's URL that leads out of the fence",
    input: inputOf({
      module: { type: "HTTP", from: "spec.module" },
      compositionPolicy: `permit(principal, action == Action::"pullModule", resource in Repository::"${registry.url}");`,
    }),
    xr: xr({ url: `${registry.url}/sent-on.wasm`, digest: digestOf("module") }),
    code: "pull-refused",
  },
  {
    name: "a module that does not compile",
    input: path(),
    engine: failing("compile-failed", "the compiler ran out of memory"),
    code: "compile-failed",
  },
  {
    name: "a module that is none",
    input: path("plain.yaml"),
    engine: failing(
      "module-invalid",
      "module Path m.wasm is no module: it is text",
    ),
    code: "module-invalid",
  },
];

function failing(
  code: "compile-failed" | "module-invalid",
  message: string,
): Partial<Engine> {
  return { load: () => Promise.reject(new EngineError(code, message)) };
}

describe("cli/validate says what the server says", () => {
  afterAll(async () => {
    await registry.stop();
    rmSync(moduleDir, { recursive: true });
    rmSync(cacheDir, { recursive: true, force: true });
  });

  it.each(rows)("about $name: $code", async (row) => {
    const server = await askServer(row);

    const { code, verdict, message, stderr } = await askValidate(row);

    expect(stderr).toBe("");
    expect({ code, message }).toEqual(server);
    expect(code).toBe(row.code);
    expect(verdict).toBe("refused");
    // Neither the terminal nor the log gets more than one line of text.
    expect(message).toMatch(/^[^\p{C}\p{Zl}\p{Zp}]+$/u);
    expect(message).not.toContain("hunter2");
  });

  const flagsOf = ({ flags = [] }: Row) => [
    "--module-dir",
    moduleDir,
    "--max-module-size=1Mi",
    ...flags,
  ];

  async function askServer(row: Row) {
    const config = settingsOf(flagsOf(row));
    const { logger, lines } = recordingLogger();
    const file = config.sandboxPolicyFile;
    const operator =
      file === null ? null : await compileOperatorPolicy(file, policies);
    const loader = createLoader(
      { ...loaderOptions(config, schemeOptions(config), {}), cacheDir },
      { clock: realClock, logger, metrics: recordingMetrics() },
    );
    const runFunction = createRunFunction({
      admission: createAdmission({
        ceilings: inputCeilings(config),
        parsers: sourceParsers,
        engine: policies,
        operatorPolicy: () => operator,
      }),
      loader,
      engine: {
        ...fakeEngine(() => Promise.reject(new Error("it ran"))),
        ...row.engine,
      },
      ttlNanos: 60_000_000_000n,
      clock: realClock,
      logger,
      metrics: recordingMetrics(),
    });
    const source = { case: "credentialData", value: {} } as const;
    const answer = await runFunction(
      requestBytes({
        ...(row.input && { input: row.input as never }),
        ...(row.xr && {
          observed: { composite: { resource: row.xr as never } },
        }),
        credentials: Object.fromEntries(
          (row.credentials ?? []).map((name) => [name, { source }]),
        ),
      }),
      openScope(),
    );
    await loader.close();
    if (answer.kind !== "response") throw new Error(answer.kind);
    const response = fromBinary(RunFunctionResponseSchema, answer.bytes);
    const line = lines.find(({ message }) => message === "request refused");
    return {
      code: line?.fields["code"],
      message: response.results[0]?.message,
    };
  }

  async function askValidate(row: Row) {
    const { input, credentials = [] } = row;
    const step: JsonObject = {
      ...(input && { input }),
      credentials: credentials.map((name) => ({
        name,
        source: "Secret",
        secretRef: { namespace: "a", name: "b" },
      })),
    };
    const composition = compositionOf([step]);
    const xrType = { apiVersion: "example.org/v1", kind: "XThing" };
    const dir = await filesOf({
      "composition.json": JSON.stringify(composition).replace(
        String(rounded),
        "9007199254740993",
      ),
      "xr.json": JSON.stringify({ ...xrType, ...row.xr }),
    });
    const outcome = await validate(
      [
        join(dir, "composition.json"),
        "--function-name=function-wasm",
        "--output=json",
        "--resolve",
        ...(row.xr ? ["--xr", join(dir, "xr.json")] : []),
        ...flagsOf(row),
      ],
      row.engine ? { engine: row.engine } : {},
    );
    const { code, verdict, message } = jsonLines(outcome.stdout)[0] ?? {};
    return { code, verdict, message: String(message), stderr: outcome.stderr };
  }
});
