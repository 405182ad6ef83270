import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { status } from "@grpc/grpc-js";
import { Command } from "commander";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Document, parseAllDocuments } from "yaml";

import { addRenderCommand } from "../../../src/cli/render.js";
import {
  Capability,
  Ready,
  type RunFunctionRequest,
  Severity,
  Status,
} from "../../../src/gen/run_function_pb.js";
import type { Clock } from "../../../src/ports.js";
import { captureWrites } from "../../support/captured-writes.js";
import {
  type FunctionServer,
  type Script,
  serveFunction,
} from "./function-server.js";

const clock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
};

const xrYaml = `
apiVersion: example.org/v1
kind: XThing
metadata:
  name: thing
  namespace: team-a
spec:
  size: 3
status:
  old: true
`;
const functionsYaml = `
apiVersion: pkg.crossplane.io/v1
kind: Function
metadata:
  name: fn
  annotations:
    render.crossplane.io/runtime: Development
`;

/** A Composition whose steps, all of the function \`fn\`, have these further fields. */
function compositionYaml(...steps: string[]): string {
  const pipeline = steps.map(
    (fields, i) =>
      `  - step: step-${i + 1}\n    functionRef: {name: fn}\n${fields.replace(/^/gm, "    ")}`,
  );
  return `
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: things, labels: {channel: stable}}
spec:
  compositeTypeRef: {apiVersion: example.org/v1, kind: XThing}
  mode: Pipeline
  pipeline:
${pipeline.join("\n")}
`;
}

let dir: string;
let server: FunctionServer | undefined;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "render-test-"));
  await write("xr.yaml", xrYaml);
  await write("composition.yaml", compositionYaml(""));
  await write("functions.yaml", functionsYaml);
});

afterEach(async () => {
  await server?.close();
  server = undefined;
  await rm(dir, { recursive: true });
  process.exitCode = undefined;
});

async function write(name: string, content: string): Promise<string> {
  const file = join(dir, name);
  await writeFile(file, content);
  return file;
}

async function serve(
  script: Script,
  version?: "v1" | "v1beta1",
): Promise<RunFunctionRequest[]> {
  server = await serveFunction(script, version);
  return server.requests;
}

interface Outcome {
  readonly code: unknown;
  readonly stdout: string;
  readonly stderr: string;
  readonly documents: unknown[];
}

/** Runs the command as a shell would, against the server when there is one. */
async function run(...flags: string[]): Promise<Outcome> {
  const files = ["xr.yaml", "composition.yaml", "functions.yaml"];
  return await runWith(
    files.map((name) => join(dir, name)),
    flags,
  );
}

async function runWith(
  files: readonly string[],
  flags: readonly string[] = [],
): Promise<Outcome> {
  const { written, restore } = captureWrites();
  const program = new Command().exitOverride();
  addRenderCommand(program, clock);
  const target = server && ["--target", `127.0.0.1:${server.port}`];
  let code: unknown;
  try {
    await program.parseAsync(
      ["render", ...files, ...(target ?? []), ...flags],
      { from: "user" },
    );
    code = process.exitCode;
  } catch (thrown) {
    code = thrown;
  } finally {
    restore();
  }
  const parsed = parseAllDocuments(written.stdout);
  const documents =
    "empty" in parsed ? [] : parsed.map((document): unknown => document.toJS());
  return { code, ...written, documents };
}

const configMap = { apiVersion: "v1", kind: "ConfigMap" };
const identity: Script = ({ desired, context }) => ({
  ...(desired && { desired }),
  ...(context && { context }),
});

describe("cli/render", () => {
  it("prints the composite resource and the composed ones as Crossplane would make them", async () => {
    await serve(() => ({
      desired: {
        composite: {
          resource: {
            spec: { ignored: true },
            status: { ratio: 1.5, count: 3, large: 1e21 },
          },
        },
        resources: {
          b: {
            resource: { ...configMap, data: { a: "yes", n: "0755" } },
            ready: Ready.TRUE,
          },
          a: {
            resource: {
              ...configMap,
              metadata: { name: "mine", labels: { mine: "1" } },
            },
            ready: Ready.TRUE,
          },
        },
      },
    }));

    const { code, stdout, stderr } = await run();

    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toBe(`---
apiVersion: example.org/v1
kind: XThing
metadata:
  name: thing
  namespace: team-a
status:
  conditions:
    - lastTransitionTime: "2024-01-01T00:00:00Z"
      reason: Available
      status: "True"
      type: Ready
  count: 3
  large: 1e+21
  ratio: 1.5
---
apiVersion: v1
kind: ConfigMap
metadata:
  annotations:
    crossplane.io/composition-resource-name: a
  labels:
    crossplane.io/composite: thing
    mine: "1"
  name: mine
  namespace: team-a
  ownerReferences:
    - apiVersion: example.org/v1
      blockOwnerDeletion: true
      controller: true
      kind: XThing
      name: thing
      uid: ""
---
apiVersion: v1
data:
  a: "yes"
  "n": "0755"
kind: ConfigMap
metadata:
  annotations:
    crossplane.io/composition-resource-name: b
  generateName: thing-
  labels:
    crossplane.io/composite: thing
  namespace: team-a
  ownerReferences:
    - apiVersion: example.org/v1
      blockOwnerDeletion: true
      controller: true
      kind: XThing
      name: thing
      uid: ""
`);
  });

  it("sends what Crossplane sends", async () => {
    const requests = await serve(identity);
    await write(
      "composition.yaml",
      compositionYaml(
        "input: {apiVersion: x/v1, kind: Input, config: {size: 1}}",
      ),
    );

    const { code } = await run();

    expect(code).toBe(0);
    expect(requests).toHaveLength(1);
    const [request] = requests;
    expect(request?.meta?.tag).toMatch(/^[0-9a-f]{64}$/);
    expect(request?.meta?.capabilities).toEqual([
      Capability.CAPABILITIES,
      Capability.REQUIRED_RESOURCES,
      Capability.CREDENTIALS,
      Capability.CONDITIONS,
      Capability.REQUIRED_SCHEMAS,
    ]);
    expect(request?.observed?.composite?.resource).toEqual({
      apiVersion: "example.org/v1",
      kind: "XThing",
      metadata: { name: "thing", namespace: "team-a" },
      spec: { size: 3 },
      status: { old: true },
    });
    expect(request?.desired).toBeDefined();
    expect(request?.context).toEqual({});
    expect(request?.input).toEqual({
      apiVersion: "x/v1",
      kind: "Input",
      config: { size: 1 },
    });
  });

  it("reads YAML as Kubernetes does", async () => {
    const requests = await serve(identity);
    await write(
      "composition.yaml",
      compositionYaml(
        "input: {on: yes, mode: 0755, time: 1:30, day: 2001-01-01}",
      ),
    );

    const { code } = await run();

    expect(code).toBe(0);
    expect(requests[0]?.input).toEqual({
      true: true,
      mode: 493,
      time: "1:30",
      day: "2001-01-01",
    });
  });

  it("gives equal requests one tag and different ones two", async () => {
    const requests = await serve(identity);
    await write("composition.yaml", compositionYaml("input: {a: 1, b: 2}"));
    await run();
    await write("composition.yaml", compositionYaml("input: {b: 2, a: 1}"));
    await run();
    await write("composition.yaml", compositionYaml("input: {b: 2, a: 3}"));
    await run();

    const [first, second, third] = requests.map(({ meta }) => meta?.tag);

    expect(second).toBe(first);
    expect(third).not.toBe(first);
  });

  it("calls a function that only serves v1beta1", async () => {
    const requests = await serve(identity, "v1beta1");

    const { code } = await run();

    expect(code).toBe(0);
    expect(requests).toHaveLength(1);
  });

  it("hands desired state and context, unknown fields too, from step to step", async () => {
    await write("composition.yaml", compositionYaml("", ""));
    // RunFunctionResponse{desired{resources["a"]{resource{}, field 1023}}, context{}}
    const unknown = [0xfa, 0x3f, 0x01, 0x07];
    const entry = [0x0a, 1, 0x61, 0x12, unknown.length, ...unknown];
    const desired = [0x12, entry.length, ...entry];
    const bytes = new Uint8Array([
      0x12,
      desired.length,
      ...desired,
      ...[0x22, 0],
    ]);
    const requests = await serve((_request, n) =>
      n === 1 ? bytes : { context: { k: "v" } },
    );

    const { code, documents } = await run("-c");

    expect(code).toBe(0);
    expect(requests[1]?.context).toEqual({});
    expect(requests[1]?.desired?.resources["a"]?.$unknown).toMatchObject([
      { no: 1023 },
    ]);
    // The second step passed nothing on, so nothing is left.
    expect(documents).toMatchObject([
      { kind: "XThing" },
      {
        apiVersion: "render.crossplane.io/v1beta1",
        kind: "Context",
        fields: { k: "v" },
      },
    ]);
  });

  it("starts with the context of the flags, values before files", async () => {
    const requests = await serve(identity);
    const file = await write("env.json", '{"from": "file"}');

    const { code } = await run(
      `--context-files=a=${file}`,
      `--context-files=b=${file}`,
      '--context-values=b={"from": "flag"}',
      "--context-values=c=x=y",
    );

    expect(code).toBe(0);
    expect(requests[0]?.context).toEqual({
      a: { from: "file" },
      b: { from: "flag" },
      c: "x=y",
    });
  });

  it("passes observed resources on and lets them keep their names", async () => {
    const requests = await serve(() => ({
      desired: {
        resources: {
          a: { resource: { ...configMap, metadata: { name: "other" } } },
        },
      },
    }));
    await mkdir(join(dir, "observed"));
    await write(
      "observed/one.yml",
      `
apiVersion: v1
kind: ConfigMap
metadata:
  name: thing-x7k2p
  generateName: thing-
  annotations: {crossplane.io/composition-resource-name: a}
`,
    );
    await write("observed/notes.txt", "not: [yaml");

    const { code, documents } = await run("-o", join(dir, "observed"));

    expect(code).toBe(0);
    expect(requests[0]?.observed?.resources["a"]?.resource).toMatchObject({
      metadata: { name: "thing-x7k2p" },
    });
    expect(documents[1]).toMatchObject({
      metadata: {
        name: "thing-x7k2p",
        generateName: "thing-",
        namespace: "team-a",
      },
    });
  });

  it("resolves credentials from the Secrets given", async () => {
    const requests = await serve(identity);
    await write(
      "composition.yaml",
      compositionYaml(
        "credentials:\n- {name: db, source: Secret, secretRef: {namespace: ops, name: pw}}\n- {name: none, source: None}",
      ),
    );
    const secrets = await write(
      "secrets.yaml",
      `
apiVersion: v1
kind: Secret
metadata: {namespace: ops, name: pw}
data: {user: YWRtaW4=, pass: aHVudGVyMi1vbGQ=}
stringData: {pass: hunter2}
`,
    );

    const { code } = await run("--function-credentials", secrets);

    expect(code).toBe(0);
    const credentials = requests[0]?.credentials ?? {};
    expect(Object.keys(credentials)).toEqual(["db"]);
    const data = credentials["db"]?.source.value?.data ?? {};
    const text = new TextDecoder();
    expect(Object.entries(data).map(([k, v]) => [k, text.decode(v)])).toEqual([
      ["pass", "hunter2"],
      ["user", "admin"],
    ]);
  });

  describe("requirements", () => {
    const pool = `
apiVersion: v1
kind: ConfigMap
metadata: {name: two, namespace: b, labels: {app: x}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: one, namespace: b, labels: {app: x, more: "1"}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: one, namespace: a, labels: {app: z}}
---
apiVersion: v1
kind: Secret
metadata: {name: one, namespace: a, labels: {app: x}}
`;
    const base = { apiVersion: "v1", kind: "ConfigMap" };
    const names = (
      request: RunFunctionRequest | undefined,
      field: "requiredResources" | "extraResources",
    ): Record<string, unknown> =>
      Object.fromEntries(
        Object.entries(request?.[field] ?? {}).map(([name, { items }]) => [
          name,
          items.map(({ resource }) => {
            const metadata = resource?.["metadata"] as Record<string, string>;
            return `${metadata["namespace"] ?? ""}/${metadata["name"] ?? ""}`;
          }),
        ]),
      );

    it("calls again with what is required until that is stable, carrying the context", async () => {
      const requirements = {
        resources: {
          byName: { ...base, match: { case: "matchName", value: "two" } },
          inNamespace: {
            ...base,
            match: { case: "matchName", value: "one" },
            namespace: "b",
          },
          byLabels: {
            ...base,
            match: { case: "matchLabels", value: { labels: { app: "x" } } },
          },
          all: base,
          missing: { ...base, match: { case: "matchName", value: "three" } },
        },
        extraResources: {
          old: { ...base, match: { case: "matchName", value: "two" } },
        },
        schemas: { s: { apiVersion: "v1", kind: "ConfigMap" } },
      } as const;
      const requests = await serve((_request, n) => ({
        requirements,
        context: { calls: n },
      }));
      const file = await write("pool.yaml", pool);

      const { code } = await run("--required-resources", file);

      expect(code).toBe(0);
      expect(requests).toHaveLength(2);
      const [first, second] = requests;
      expect(names(first, "requiredResources")).toEqual({});
      expect(names(second, "requiredResources")).toEqual({
        byName: ["b/two"],
        inNamespace: ["b/one"],
        byLabels: ["b/one", "b/two"],
        all: ["a/one", "b/one", "b/two"],
        missing: [],
      });
      expect(names(second, "extraResources")).toEqual({ old: ["b/two"] });
      expect(Object.keys(second?.requiredSchemas ?? {})).toEqual(["s"]);
      expect(second?.context).toEqual({ calls: 1 });
      expect(second?.meta?.tag).toBe(first?.meta?.tag);
    });

    it("looks in --extra-resources too", async () => {
      const requests = await serve(() => ({
        requirements: { resources: { all: base } },
      }));
      const file = await write("pool.yaml", pool);

      await run("--extra-resources", file);

      expect(names(requests[1], "requiredResources")["all"]).toHaveLength(3);
    });

    it("calls once when a step is given beforehand all that it requires", async () => {
      const requests = await serve(() => ({
        requirements: {
          resources: {
            r: { ...base, match: { case: "matchName", value: "two" } },
          },
        },
      }));
      await write(
        "composition.yaml",
        compositionYaml(
          "requirements: {requiredResources: [{requirementName: r, apiVersion: v1, kind: ConfigMap, name: two}]}",
        ),
      );
      const file = await write("pool.yaml", pool);

      await run("-e", file);

      expect(requests).toHaveLength(1);
      expect(names(requests[0], "requiredResources")).toEqual({ r: ["b/two"] });
    });

    it("keeps what a step is given beforehand", async () => {
      const requests = await serve(() => ({
        requirements: { resources: { other: base } },
      }));
      await write(
        "composition.yaml",
        compositionYaml(
          "requirements:\n  requiredResources:\n  - {requirementName: r, apiVersion: v1, kind: ConfigMap, matchLabels: {app: z}}\n  requiredSchemas:\n  - {requirementName: s, apiVersion: v1, kind: ConfigMap}",
        ),
      );
      const file = await write("pool.yaml", pool);

      await run("-e", file);

      expect(names(requests[1], "requiredResources")).toEqual({
        r: ["a/one"],
        other: ["a/one", "b/one", "b/two"],
      });
      expect(Object.keys(requests[1]?.requiredSchemas ?? {})).toEqual(["s"]);
    });

    it("gives up after six calls that never agree", async () => {
      const requests = await serve((_request, n) => ({
        requirements: { resources: { [`r${n}`]: base } },
      }));

      const { code, stdout, stderr } = await run();

      expect(requests).toHaveLength(6);
      expect({ code, stdout, stderr }).toEqual({
        code: 1,
        stdout: "",
        stderr:
          'render: cannot run pipeline step "step-1": requirements didn\'t stabilize after the maximum number of iterations (5)\n',
      });
    });

    it("takes the sixth call when it agrees with the fifth", async () => {
      const requests = await serve((_request, n) => ({
        requirements: { resources: { [`r${Math.min(n, 5)}`]: base } },
      }));

      const { code } = await run();

      expect({ code, calls: requests.length }).toEqual({ code: 0, calls: 6 });
    });

    it("does not call again after a fatal result", async () => {
      const requests = await serve(() => ({
        requirements: { resources: { r: base } },
        results: [{ severity: Severity.FATAL, message: "no" }],
      }));

      await run();

      expect(requests).toHaveLength(1);
    });

    it("refuses a selector it does not understand", async () => {
      const selector = [0x0a, 2, 0x76, 0x31, 0xfa, 0x3f, 1, 7];
      const entry = [0x0a, 1, 0x72, 0x12, selector.length, ...selector];
      const requirements = [0x12, entry.length, ...entry];
      await serve(
        () => new Uint8Array([0x2a, requirements.length, ...requirements]),
      );

      const { code, stderr } = await run();

      expect({ code, stderr }).toEqual({
        code: 2,
        stderr:
          'render: cannot run pipeline step "step-1": the requirement "r" selects in a way that this version of render does not know\n',
      });
    });
  });

  describe("results", () => {
    it("prints what functions say when asked", async () => {
      await serve(() => ({
        results: [
          { severity: Severity.NORMAL, message: "fine" },
          { severity: Severity.WARNING, message: "careful" },
          { severity: 9 as Severity, message: "odd" },
        ],
      }));

      const quiet = await run();
      const { documents } = await run("-r");

      expect(quiet.documents).toHaveLength(1);
      const result = {
        apiVersion: "render.crossplane.io/v1beta1",
        kind: "Result",
        step: "step-1",
      };
      expect(documents.slice(1)).toEqual([
        { ...result, severity: "SEVERITY_NORMAL", message: "fine" },
        { ...result, severity: "SEVERITY_WARNING", message: "careful" },
        { ...result, severity: "SEVERITY_9", message: "odd" },
      ]);
    });

    it("stops at a fatal one, printing those before it", async () => {
      await write("composition.yaml", compositionYaml("", "", ""));
      const requests = await serve((_request, n) =>
        n === 1
          ? { results: [{ severity: Severity.NORMAL, message: "first" }] }
          : {
              results: [
                { severity: Severity.WARNING, message: "before" },
                {
                  severity: Severity.FATAL,
                  message: 'no "such" thing\n\u001b[2J',
                },
                { severity: Severity.NORMAL, message: "after" },
              ],
            },
      );

      const { code, documents, stderr } = await run("-r");

      expect(requests).toHaveLength(2);
      expect(code).toBe(1);
      expect(stderr).toBe(
        'render: pipeline step "step-2" returned a fatal result: no "such" thing\\u000a\\u001b[2J\n',
      );
      expect(documents).toMatchObject([
        { kind: "Result", step: "step-1", message: "first" },
        { kind: "Result", step: "step-2", message: "before" },
      ]);
    });
  });

  describe("conditions", () => {
    it.each([
      {
        name: "all ready",
        composite: Ready.UNSPECIFIED,
        resources: { a: Ready.TRUE },
        want: { status: "True", reason: "Available" },
      },
      {
        name: "one not ready",
        composite: Ready.UNSPECIFIED,
        resources: { b: Ready.FALSE, a: Ready.UNSPECIFIED, c: Ready.TRUE },
        want: {
          status: "False",
          reason: "Creating",
          message: "Unready resources: a, b",
        },
      },
      {
        name: "three not ready",
        composite: Ready.UNSPECIFIED,
        resources: { b: 0, a: 0, c: 0 },
        want: {
          status: "False",
          reason: "Creating",
          message: "Unready resources: a, b, and c",
        },
      },
      {
        name: "five not ready",
        composite: Ready.UNSPECIFIED,
        resources: { b: 0, a: 0, c: 0, e: 0, d: 0 },
        want: {
          status: "False",
          reason: "Creating",
          message: "Unready resources: a, b, c, and 2 more",
        },
      },
      {
        name: "said to be ready",
        composite: Ready.TRUE,
        resources: { a: Ready.FALSE },
        want: { status: "True", reason: "Available" },
      },
      {
        name: "said not to be ready",
        composite: Ready.FALSE,
        resources: { a: Ready.TRUE },
        want: { status: "False", reason: "Creating" },
      },
    ] as const)(
      "derives Ready: $name",
      async ({ composite, resources, want }) => {
        await serve(() => ({
          desired: {
            composite: { ready: composite },
            resources: Object.fromEntries(
              Object.entries(resources).map(([name, ready]) => [
                name,
                { resource: configMap, ready },
              ]),
            ),
          },
        }));

        const { documents } = await run();

        const conditions = [
          {
            type: "Ready",
            ...want,
            lastTransitionTime: "2024-01-01T00:00:00Z",
          },
        ];
        expect(documents[0]).toMatchObject({ status: { conditions } });
      },
    );

    it("collects those of all steps, the last of a type, never a system one", async () => {
      await write("composition.yaml", compositionYaml("", ""));
      await serve((_request, n) => ({
        desired: {
          composite: {
            resource: {
              status: { conditions: [{ type: "Own", status: "?" }] },
            },
          },
        },
        conditions: [
          { type: "Ready", status: Status.CONDITION_FALSE, reason: "Forged" },
          { type: "A", status: Status.CONDITION_UNSPECIFIED, reason: `r${n}` },
          {
            type: "Own",
            status: Status.CONDITION_TRUE,
            reason: "Mine",
            message: "m",
          },
          { type: `S${n}`, status: Status.CONDITION_FALSE, reason: "x" },
        ],
      }));

      const { documents } = await run();

      const time = { lastTransitionTime: "2024-01-01T00:00:00Z" };
      expect(documents[0]).toMatchObject({
        status: {
          conditions: [
            {
              type: "Own",
              status: "True",
              reason: "Mine",
              message: "m",
              ...time,
            },
            { type: "Ready", status: "True", reason: "Available", ...time },
            { type: "A", status: "Unknown", reason: "r2", ...time },
            { type: "S1", status: "False", reason: "x", ...time },
            { type: "S2", status: "False", reason: "x", ...time },
          ],
        },
      });
    });
  });

  it("prints text that every reader of YAML takes for the same text", async () => {
    const data = Object.fromEntries(
      [
        "yes y NO off 1e3 0o17 017 1_000 0x1F 12:30 2024-01-01 << = ~ null .5",
        ...["", " a", "a: b", "- x", "#x", "a\nb", "a\tb\n", "\u2028", "ünï"],
        ...[
          "\u001b[2J",
          "\u009b2J\nx",
          "\u202egnp.exe",
          "👩\u200d🚀",
          "\u{e0041}x",
        ],
      ]
        .flatMap((text, i) => (i === 0 ? text.split(" ") : [text]))
        .flatMap((text, i) => [
          [`k${i}`, text],
          [text, `v${i}`],
        ]),
    );
    await serve(() => ({
      desired: { resources: { a: { resource: { ...configMap, data } } } },
    }));

    const { stdout } = await run();

    for (const version of ["1.1", "1.2"] as const) {
      const [, document] = parseAllDocuments(stdout, { version }) as Document[];
      expect(document?.toJS()).toMatchObject({ data });
    }
    expect(stdout).toContain('"<<": v');
    expect(stdout).toMatch(/: "0o17"\n/);
    expect(stdout).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
  });

  it("prints the whole composite resource with the new status when asked", async () => {
    await serve(() => ({
      desired: { composite: { resource: { status: { new: 1 } } } },
    }));

    const { documents } = await run("--include-full-xr");

    expect(documents).toMatchObject([
      { spec: { size: 3 }, status: { new: 1 }, metadata: { name: "thing" } },
    ]);
    expect(documents[0]).not.toHaveProperty("status.old");
  });

  it("labels what is composed by a nested composite resource with its root and claim", async () => {
    await write(
      "xr.yaml",
      `
apiVersion: example.org/v1
kind: XThing
metadata:
  name: child
  uid: u-1
  labels:
    crossplane.io/composite: root
    crossplane.io/claim-name: c
    crossplane.io/claim-namespace: ns
`,
    );
    await serve(() => ({
      desired: { resources: { a: { resource: configMap } } },
    }));

    const { documents } = await run();

    expect(documents[1]).toMatchObject({
      metadata: {
        generateName: "root-",
        labels: {
          "crossplane.io/composite": "root",
          "crossplane.io/claim-name": "c",
          "crossplane.io/claim-namespace": "ns",
        },
        ownerReferences: [{ name: "child", uid: "u-1" }],
      },
    });
    expect(documents[1]).not.toHaveProperty("metadata.namespace");
  });

  it.each([
    {
      name: "a resource without a kind",
      resource: { apiVersion: "v1" },
      want: 'the pipeline desires a composed resource "a" without kind',
    },
    {
      name: "a number that is none",
      resource: { ...configMap, n: NaN },
      want: "the pipeline returned the number NaN, which JSON cannot hold",
    },
    {
      name: "a resource that something else controls",
      resource: {
        ...configMap,
        metadata: { ownerReferences: [{ uid: "u-2", controller: true }] },
      },
      want: 'the composed resource "a" is controlled by something else than the composite resource',
    },
  ])("refuses $name", async ({ resource, want }) => {
    await serve(() => ({ desired: { resources: { a: { resource } } } }));

    expect(await run()).toMatchObject({
      code: 1,
      stdout: "",
      stderr: `render: ${want}\n`,
    });
  });

  describe("bad files", () => {
    it.each([
      {
        name: "a duplicate key",
        file: "xr.yaml",
        content: "apiVersion: example.org/v1\nkind: XThing\nkind: Other\n",
        want: 'xr.yaml, line 3: the key "kind" comes twice',
      },
      {
        name: "broken YAML",
        file: "xr.yaml",
        content: "a: [1\nb: 2\n",
        want: "xr.yaml, line 2: Flow sequence in block collection must be sufficiently indented and end with a ]",
      },
      {
        name: "an unknown tag",
        file: "xr.yaml",
        content: "a: !mine 1\n",
        want: "xr.yaml, line 1: Unresolved tag: !mine",
      },
      {
        name: "a number JSON cannot hold",
        file: "xr.yaml",
        content: `${xrYaml}  ratio: .inf\n`,
        want: 'xr.yaml, line 11: ".inf" is no number that JSON can hold',
      },
      {
        name: "a billion laughs",
        file: "xr.yaml",
        content: `a: &a [x,x,x,x,x,x,x,x,x,x]\n${"bcdefgh"
          .split("")
          .map(
            (name, i) =>
              `${name}: &${name} [${Array(10)
                .fill(`*${"abcdefg".charAt(i)}`)
                .join(",")}]\n`,
          )
          .join("")}`,
        want: "xr.yaml, line 6: the aliases repeat more than 1000000 values",
      },
      {
        name: "two documents where one is meant",
        file: "xr.yaml",
        content: `${xrYaml}---${xrYaml}`,
        want: "xr.yaml: expected one YAML document, got 2",
      },
      {
        name: "an empty file",
        file: "xr.yaml",
        content: "",
        want: "xr.yaml: expected one YAML document, got 0",
      },
      {
        name: "a composite resource without a name",
        file: "xr.yaml",
        content: "apiVersion: example.org/v1\nkind: XThing\n",
        want: "xr.yaml, line 1: metadata.name: expected text, got nothing",
      },
      {
        name: "a list for a document",
        file: "xr.yaml",
        content: "- 1\n",
        want: "xr.yaml, line 1: expected an object, got a list",
      },
      {
        name: "bytes that are no text",
        file: "xr.yaml",
        content: Buffer.from([0xff, 0xfe, 0x00]),
        want: "xr.yaml: expected UTF-8 text",
      },
      {
        name: "another kind than Composition",
        file: "composition.yaml",
        content: functionsYaml,
        want: "composition.yaml, line 2: expected an apiextensions.crossplane.io/v1 Composition, got pkg.crossplane.io/v1 Function",
      },
      {
        name: "a Composition for another kind",
        file: "composition.yaml",
        content: compositionYaml("").replace("kind: XThing", "kind: Other"),
        want: 'composition.yaml, line 2: spec.compositeTypeRef.kind: the Composition is for "Other", but the composite resource is "XThing"',
      },
      {
        name: "a Composition for another version",
        file: "composition.yaml",
        content: compositionYaml("").replace(
          "example.org/v1",
          "example.org/v2",
        ),
        want: 'composition.yaml, line 2: spec.compositeTypeRef.apiVersion: the Composition is for "example.org/v2", but the composite resource is "example.org/v1"',
      },
      {
        name: "a Composition that the composite resource does not select",
        file: "xr.yaml",
        content: xrYaml.replace(
          "  size: 3",
          "  crossplane: {compositionSelector: {matchLabels: {channel: beta}}}",
        ),
        want: 'xr.yaml, line 2: spec.crossplane.compositionSelector.matchLabels: the Composition has no label "channel" with the value "beta"',
      },
      {
        name: "another mode",
        file: "composition.yaml",
        content: compositionYaml("").replace("Pipeline", "Resources"),
        want: "composition.yaml, line 2: spec.mode: only mode Pipeline can be rendered",
      },
      {
        name: "no steps",
        file: "composition.yaml",
        content: compositionYaml(),
        want: "composition.yaml, line 2: spec.pipeline: expected at least one step",
      },
      {
        name: "two steps of one name",
        file: "composition.yaml",
        content: compositionYaml("", "").replace("step-2", "step-1"),
        want: 'composition.yaml, line 2: spec.pipeline: two steps are named "step-1"',
      },
      {
        name: "an input that is no object",
        file: "composition.yaml",
        content: compositionYaml("input: text"),
        want: "composition.yaml, line 2: spec.pipeline[0].input: expected an object, got text",
      },
      {
        name: "a step without a function",
        file: "composition.yaml",
        content: compositionYaml("").replace("{name: fn}", "{}"),
        want: "composition.yaml, line 2: spec.pipeline[0].functionRef.name: expected text, got nothing",
      },
      {
        name: "an unknown credential source",
        file: "composition.yaml",
        content: compositionYaml("credentials: [{name: c, source: Vault}]"),
        want: "composition.yaml, line 2: spec.pipeline[0].credentials[0].source: expected Secret or None",
      },
      {
        name: "a credential without its Secret",
        file: "composition.yaml",
        content: compositionYaml(
          "credentials: [{name: c, source: Secret, secretRef: {namespace: a, name: b}}]",
        ),
        want: 'the step "step-1" needs the Secret "a/b", which is not in the files of --function-credentials',
      },
      {
        name: "another kind than Function",
        file: "functions.yaml",
        content: xrYaml,
        want: "functions.yaml, line 2: expected a pkg.crossplane.io/v1 Function, got example.org/v1 XThing",
      },
      {
        name: "a function that is not there",
        file: "functions.yaml",
        content: functionsYaml.replace("name: fn", "name: other"),
        want: 'functions.yaml" holds none of that name',
      },
      {
        name: "a function that is there twice",
        file: "functions.yaml",
        content: `${functionsYaml}---${functionsYaml}`,
        want: 'functions.yaml" holds more than one of that name',
      },
      {
        name: "a function to run in Docker",
        file: "functions.yaml",
        content: functionsYaml.replace("Development", "Docker"),
        want: 'functions.yaml, line 2: the function "fn" has the render runtime "Docker", but only functions that already run can be rendered with: set the annotation render.crossplane.io/runtime to Development, or use --target',
      },
      {
        name: "a target that is none",
        file: "functions.yaml",
        content: `${functionsYaml}    render.crossplane.io/runtime-development-target: unix:/x\n`,
        want: 'functions.yaml, line 2: the annotation render.crossplane.io/runtime-development-target of the function "fn" is "unix:/x", expected host:port or dns:///host:port',
      },
    ])("refuses $name", async ({ file, content, want }) => {
      await writeFile(join(dir, file), content);

      const { code, stdout, stderr } = await run();

      expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
      expect(stderr).toContain(want);
      expect(stderr.trimEnd()).not.toContain("\n");
    });

    it.each([
      {
        name: "an observed resource without its name in the pipeline",
        flag: "--observed-resources",
        content: "apiVersion: v1\nkind: X\nmetadata: {name: a}\n",
        want: "metadata.annotations.crossplane.io/composition-resource-name: expected text, got nothing",
      },
      {
        name: "two observed resources of one name",
        flag: "--observed-resources",
        content: [1, 2]
          .map(
            (i) =>
              `apiVersion: v1\nkind: X\nmetadata: {name: a${i}, annotations: {crossplane.io/composition-resource-name: one}}\n`,
          )
          .join("---\n"),
        want: 'two observed resources are named "one"',
      },
      {
        name: "credentials that are no Secrets",
        flag: "--function-credentials",
        content: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
        want: "expected a v1 Secret, got v1 ConfigMap",
      },
      {
        name: "a context that is no YAML",
        flag: "--context-values",
        content: "k={",
        want: "--context-values k, line 1: Flow map must end with a }",
      },
    ])("refuses $name", async ({ flag, content, want }) => {
      const isFile = flag !== "--context-values";
      const value = isFile ? await write("extra.yaml", content) : content;

      const { code, stderr } = await run(flag, value);

      expect(code).toBe(2);
      expect(stderr).toContain(want);
    });

    it("never shows what is in a Secret", async () => {
      await write(
        "composition.yaml",
        compositionYaml(
          "credentials: [{name: c, source: Secret, secretRef: {namespace: a, name: b}}]",
        ),
      );
      const secrets = await write(
        "secrets.yaml",
        "apiVersion: v1\nkind: Secret\nmetadata: {namespace: a, name: b}\ndata: {key: hunter2!}\n",
      );

      const { code, stderr } = await run("--function-credentials", secrets);

      expect(code).toBe(2);
      expect(stderr).toBe(
        `render: ${secrets}, line 1: data.key: expected base64\n`,
      );
    });

    it("names a file that is not there", async () => {
      const { code, stderr } = await run("-e", join(dir, "missing.yaml"));

      expect(code).toBe(2);
      expect(stderr).toMatch(/^render: cannot read ".*missing\.yaml": ENOENT/);
    });

    it("names files by the paths that it was given", async () => {
      await mkdir(join(dir, "a: b"));
      const broken = await write("a: b/brk.yaml", "a:\n  [");
      const typed = await write("a: b/xr.yaml", "kind: 1");
      const others = await write("a: b/fn.yaml", "kind: {}");
      const given = (name: string) => join(dir, name);
      const renderFiles = async (...files: string[]) =>
        (await runWith(files)).stderr;

      const composition = given("composition.yaml");
      const xr = given("xr.yaml");
      const functions = await write(
        "a: b/functions.yaml",
        functionsYaml.replace("name: fn", "name: other"),
      );

      expect([
        await renderFiles(broken, composition, functions),
        await renderFiles(typed, composition, functions),
        await renderFiles("/dev/null", composition, functions),
        await renderFiles(xr, composition, given("a: b")),
        await renderFiles(xr, composition, others),
        await renderFiles(xr, composition, functions),
      ]).toEqual([
        expect.stringContaining(`render: ${broken}, line 2: `),
        `render: ${typed}, line 1: apiVersion: expected text, got nothing\n`,
        "render: /dev/null: expected one YAML document, got 0\n",
        expect.stringContaining(`render: ${broken}, line 2: `),
        `render: ${others}, line 1: apiVersion: expected text, got nothing\n`,
        `render: the pipeline names the function "fn", and "${functions}" holds none of that name\n`,
      ]);
    });

    it("names a directory without YAML", async () => {
      await mkdir(join(dir, "empty"));

      const { code, stderr } = await run("-o", join(dir, "empty"));

      expect(code).toBe(2);
      expect(stderr).toMatch(
        /empty: expected \.yaml or \.yml files in this directory, got none\n$/,
      );
    });
  });

  it("explains its exit codes", () => {
    const program = new Command();
    addRenderCommand(program, clock);
    const { written, restore } = captureWrites();

    program.commands[0]?.outputHelp();

    restore();
    expect(written.stdout).toMatch(
      /\nExit code: 0 it is rendered, 1 the pipeline failed, [^.]*, 2 a file or flag cannot be used, [^.]*\.\n$/,
    );
  });

  describe("functions that do not answer", () => {
    it("says which function cannot be reached", async () => {
      const port = await unusedPort();

      const { code, stdout, stderr } = await run(
        "--target",
        `127.0.0.1:${port}`,
      );

      expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
      expect(stderr).toMatch(
        new RegExp(
          `^render: cannot run pipeline step "step-1": cannot reach the function "fn" at 127\\.0\\.0\\.1:${port}: is it running with --insecure\\? \\(.*ECONNREFUSED 127\\.0\\.0\\.1:${port}\\)\n$`,
        ),
      );
    });

    it("goes where the Function's annotation says", async () => {
      const port = await unusedPort();
      await write(
        "functions.yaml",
        `${functionsYaml}    render.crossplane.io/runtime-development-target: dns:///127.0.0.1:${port}\n`,
      );

      const { stderr } = await run();

      expect(stderr).toContain(`at 127.0.0.1:${port}`);
    });

    it("gives up after --timeout", async () => {
      const silent = createServer();
      await new Promise<void>((resolve) => {
        silent.listen(0, "127.0.0.1", resolve);
      });
      const { port } = silent.address() as { port: number };

      const { code, stderr } = await run(
        `--target=127.0.0.1:${port}`,
        "--timeout=200ms",
      );
      silent.close();

      expect(code).toBe(2);
      expect(stderr).toBe(
        `render: cannot run pipeline step "step-1": the function "fn" at 127.0.0.1:${port} did not answer within the --timeout of 200ms\n`,
      );
    });

    it("tells a gRPC error by its name", async () => {
      await serve(() => ({
        code: status.INVALID_ARGUMENT,
        details: "bad\nyou",
      }));

      const { code, stderr } = await run();

      expect(code).toBe(2);
      expect(stderr).toMatch(
        /the function "fn" at [0-9.:]+ failed: INVALID_ARGUMENT: bad\\u000ayou\n$/,
      );
    });

    it("refuses an answer that is no RunFunctionResponse", async () => {
      await serve(() => new Uint8Array([0x0a, 0x05, 0x01]));

      const { code, stderr } = await run();

      expect(code).toBe(2);
      expect(stderr).toMatch(
        /answered with something that is no RunFunctionResponse: /,
      );
    });

    it("refuses an answer that Crossplane could not receive", async () => {
      await serve(() => ({ context: { big: "x".repeat(5 * 1024 * 1024) } }));

      const { code, stderr } = await run();

      expect(code).toBe(2);
      expect(stderr).toContain("failed: RESOURCE_EXHAUSTED: ");
    });
  });

  it.each([
    { name: "a timeout that is no duration", flag: "--timeout=5" },
    { name: "a timeout of nothing", flag: "--timeout=0s" },
    { name: "a target without a port", flag: "--target=localhost" },
    { name: "a target with port 0", flag: "--target=localhost:0" },
    { name: "a context value without a key", flag: "--context-values==1" },
    { name: "an unknown flag", flag: "--nope" },
  ])("refuses $name", async ({ flag }) => {
    const { code, stdout, stderr } = await run(flag);

    expect(code).toMatchObject({ name: "CommanderError" });
    expect(stdout).toBe("");
    expect(stderr).toContain(flag.replace(/=.*/, ""));
  });
});

async function unusedPort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => {
    probe.listen(0, "127.0.0.1", resolve);
  });
  const { port } = probe.address() as { port: number };
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
