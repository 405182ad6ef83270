import { createHash } from "node:crypto";

import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";

import type { Question } from "../../../src/admission/cedar/policy.js";
import type { Answer } from "../../../src/function/run-function.js";
import {
  RunFunctionRequestSchema,
  RunFunctionResponseSchema,
  Severity,
  StateSchema,
} from "../../../src/gen/run_function_pb.js";
import type { ManifestBytes } from "../../../src/ports.js";
import {
  compiledPolicy,
  fakePolicyEngine,
} from "../admission/policy/fixtures.js";
import {
  concat,
  fakeEngine,
  fakeLoader,
  greeterInput,
  openScope,
  pipelineAround,
  recordingLogger,
  recordingMetrics,
  requestBytes,
  responseBytes,
  testAdmission,
} from "./fixtures.js";

const okAnswer = responseBytes({ meta: { tag: "own" } });
const digest = `sha256:${"a".repeat(64)}`;

/** A `wasmfn.yaml`. */
function manifestBytes(yaml: string): ManifestBytes {
  const bytes = new TextEncoder().encode(yaml);
  const hash = createHash("sha256").update(bytes).digest("hex");
  return { form: "file", bytes, digest: `sha256:${hash}` };
}

/** A pipeline whose policies say `permits`, and everything that happened to it. */
function setUp(
  permits: (question: Question, policyText: string) => boolean = () => true,
  manifest: string | null = null,
  hasOperatorPolicy = true,
) {
  const asked: [string, Question][] = [];
  const { logger, lines } = recordingLogger();
  const metrics = recordingMetrics();
  const engine = fakeEngine(() => Promise.resolve(okAnswer));
  const policies = fakePolicyEngine((policy, principal, question) => {
    asked.push([`${principal.namespace}/${principal.xrKind}`, question]);
    return Promise.resolve({
      allowed: permits(question, policy.text),
      rules: [],
    });
  });
  const run = pipelineAround(engine, {
    admission: testAdmission({
      engine: policies,
      operatorPolicy: () =>
        hasOperatorPolicy ? compiledPolicy("operator") : null,
    }),
    loader: fakeLoader(manifest === null ? null : manifestBytes(manifest)),
    logger,
    metrics,
  });
  return {
    asked,
    engine,
    lines,
    counted: metrics.counted,
    answer: (bytes: Uint8Array) => run(bytes, openScope()),
    fatal: async (bytes: Uint8Array) => fatalOf(await run(bytes, openScope())),
  };
}

function decode(answer: Answer) {
  if (answer.kind !== "response") throw new Error(`got ${answer.kind}`);
  return fromBinary(RunFunctionResponseSchema, answer.bytes);
}

function fatalOf(answer: Answer): string {
  const { results } = decode(answer);
  expect(results).toMatchObject([{ severity: Severity.FATAL }]);
  return results[0]?.message ?? "";
}

const xr = {
  apiVersion: "example.org/v1",
  kind: "XApp",
  metadata: { name: "a", namespace: "team-a" },
};

function fromRequest(spec: object, module: object): Uint8Array {
  return requestBytes({
    meta: { tag: "a-tag" },
    observed: { composite: { resource: { ...xr, spec } as never } },
    desired: { resources: { kept: { ready: 1 } } },
    context: { key: "value" },
    input: { ...greeterInput, module, compositionPolicy: "fence" } as never,
  });
}

const path = { type: "Path", from: "spec.module" };
const oci = { type: "OCI", from: "spec.module" };

describe("function/run-function module.from", () => {
  it("runs the module that the composite resource names", async () => {
    const { answer, asked, engine, counted } = setUp();

    const bytes = await answer(fromRequest({ module: "greeter.wasm" }, path));

    expect(bytes).toEqual({ kind: "response", bytes: okAnswer });
    expect(engine.runs).toHaveLength(1);
    expect(asked).toEqual([]);
    expect(counted).toEqual(["ok"]);
  });

  it("asks the compositionPolicy on behalf of the composite resource", async () => {
    const { asked, fatal, engine, counted } = setUp(
      (question) => question.action !== "spendCredential",
    );

    const message = await fatal(
      fromRequest(
        { module: { ref: `a/b@${digest}`, credentials: "registry" } },
        oci,
      ),
    );

    expect(asked).toEqual([
      [
        "team-a/XApp",
        { action: "pullModule", location: "index.docker.io/a/b" },
      ],
      [
        "team-a/XApp",
        {
          action: "spendCredential",
          credential: "registry",
          repository: "index.docker.io/a/b",
        },
      ],
    ]);
    expect(message).toContain('names credentials "registry"');
    expect(engine.runs).toEqual([]);
    expect(counted).toEqual(["refused"]);
  });

  it("skips a step that the composite resource leaves empty", async () => {
    const { answer, engine, lines, counted } = setUp();
    const unknown = Uint8Array.of(0xfa, 0x3e, 0x01, 0x07);
    const desired = concat(
      toBinary(StateSchema, {
        $typeName: "apiextensions.fn.proto.v1.State",
        resources: {},
      }),
      unknown,
    );
    const request = concat(
      fromRequest({}, { ...path, allowEmpty: true }),
      Uint8Array.of(0x1a, desired.length),
      desired,
    );

    const response = await answer(request);

    const asked = fromBinary(RunFunctionRequestSchema, request);
    const got = decode(response);
    expect(got.desired?.resources).toEqual({
      kept: expect.anything() as unknown,
    });
    const unknownFields = (state = got.desired) =>
      state?.$unknown?.map(({ no, data }) => [no, [...data]]);
    expect(unknownFields()).toEqual(unknownFields(asked.desired));
    expect(unknownFields()).toHaveLength(1);
    expect(got.context).toEqual({ key: "value" });
    expect(got.meta).toMatchObject({ tag: "a-tag", ttl: { seconds: 60n } });
    expect(got.results).toEqual([]);
    expect(engine.runs).toEqual([]);
    expect(counted).toEqual(["skipped"]);
    expect(lines).toMatchObject([
      { level: "info", fields: { tag: "a-tag", outcome: "skipped" } },
    ]);
  });

  it("refuses an empty step that the Input does not allow", async () => {
    const { fatal } = setUp();

    expect(await fatal(fromRequest({}, path))).toBe(
      "module.from: cannot read spec.module from the composite resource: module: no such field",
    );
  });

  it("refuses a compositionPolicy that does not compile, of a static source too", async () => {
    const { fatal } = setUp();
    const input = { ...greeterInput, compositionPolicy: "broken" };

    expect(await fatal(requestBytes({ input }))).toBe(
      "compositionPolicy is invalid: cannot compile the compositionPolicy as Cedar: unexpected end of input",
    );
  });
});

const credentials = {
  db: { url: "postgres://u:hunter2@db", password: "hunter2-db" },
  cmdb: { token: "hunter2-cmdb" },
  registry: { token: "hunter2-registry" },
};

/** A request with three step credentials. */
function credentialRequest(config: object = {}): Uint8Array {
  return requestBytes({
    meta: { tag: "a-tag" },
    input: { ...greeterInput, config } as never,
    credentials: Object.fromEntries(
      Object.entries(credentials).map(([name, data]) => [
        name,
        {
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
        },
      ]),
    ),
  });
}

const requiresBoth = `
abi: 1
requires:
  env:
  - {name: DATABASE_URL, fromCredential: {name: db, key: url}}
  credentials: [cmdb]
`;

describe("function/run-function manifest", () => {
  it("hands a module what it requires and is granted, and no other secret", async () => {
    const { answer, engine, asked } = setUp(() => true, requiresBoth);

    await answer(credentialRequest());

    const [run] = engine.runs;
    expect(run?.env).toEqual([
      { name: "DATABASE_URL", value: "postgres://u:hunter2@db" },
    ]);
    const seen = fromBinary(
      RunFunctionRequestSchema,
      run?.bytes ?? new Uint8Array(),
    );
    expect(Object.keys(seen.credentials).sort()).toEqual(["cmdb", "db"]);
    expect(Buffer.from(run?.bytes ?? []).includes("hunter2-registry")).toBe(
      false,
    );
    expect(asked.map(([, { action }]) => action)).toEqual([
      "setEnv",
      "spendCredential",
      "spendCredential",
    ]);
  });

  it("hands a module without manifest no credential and no variable", async () => {
    const { answer, engine } = setUp();

    await answer(credentialRequest());

    const bytes = Buffer.from(engine.runs[0]?.bytes ?? []);
    expect(engine.runs[0]?.env).toEqual([]);
    for (const secret of ["hunter2", "registry", "cmdb"])
      expect(bytes.includes(secret)).toBe(false);
  });

  it.each([
    {
      name: "no operator policy",
      operator: false,
      manifest: requiresBoth,
      want: "module Path greeter.wasm requires env [DATABASE_URL] (requires.env), but the runtime has no --sandbox-policy-file, which is required to grant sandbox capabilities",
    },
    {
      name: "a manifest that cannot be read",
      manifest: "abi: 3",
      want: /^module Path greeter\.wasm: its manifest is invalid: abi: /,
    },
    {
      name: "a config outside the schema",
      manifest:
        "{abi: 1, config: {schema: {properties: {greeting: {type: string}}}}}",
      want: "module Path greeter.wasm: config does not match the module's schema: /greeting: got number, want string",
    },
    {
      name: "a newer runtime",
      manifest: "{abi: 1, minRuntime: v99.0.0}",
      want: /^module Path greeter\.wasm requires runtime v99\.0\.0 or newer, this is v/,
    },
    {
      name: "a binary of another ABI",
      manifest: "abi: 2",
      want: "module Path greeter.wasm: its manifest declares abi 2, but its binary is of abi 1",
    },
    {
      name: "a credential that the step does not have",
      manifest: "{abi: 1, requires: {credentials: [vault]}}",
      want: 'module Path greeter.wasm: requires.credentials[0]: the request carries no credential "vault"; declare it on the pipeline step',
    },
    {
      name: "a variable from a credential that the step does not have",
      manifest:
        "{abi: 1, requires: {env: [{name: A, fromCredential: {name: vault, key: k}}]}}",
      want: /requires\.env\[0\] \(A\): the request carries no credential "vault"/,
    },
    {
      name: "a private /tmp that is permitted and not built",
      manifest: "{abi: 1, requires: {filesystem: {privateTmp: true}}}",
      want: "module Path greeter.wasm requires a private /tmp (requires.filesystem.privateTmp), which is permitted, but this runtime does not support it yet",
    },
    {
      name: "egress that is permitted and not built",
      manifest:
        "{abi: 1, requires: {egress: {http: [{host: a.example.com, methods: [GET]}]}}}",
      want: "module Path greeter.wasm requires egress (requires.egress.http), which is permitted, but this runtime does not support it yet",
    },
  ])("runs nothing with $name", async ({ operator, manifest, want }) => {
    const { fatal, engine, counted } = setUp(() => true, manifest, operator);

    const message = await fatal(credentialRequest({ greeting: 1 }));

    expect(message).toEqual(
      typeof want === "string" ? want : expect.stringMatching(want),
    );
    expect(engine.runs).toEqual([]);
    expect(counted).toEqual(["refused"]);
  });

  it("lets either layer refuse", async () => {
    const byComposition = setUp((_, text) => text !== "fence", requiresBoth);
    const byOperator = setUp((_, text) => text !== "operator", requiresBoth);
    const input = { ...greeterInput, compositionPolicy: "fence" };

    // The fake policy scopes nothing, so only the operator layer is asked.
    expect(
      decode(await byComposition.answer(requestBytes({ input }))).results[0]
        ?.message,
    ).toContain("the request carries no credential");
    expect(await byOperator.fatal(requestBytes({ input }))).toContain(
      "which the operator policy (--sandbox-policy-file) does not permit",
    );
  });

  it("holds each Input's config to the schema, again for another Input", async () => {
    const { answer, engine } = setUp(
      () => true,
      "{abi: 1, config: {schema: {properties: {greeting: {type: string}}}}}",
    );

    const outcomes = [];
    for (const greeting of ["hi", "hi", 1, "hi", 2]) {
      const response = decode(await answer(credentialRequest({ greeting })));
      outcomes.push(response.results.length === 0);
    }

    expect(outcomes).toEqual([true, true, false, true, false]);
    expect(engine.runs).toHaveLength(3);
  });
});
