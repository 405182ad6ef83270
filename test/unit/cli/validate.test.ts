import {
  existsSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";

import { CommanderError } from "commander";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";

import {
  AdmissionError,
  type JsonObject,
} from "../../../src/admission/index.js";
import {
  EngineError,
  type Engine,
  type EngineOptions,
} from "../../../src/engine/index.js";
import type { FoundModule } from "../../../src/ports.js";
import {
  type ScriptedRegistry,
  startScriptedRegistry,
} from "../../support/scripted-registry.js";
import { createCertificateAuthorities } from "../loader/http/certificates.js";
import {
  compositionOf,
  filesOf,
  inputOf,
  jsonLines,
  type Outcome,
  pathInput,
  temporaryDir,
  validate,
  type World,
} from "./validate-fixtures.js";

const zeros = "0".repeat(64);
const pinned = `ghcr.io/example/greeter@sha256:${zeros}`;
const fence =
  'permit(principal, action == Action::"pullModule", resource in Repository::"ghcr.io/example");';
const dir = "--module-dir=/modules";

/** Runs `validate` on one file, whose place the output leaves out. */
async function validateFile(
  content: string | readonly unknown[],
  flags: readonly string[] = [dir],
  world: World = {},
): Promise<Outcome> {
  const text =
    typeof content === "string"
      ? content
      : content.map((object) => `${JSON.stringify(object)}\n`).join("---\n");
  const place = await filesOf({ "f.yaml": text });
  const outcome = await validate([join(place, "f.yaml"), ...flags], world);
  const without = (output: string) => output.replaceAll(`${place}/`, "");
  return {
    code: outcome.code,
    stdout: without(outcome.stdout),
    stderr: without(outcome.stderr),
  };
}

const step = (input: unknown, more: JsonObject = {}): JsonObject => ({
  input: input as JsonObject,
  ...more,
});
const secret = (name: string): JsonObject => ({
  name,
  source: "Secret",
  secretRef: { namespace: "a", name: "b" },
});
const ociInput = (oci: JsonObject, more: JsonObject = {}) =>
  inputOf({ module: { type: "OCI", oci }, ...more });
const fromInput = (more: JsonObject = {}) =>
  inputOf({
    module: { type: "OCI", from: "spec.module", ...more },
    compositionPolicy: fence,
  });

async function xrFile(xr: JsonObject): Promise<string> {
  const type = { apiVersion: "example.org/v1", kind: "XThing" };
  const place = await filesOf({
    "xr.yaml": JSON.stringify({ ...type, ...xr }),
  });
  return `--xr=${join(place, "xr.yaml")}`;
}

describe("cli/validate", () => {
  it("tells people about every step", async () => {
    const composition = compositionOf([
      step(
        ociInput(
          { ref: "ghcr.io/example/greeter:1.2@sha256:" + zeros },
          {
            compositionPolicy: fence,
            limits: { timeout: "1500ms", memory: "128Mi", concurrency: 2 },
          },
        ),
      ),
      step({ kind: "Resources", apiVersion: "pt.fn.crossplane.io/v1beta1" }),
      step(inputOf({ module: { type: "Path", path: "a/b.wasm" } })),
      step(inputOf({ modul: {} })),
      step(
        inputOf({
          module: {
            type: "HTTP",
            http: {
              url: "https://Example.com/m.wasm?token=hunter2",
              digest: `sha256:${zeros}`,
            },
          },
          limits: { memory: 100_000_000 },
        }),
      ),
      step(fromInput({ allowEmpty: true })),
    ]);

    const outcome = await validateFile([composition]);

    expect(outcome).toEqual({
      code: 1,
      stderr: "",
      stdout: `\
f.yaml: Composition/things pipeline[0] step-0: OK (OCI ghcr.io/example/greeter:1.2@sha256:${zeros}, limits timeout 1.5s memory 128Mi concurrency 2, compositionPolicy)
f.yaml: Composition/things pipeline[2] step-2: OK (Path a/b.wasm, limits timeout 30s memory 512Mi)
  warning: module.type Path names a file under the --module-dir of each runtime, and nothing pins what is in it: use OCI or HTTP in a Composition
f.yaml: Composition/things pipeline[3] step-3: refused [field-unknown]: unknown field modul, did you mean module
f.yaml: Composition/things pipeline[4] step-4: OK (HTTP https://example.com/m.wasm, limits timeout 30s memory 100000000)
f.yaml: Composition/things pipeline[5] step-5: OK (OCI named by spec.module of the composite resource, limits timeout 30s memory 512Mi, compositionPolicy)
4 admitted, 1 refused, 1 warning
`,
    });
  });

  it("tells programs the same, an object on each line", async () => {
    const composition = compositionOf([
      step(ociInput({ ref: pinned }, { limits: { timeout: "5s" } })),
      step(inputOf({ module: { type: "OCI" } })),
    ]);

    const { code, stdout, stderr } = await validateFile(
      [composition, { ...pathInput, metadata: { name: "mine" } }],
      [dir, "--output=json"],
    );

    const place = { file: "f.yaml", document: 0, composition: "things" };
    const nothing = { warnings: [], credentials: null, env: null, from: null };
    expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
    expect(stdout).toMatch(/^(?:\{.*\}\n){3}$/);
    expect(jsonLines(stdout)).toStrictEqual([
      {
        ...place,
        step: "step-0",
        index: 0,
        verdict: "admitted",
        code: null,
        message: null,
        module: { type: "OCI", location: pinned, digest: `sha256:${zeros}` },
        limits: {
          timeoutMs: 5000,
          memoryBytes: 512 * 1024 * 1024,
          concurrency: null,
        },
        compositionPolicy: false,
        ...nothing,
      },
      {
        ...place,
        step: "step-1",
        index: 1,
        verdict: "refused",
        code: "input-invalid",
        message: "module.oci or module.from is required with module.type OCI",
        module: null,
        limits: null,
        compositionPolicy: false,
        ...nothing,
      },
      {
        file: "f.yaml",
        document: 1,
        composition: null,
        step: null,
        index: null,
        verdict: "admitted",
        code: null,
        message: null,
        module: { type: "Path", location: "greeter.wasm", digest: null },
        limits: {
          timeoutMs: 30_000,
          memoryBytes: 512 * 1024 * 1024,
          concurrency: null,
        },
        compositionPolicy: false,
        ...nothing,
      },
    ]);
  });

  it("says the digest that an Input names, wherever it does", async () => {
    const digest = `sha256:${zeros}`;
    const http = { url: "https://example.com/m", digest };
    const { stdout } = await validateFile(
      [
        ociInput({ ref: "ghcr.io/a/b:1", expectedDigest: digest }),
        ociInput({ ref: pinned }),
        inputOf({ module: { type: "HTTP", http } }),
        ociInput({ ref: "ghcr.io/a/b:1" }),
      ],
      ["--output=json", "--allow-unpinned-tags"],
    );

    const digests = jsonLines(stdout).map(
      ({ module }) => (module as { digest: unknown }).digest,
    );
    expect(digests).toEqual([digest, digest, digest, null]);
  });

  it.each([
    { name: "a verdict", content: [pathInput], code: 0 },
    { name: "a failure", content: "a: [", code: 2 },
  ])("ends the policy engine after $name", async ({ content, code }) => {
    let closed = 0;
    const onPoliciesClosed = () => (closed += 1);

    const outcome = await validateFile(content, [dir], { onPoliciesClosed });

    expect({ closed, code: outcome.code }).toEqual({ closed: 1, code });
  });

  it.each(["text", "json"])(
    "shows nothing of a file as it is that a terminal could act on, in %s",
    async (output) => {
      const evil = "a\u001b[31m\u009b\u202e\u2028\nb";
      const composition = compositionOf(
        [
          step(inputOf({ module: { type: "Path", path: evil } }), {
            step: evil,
          }),
          step(inputOf({ [evil]: 1 })),
        ],
        evil,
      );

      const objects = [composition, { ...pathInput, metadata: { name: evil } }];
      const text = objects.map((object) => JSON.stringify(object)).join("\n");

      const { stdout } = await validateFile(
        text.replace(
          /[\u007f-\uffff]/g,
          (character) =>
            `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
        ),
        [dir, `--output=${output}`],
      );

      expect(stdout.replaceAll("\n", "")).toMatch(/^[^\p{C}\p{Zl}\p{Zp}]+$/u);
      expect(stdout.split("\n")).toHaveLength(output === "text" ? 6 : 4);
      if (output === "json")
        expect(jsonLines(stdout)[0]).toMatchObject({
          composition: evil,
          step: evil,
          module: { location: evil },
        });
    },
  );

  describe("what is judged", () => {
    const found = async (
      content: string | readonly unknown[],
      ...flags: string[]
    ) => {
      const { stdout, code, stderr } = await validateFile(content, [
        dir,
        ...flags,
      ]);
      const lines = stdout.split("\n").filter((line) => /^\S+:/.test(line));
      return {
        code,
        stderr,
        lines: lines.map((line) =>
          line
            .replace(/^f\.yaml: /, "")
            .replace(/: (?:OK|refused \[(.*?)\]).*/, " $1")
            .trim(),
        ),
      };
    };
    const version = (apiVersion: string) => ({ ...pathInput, apiVersion });

    it("judges every Input of the group, whatever its version or kind, and no other", async () => {
      const composition = compositionOf([
        step(pathInput),
        step(version("wasm.fn.crossplane.io/v1beta1")),
        step(version("wasm.fn.crossplane.io/v2")),
        step(version("wasm.fn.crossplane.io")),
        step({ ...pathInput, kind: "Inputs" }),
        step(version("xwasm.fn.crossplane.io/v1")),
        step(version("wasm.fn.crossplane.io.example.org/v1")),
        step({ apiVersion: 1 }),
        {},
        step(null),
      ]);

      expect(await found([composition])).toMatchObject({
        code: 1,
        lines: [
          "Composition/things pipeline[0] step-0",
          "Composition/things pipeline[1] step-1",
          "Composition/things pipeline[2] step-2 input-version",
          "Composition/things pipeline[3] step-3 input-version",
          "Composition/things pipeline[4] step-4 input-version",
        ],
      });
    });

    it("judges the steps of --function-name, whatever their Input is, and no others", async () => {
      const composition = compositionOf([
        step(pathInput),
        step(pathInput, { functionRef: { name: "mine" } }),
        step({ kind: "Resources" }, { functionRef: { name: "mine" } }),
        { functionRef: { name: "mine" } },
        step(null, { functionRef: { name: "mine" } }),
        { functionRef: {} },
        step({ kind: "Other" }, { functionRef: { name: "mine2" } }),
      ]);

      const documents = [composition, pathInput];
      expect(await found(documents, "--function-name=mine")).toMatchObject({
        code: 1,
        lines: [
          "Composition/things pipeline[1] step-1",
          "Composition/things pipeline[2] step-2 input-version",
          "Composition/things pipeline[3] step-3 input-missing",
          "Composition/things pipeline[4] step-4 input-missing",
          "Input document[1]",
        ],
      });
    });

    it("leaves everything else alone", async () => {
      const text = [
        "# nothing",
        "just text",
        "- a list",
        "a: map without kind",
        JSON.stringify({ apiVersion: 1, kind: ["List"], items: [pathInput] }),
        JSON.stringify({
          ...compositionOf([step(pathInput)]),
          apiVersion: "apiextensions.crossplane.io/v2",
        }),
        JSON.stringify({
          ...compositionOf([step(pathInput)]),
          kind: "Operation",
        }),
        JSON.stringify({
          ...compositionOf([]),
          spec: { mode: "Resources", pipeline: [step(pathInput)] },
        }),
        JSON.stringify({ apiVersion: "v1", kind: "AllowList", spec: {} }),
        JSON.stringify({
          apiVersion: "apiextensions.crossplane.io/v1",
          kind: "Composition",
        }),
        JSON.stringify(compositionOf([step(pathInput)], "")),
      ].join("\n---\n");

      expect(await found(text)).toEqual({
        code: 0,
        stderr: "",
        lines: ["Composition document[9] pipeline[0] step-0"],
      });
    });

    it("takes a Composition without mode, and one whose mode is null, for a pipeline", async () => {
      const text = JSON.stringify(compositionOf([step(pathInput)]));
      const mode = '"mode":"Pipeline",';
      expect(text).toContain(mode);

      const documents = [
        text.replace(mode, ""),
        text.replace(mode, '"mode":null,'),
      ];
      expect((await found(documents.join("\n"))).lines).toHaveLength(2);
    });

    it("looks into Lists, those inside Lists too", async () => {
      const list = (kind: string, ...items: unknown[]) => ({
        apiVersion: "v1",
        kind,
        items,
      });
      const { metadata, spec } = compositionOf([step(pathInput)], "bare");
      const typed = {
        apiVersion: "apiextensions.crossplane.io/v1",
        kind: "CompositionList",
        items: [{ metadata, spec }, compositionOf([step(pathInput)], "typed")],
      };

      const documents = [
        list(
          "List",
          compositionOf([step(pathInput)], "one"),
          null,
          "text",
          list("List", pathInput, typed, list("List")),
          { kind: "ConfigMap" },
        ),
      ];
      expect(await found(documents)).toEqual({
        code: 0,
        stderr: "",
        lines: [
          "Composition/one pipeline[0] step-0",
          "Input document[0]",
          "Composition/bare pipeline[0] step-0",
          "Composition/typed pipeline[0] step-0",
        ],
      });
    });

    it("reads several files, directories of YAML and the standard input, in order", async () => {
      const named = (name: string) =>
        JSON.stringify({ ...pathInput, metadata: { name } });
      const place = await filesOf({ "a.json": named("a") });
      await mkdir(join(place, "more"));
      for (const name of ["c.yml", "b.yaml", "d.txt"])
        await writeFile(join(place, "more", name), named(name));

      const { code, stdout } = await validate(
        [join(place, "a.json"), "-", join(place, "more"), dir],
        { stdin: `${named("x")}\n${named("y")}` },
      );

      expect(code).toBe(0);
      const names = stdout
        .split("\n")
        .map((line) => line.replace(/: OK.*/, ""));
      expect(names).toEqual([
        `${place}/a.json: Input/a`,
        "<stdin>: Input/x",
        "<stdin>: Input/y",
        `${place}/more/b.yaml: Input/b.yaml`,
        `${place}/more/c.yml: Input/c.yml`,
        "5 admitted, 0 refused, 0 warnings",
        "",
      ]);
    });

    it("reads scalars as Kubernetes does", async () => {
      const text = (limits: string) =>
        `apiVersion: wasm.fn.crossplane.io/v1\nkind: Input\nmodule: {type: Path, path: greeter.wasm}\nlimits: {${limits}}\n`;
      const limitsOf = async (limits: string) => {
        const { stdout } = await validateFile(text(limits), [
          dir,
          "--output=json",
        ]);
        const [line] = jsonLines(stdout);
        return line?.["limits"] ?? line?.["message"];
      };

      expect(
        await limitsOf("memory: 0x100000, concurrency: 010"),
      ).toMatchObject({ memoryBytes: 1024 * 1024, concurrency: 8 });
      expect(await limitsOf("memory: 1_048_576, timeout: ~")).toMatchObject({
        memoryBytes: 1024 * 1024,
        timeoutMs: 30_000,
      });
      expect(await limitsOf("memory: on")).toBe(
        'limits.memory: expected a Kubernetes quantity such as "128Mi" or a whole number of bytes, got true',
      );
      expect(await limitsOf("memory: 'on'")).toMatch(/^limits\.memory: .*"on"/);
      expect(await limitsOf("timeout: 1:30")).toMatch(
        /^limits\.timeout: .*"1:30"/,
      );
    });

    it("takes null for absent where the server does", async () => {
      const input = inputOf({
        module: { type: "Path", path: "m.wasm", oci: null, http: null },
        limits: null,
        compositionPolicy: null,
        config: { a: null },
      });

      expect(await validateFile([input])).toMatchObject({ code: 0 });
    });
  });

  describe("warnings", () => {
    const warningsOf = async (
      steps: readonly JsonObject[],
      ...flags: string[]
    ) => {
      const { code, stdout } = await validateFile(
        [compositionOf(steps)],
        [dir, "--output=json", ...flags],
      );
      const warnings = jsonLines(stdout).flatMap(
        (line) => line["warnings"] as { code: string; message: string }[],
      );
      return { code, warnings };
    };
    const pathSource = {
      code: "path-source",
      message:
        "module.type Path names a file under the --module-dir of each runtime, and nothing pins what is in it: use OCI or HTTP in a Composition",
    };

    it("warns of a deprecated version", async () => {
      const input = ociInput({ ref: pinned });
      const apiVersion = "wasm.fn.crossplane.io/v1beta1";

      expect(await warningsOf([step({ ...input, apiVersion })])).toEqual({
        code: 0,
        warnings: [
          {
            code: "deprecated-version",
            message:
              "apiVersion wasm.fn.crossplane.io/v1beta1 is deprecated: write wasm.fn.crossplane.io/v1",
          },
        ],
      });
    });

    it("warns of a Path source in a Composition, also one that the XR names", async () => {
      const from = inputOf({ module: { type: "Path", from: "spec.m" } });

      expect(await warningsOf([step(pathInput), step(from)])).toEqual({
        code: 0,
        warnings: [pathSource, pathSource],
      });
    });

    it("warns of limits at their ceilings, if somebody wrote them", async () => {
      const limits = (written: JsonObject | null) =>
        step(ociInput({ ref: pinned }, { limits: written }));
      const steps = [
        limits({ timeout: "60s", memory: "1Gi" }),
        limits({ timeout: "59s", memory: "1023Mi" }),
        limits({ timeout: null }),
        limits(null),
        step(ociInput({ ref: pinned })),
      ];

      const flags = ["--module-timeout=1m", "--module-memory-limit=1024"];
      expect(await warningsOf(steps, ...flags)).toEqual({
        code: 0,
        warnings: [
          {
            code: "limit-at-ceiling",
            message:
              "limits.timeout equals the runtime's --module-timeout of 1m: a runtime with a lower one refuses it",
          },
          {
            code: "limit-at-ceiling",
            message:
              "limits.memory equals the runtime's --module-memory-limit of 1024Mi: a runtime with a lower one refuses it",
          },
        ],
      });
    });

    it("warns of what a compositionPolicy may not mean", async () => {
      const policy = (text: string) =>
        step(ociInput({ ref: pinned }, { compositionPolicy: text }));
      const steps = [
        policy("// nothing"),
        policy("permit (principal, action, resource);"),
        policy(
          'forbid (principal, action == Action::"requireSignature", resource);',
        ),
        policy('forbid (principal, action == Action::"setEnv", resource);'),
      ];

      const { code, warnings } = await warningsOf(steps);

      expect(code).toBe(0);
      expect(warnings).toEqual(
        [
          "it has no rule: it permits nothing",
          'rule "policy0" permits every action, pullModule and spendCredential included',
          "it has a rule for requireSignature, about which this layer is never asked",
        ].map((remark) => ({
          code: "policy-remark",
          message: `compositionPolicy: ${remark}`,
        })),
      );
    });

    it("warns of a manifest that the XR may put under any file", async () => {
      const module = { type: "Path", from: "spec.m", manifestPath: "m.yaml" };

      const { warnings } = await warningsOf([step(inputOf({ module }))]);

      expect(warnings.map(({ code }) => code)).toEqual([
        "path-source",
        "manifest-for-any-module",
      ]);
    });

    it("warns of a pull credential that the step does not declare", async () => {
      const input = ociInput({ ref: pinned, credentials: "registry" });
      const steps = [
        step(input),
        step(input, { credentials: [{ name: "registry", source: "None" }] }),
        step(input, { credentials: [secret("registry")] }),
      ];
      const message =
        'module.oci.credentials names the credential "registry", which the pipeline step does not declare: the module cannot be pulled with it';

      const warning = { code: "credential-undeclared", message };
      expect(await warningsOf(steps)).toEqual({
        code: 0,
        warnings: [warning, warning],
      });
    });

    it("warns of one that the XR names", async () => {
      const xr = await xrFile({
        spec: { module: { ref: pinned, credentials: "registry" } },
      });
      const spend =
        'permit(principal, action == Action::"spendCredential", resource);';
      const input = { ...fromInput(), compositionPolicy: fence + spend };

      expect(await warningsOf([step(input)], xr)).toEqual({
        code: 0,
        warnings: [
          {
            code: "credential-undeclared",
            message:
              'module.from: spec.module of the composite resource names the credential "registry", which the pipeline step does not declare: the module cannot be pulled with it',
          },
        ],
      });
    });

    it("has no reason to warn of an Input by itself", async () => {
      const { stdout } = await validateFile([
        pathInput,
        ociInput({ ref: pinned, credentials: "registry" }),
      ]);

      expect(stdout).toContain("2 admitted, 0 refused, 0 warnings\n");
    });
  });

  describe("--xr", () => {
    it("reads the module from the XR and holds it to the fence", async () => {
      const composition = compositionOf([step(fromInput())]);
      const run = async (ref: string) =>
        validateFile(
          [composition],
          [await xrFile({ spec: { module: { ref } } })],
        );

      expect(await run(pinned)).toMatchObject({
        code: 0,
        stdout: expect.stringContaining(`OK (OCI ${pinned}, limits`) as string,
      });
      expect(await run(`evil.example/x@sha256:${zeros}`)).toMatchObject({
        code: 1,
        stdout: expect.stringContaining("refused [pull-refused]") as string,
      });
    });

    it("reads it for an Input by itself, too", async () => {
      const xr = await xrFile({ spec: { module: { ref: pinned } } });

      const { stdout } = await validateFile(
        [fromInput()],
        [xr, "--output=json"],
      );

      expect(jsonLines(stdout)).toMatchObject([
        {
          verdict: "admitted",
          from: "spec.module",
          module: { type: "OCI", location: pinned },
        },
      ]);
    });

    it("says that nothing runs where the XR names no module and may", async () => {
      const xr = await xrFile({ spec: {} });
      const input = fromInput({ allowEmpty: true });

      const { code, stdout } = await validateFile([input], [xr]);
      const json = await validateFile([input], [xr, "--output=json"]);

      expect(code).toBe(0);
      expect(stdout).toContain(
        "OK (no module, spec.module of the composite resource is not set, limits",
      );
      expect(jsonLines(json.stdout)).toMatchObject([
        { verdict: "admitted", from: "spec.module", module: null },
      ]);
    });

    it("refuses an XR that names none and must", async () => {
      const { code, stdout } = await validateFile(
        [fromInput()],
        [await xrFile({ spec: {} })],
      );

      expect(code).toBe(1);
      expect(stdout).toContain(
        "refused [from-unset]: module.from: cannot read spec.module from the composite resource: module: no such field",
      );
    });

    it("makes the XR the principal of the compositionPolicy", async () => {
      const policy = `${fence} forbid(principal, action == Action::"pullModule", resource) when { principal.namespace == "team-a" && principal.xrKind == "XThing" };`;
      const input = { ...fromInput(), compositionPolicy: policy };
      const spec = { module: { ref: pinned } };
      const run = async (namespace: string) => {
        const xr = await xrFile({ metadata: { name: "x", namespace }, spec });
        return (await validateFile([input], [xr])).code;
      };

      expect(await run("team-a")).toBe(1);
      expect(await run("team-b")).toBe(0);
    });

    it("leaves the choice open for a Composition of another kind, and says so", async () => {
      const composition = compositionOf([step(fromInput())]);
      const xr = await xrFile({ kind: "XOther", spec: {} });

      const { code, stdout } = await validateFile([composition], [xr]);

      expect(code).toBe(0);
      expect(stdout).toBe(`\
f.yaml: Composition/things pipeline[0] step-0: OK (OCI named by spec.module of the composite resource, limits timeout 30s memory 512Mi, compositionPolicy)
  warning: checked as without --xr, which is example.org/v1 XOther: the Composition is for example.org/v1 XThing
1 admitted, 0 refused, 1 warning
`);
    });

    it("takes the XR for a Composition that does not say what it is for", async () => {
      const text = JSON.stringify(compositionOf([step(fromInput())]));
      const untyped = text.replace('"compositeTypeRef"', '"other"');

      const { stdout } = await validateFile(untyped, [
        await xrFile({ spec: { module: { ref: pinned } } }),
      ]);

      expect(stdout).toContain(`OK (OCI ${pinned}, limits`);
    });

    it("compiles the compositionPolicy without one all the same", async () => {
      const broken = { ...fromInput(), compositionPolicy: "permit(" };

      expect(await validateFile([broken])).toMatchObject({
        code: 1,
        stdout: expect.stringContaining("refused [policy-invalid]") as string,
      });
    });

    it.each([
      {
        name: "is not there",
        content: null,
        want: /^validate: --xr: cannot read "[^"]*xr\.yaml": ENOENT/,
      },
      {
        name: "is two",
        content: "{apiVersion: a, kind: b}\n---\n{apiVersion: a, kind: b}",
        want: /^validate: --xr: \S*xr\.yaml: expected one YAML document, got 2/,
      },
      {
        name: "is no object",
        content: "text",
        want: /^validate: --xr: \S*xr\.yaml, line 1: expected an object, got text/,
      },
    ])("fails when the file $name", async ({ content, want }) => {
      const place = await filesOf(
        content === null ? {} : { "xr.yaml": content },
      );

      const outcome = await validateFile(
        [pathInput],
        [dir, "--xr", join(place, "xr.yaml")],
      );

      expect(outcome).toMatchObject({ code: 2, stdout: "" });
      expect(outcome.stderr).toMatch(want);
    });
  });

  describe("--resolve", () => {
    const manifest = `
abi: 1
requires:
  env:
  - {name: TOKEN, fromCredential: {name: db, key: token}}
  - {name: HOST, fromCredential: {name: db, key: host}}
  credentials: [cmdb]
`;
    const egress =
      "abi: 1\nrequires: {egress: {http: [{host: api.example.com, methods: [GET]}]}}\n";
    const permitAll =
      'permit(principal, action in [Action::"spendCredential", Action::"setEnv", Action::"grantEgress"], resource);\n';
    const withManifest = inputOf({
      module: { type: "Path", path: "m.wasm", manifestPath: "m.yaml" },
    });

    async function resolve(
      documents: readonly unknown[],
      files: Readonly<Record<string, string>>,
      world: World = {},
      ...flags: string[]
    ): Promise<Outcome> {
      const modules = await filesOf({
        "m.wasm": "module",
        "p.cedar": permitAll,
        ...files,
      });
      return await validateFile(
        documents,
        [
          "--resolve",
          `--module-dir=${modules}`,
          `--sandbox-policy-file=${join(modules, "p.cedar")}`,
          ...flags,
        ],
        world,
      );
    }

    it("lists what the module's request would carry", async () => {
      const composition = compositionOf([
        step(withManifest, { credentials: [secret("db"), secret("cmdb")] }),
      ]);

      const text = await resolve([composition], { "m.yaml": manifest });
      const json = await resolve(
        [composition],
        { "m.yaml": manifest },
        {},
        "--output=json",
      );

      expect(text.stdout.split("\n").slice(2)).toEqual([
        "  credentials: db, cmdb",
        "  env: TOKEN, HOST",
        "1 admitted, 0 refused, 1 warning",
        "",
      ]);
      expect(text.code).toBe(0);
      expect(jsonLines(json.stdout)).toMatchObject([
        {
          verdict: "admitted",
          module: {
            type: "Path",
            location: "m.wasm",
            digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/) as string,
          },
          credentials: ["db", "cmdb"],
          env: ["TOKEN", "HOST"],
        },
      ]);
    });

    it("refuses what asks for a credential that the step lacks, in the server's order", async () => {
      const run = async (...names: string[]) => {
        const composition = compositionOf([
          step(withManifest, { credentials: names.map(secret) }),
        ]);
        const { stdout } = await resolve([composition], { "m.yaml": manifest });
        return stdout.split("\n")[0]?.replace(/^.*refused /, "");
      };

      expect(await run("db")).toBe(
        '[credential-missing]: module Path m.wasm: requires.credentials[0]: the request carries no credential "cmdb"; declare it on the pipeline step',
      );
      expect(await run("cmdb")).toBe(
        '[credential-missing]: module Path m.wasm: requires.env[0] (TOKEN): the request carries no credential "db"; declare it on the pipeline step',
      );
    });

    it("does not know the credentials of an Input by itself", async () => {
      const { code, stdout } = await resolve([withManifest], {
        "m.yaml": manifest,
      });

      expect(code).toBe(0);
      expect(stdout).toContain("  credentials: db, cmdb\n");
    });

    it("says nothing of credentials where the module asks for none", async () => {
      const { stdout } = await resolve([pathInput], {
        "greeter.wasm": "module",
      });
      const json = await resolve(
        [pathInput],
        { "greeter.wasm": "module" },
        {},
        "--output=json",
      );

      expect(stdout).toBe(
        "f.yaml: Input document[0]: OK (Path greeter.wasm, limits timeout 30s memory 512Mi)\n1 admitted, 0 refused, 0 warnings\n",
      );
      expect(jsonLines(json.stdout)).toMatchObject([
        { credentials: [], env: [] },
      ]);
    });

    it("warns of egress, whose module nobody has to have signed", async () => {
      const { code, stdout } = await resolve([withManifest], {
        "m.yaml": egress,
      });

      expect(stdout).toContain(
        "\n  warning: the module requires egress (requires.egress.http), and nothing checks who signed it\n",
      );
      // Until egress is there.
      expect(code).toBe(1);
      expect(stdout).toContain("refused [capability-not-supported]");
    });

    it("warns of what the XR has yet to choose", async () => {
      const { code, stdout } = await resolve([fromInput()], {});

      expect(code).toBe(0);
      expect(stdout.match(/(?<=^ {2}warning: ).*/gm)).toEqual([
        "not resolved: the composite resource chooses the module, give one with --xr",
      ]);
    });

    it("resolves what the XR chooses", async () => {
      const xr = await xrFile({ spec: { module: "gone.wasm" } });
      const input = inputOf({ module: { type: "Path", from: "spec.module" } });

      const { code, stdout } = await resolve([input], {}, {}, xr);

      expect(code).toBe(1);
      expect(stdout).toContain(
        "[module-not-found]: cannot resolve module: module Path gone.wasm",
      );
    });

    it("starts one sandbox, in a directory that is gone afterwards, and closes it", async () => {
      const options: EngineOptions[] = [];
      const seen: string[] = [];
      let closed = 0;
      let released = 0;

      const { code } = await resolve(
        [pathInput, pathInput],
        { "greeter.wasm": "module" },
        {
          onEngine: (given) => options.push(given),
          engine: {
            load(module) {
              seen.push(
                ...readdirSync(join(options[0]?.cacheDir ?? "", "..")).filter(
                  (name) => name === basename(options[0]?.cacheDir ?? ""),
                ),
              );
              return Promise.resolve({
                digest: module.digest,
                description: module.description,
                abi: 1,
                release: () => (released += 1),
              });
            },
            close() {
              closed += 1;
              return Promise.resolve();
            },
          },
        },
        "--module-stack-limit=256",
      );

      expect(code).toBe(0);
      expect(options).toMatchObject([{ stackLimitBytes: 256 * 1024 }]);
      expect(seen).toHaveLength(2);
      expect({ closed, released }).toEqual({ closed: 1, released: 2 });
      expect(existsSync(options[0]?.cacheDir ?? "/")).toBe(false);
      expect(options[0]?.cacheDir).toContain("function-wasm-validate-");
    });

    it.each([
      {
        name: "a flag",
        flags: (cache: string) => [`--cache-dir=${cache}`],
        env: () => ({}),
      },
      {
        name: "a variable",
        flags: () => [],
        env: (cache: string) => ({ CACHE_DIR: cache }),
      },
    ])("keeps compiled modules where $name says", async ({ flags, env }) => {
      const cache = await temporaryDir();
      const options: EngineOptions[] = [];

      await resolve(
        [pathInput],
        { "greeter.wasm": "module" },
        { env: env(cache), onEngine: (given) => options.push(given) },
        ...flags(cache),
      );

      expect(options).toMatchObject([{ cacheDir: cache }]);
      expect(existsSync(cache)).toBe(true);
    });

    it("needs no sandbox when no module is loaded", async () => {
      const options: EngineOptions[] = [];
      const onEngine = (given: EngineOptions) => options.push(given);

      await resolve([fromInput()], {}, { onEngine });
      await resolve([pathInput], {}, { onEngine });
      await validateFile([pathInput], [dir], { onEngine });

      expect(options).toEqual([]);
    });

    it("fails when it meets a fault of its own", async () => {
      const load = () => Promise.reject(new TypeError("x is\u001b undefined"));

      const outcome = await resolve(
        [pathInput],
        { "greeter.wasm": "module" },
        { engine: { load } },
      );

      expect(outcome).toEqual({
        code: 2,
        stdout: "",
        stderr: "validate: f.yaml: Input document[0]: x is\\u001b undefined\n",
      });
    });

    it("fails when the sandbox does, whatever the module is", async () => {
      let closed = 0;
      const outcome = await resolve(
        [pathInput],
        { "greeter.wasm": "module" },
        {
          engine: {
            load: () =>
              Promise.reject(new EngineError("load-failed", "no compiler")),
            close() {
              closed += 1;
              return Promise.resolve();
            },
          },
        },
      );

      expect(outcome).toEqual({
        code: 2,
        stdout: "",
        stderr:
          "validate: f.yaml: Input document[0]: module Path greeter.wasm: no compiler\n",
      });
      expect(closed).toBe(1);
    });
  });

  describe("--resolve of what is elsewhere", () => {
    const tag = "1.2";
    const egressFree = JSON.stringify({
      abi: 1,
      requires: { credentials: ["db"] },
    });
    const permitDb =
      'permit(principal, action == Action::"spendCredential", resource == Credential::"db");\n';

    async function openRegistry(
      options?: Parameters<typeof startScriptedRegistry>[0],
    ): Promise<ScriptedRegistry> {
      const registry = await startScriptedRegistry(options);
      onTestFinished(() => registry.stop());
      return registry;
    }

    /** A module in the repository a/b of a new registry. */
    async function publish(manifest?: string) {
      const registry = await openRegistry();
      const module = registry.addModule("a/b", {
        wasm: Buffer.from("module"),
        tag,
        ...(manifest !== undefined && { manifest }),
      });
      const repository = `${registry.authority}/a/b`;
      const { manifestDigest } = module;
      return {
        ...module,
        registry,
        repository,
        pinned: `${repository}@${manifestDigest}`,
      };
    }

    /** One Input, without the summary. */
    async function resolveInput(
      input: JsonObject,
      flags: readonly string[] = [],
      world: World = {},
    ) {
      const { code, stdout, stderr } = await validateFile(
        [input],
        ["--resolve", "--output=json", ...flags],
        world,
      );
      return { code, stderr, verdict: jsonLines(stdout)[0] };
    }

    it("judges a module in a registry, and says which digest to pin", async () => {
      const { manifestDigest, moduleDigest, repository } =
        await publish(egressFree);
      const loaded: FoundModule[] = [];
      const place = await filesOf({ "p.cedar": permitDb });
      const load: Engine["load"] = async (module) => {
        loaded.push(module);
        const { digest, description } = await module.locate();
        return { digest, description, abi: 1, release: () => undefined };
      };

      const outcome = await resolveInput(
        ociInput({ ref: `${repository}:${tag}` }),
        [
          "--allow-unpinned-tags",
          `--sandbox-policy-file=${join(place, "p.cedar")}`,
        ],
        { engine: { load } },
      );

      expect(outcome).toMatchObject({
        code: 0,
        stderr: "",
        verdict: {
          verdict: "admitted",
          module: {
            type: "OCI",
            location: `${repository}:${tag}`,
            digest: manifestDigest,
          },
          credentials: ["db"],
          warnings: [],
        },
      });
      expect(loaded.map(({ digest }) => digest)).toEqual([moduleDigest]);
    });

    it("judges a module on a web server", async () => {
      const { layerDigest, registry } = await publish();
      const url = `${registry.url}/v2/a/b/blobs/${layerDigest}`;
      const http = (digest: string) =>
        inputOf({ module: { type: "HTTP", http: { url, digest } } });

      const good = await resolveInput(http(layerDigest));
      const bad = await resolveInput(http(`sha256:${zeros}`));

      expect(good).toMatchObject({
        code: 0,
        verdict: { module: { location: url, digest: layerDigest } },
      });
      expect(bad).toMatchObject({
        code: 1,
        verdict: {
          code: "digest-mismatch",
          message: `cannot resolve module: module HTTP ${url}: expected sha256:${zeros}, got ${layerDigest}`,
        },
      });
    });

    it("holds the manifest's requirements to the policies", async () => {
      const { pinned, repository, manifestDigest } = await publish(egressFree);

      const outcome = await resolveInput(ociInput({ ref: pinned }));

      expect(outcome).toMatchObject({
        code: 1,
        stderr: "",
        verdict: {
          code: "operator-policy-missing",
          message: expect.stringContaining(
            `module OCI ${repository}@${manifestDigest}`,
          ) as string,
          module: { digest: manifestDigest },
        },
      });
    });

    it("refuses what the engine refuses", async () => {
      const { pinned } = await publish();
      const load = () =>
        Promise.reject(new EngineError("module-invalid", "it is text"));

      const outcome = await resolveInput(ociInput({ ref: pinned }), [], {
        engine: { load },
      });

      expect(outcome).toMatchObject({
        code: 1,
        verdict: {
          code: "module-invalid",
          message: `module OCI ${pinned}: it is text`,
        },
      });
    });

    it("[§9 ExpectedDigestMismatch] refuses a tag that leads elsewhere", async () => {
      const { manifestDigest, repository } = await publish();
      const expectedDigest = `sha256:${zeros}`;
      const ref = `${repository}:${tag}`;

      const outcome = await resolveInput(ociInput({ ref, expectedDigest }), [
        "--allow-unpinned-tags",
      ]);

      expect(outcome).toMatchObject({
        code: 1,
        stderr: "",
        verdict: {
          verdict: "refused",
          code: "expected-digest-mismatch",
          message: `cannot resolve module: module OCI ${ref}: the tag leads to ${manifestDigest}, module.oci.expectedDigest is ${expectedDigest}`,
        },
      });
    });

    it("refuses a module that is not there", async () => {
      const { repository } = await publish();

      expect(
        await resolveInput(ociInput({ ref: `${repository}@sha256:${zeros}` })),
      ).toMatchObject({ code: 1, verdict: { code: "module-not-found" } });
    });

    it("fails, and says why, when the registry gives no answer", async () => {
      const { pinned, registry } = await publish();
      await registry.stop();

      const outcome = await resolveInput(ociInput({ ref: pinned }));

      expect(outcome).toMatchObject({ code: 2, verdict: undefined });
      expect(outcome.stderr).toMatch(/^validate: [^\p{C}]+\n$/u);
      expect(outcome.stderr).toContain(
        `cannot resolve module: module OCI ${pinned}: ${registry.authority}: `,
      );
    });

    it("goes by what a tag led to, says so, and names no flag of the server when that is too old", async () => {
      const { registry, manifestDigest, repository } = await publish();
      const ref = `${repository}:${tag}`;
      const flags = [
        "--allow-unpinned-tags",
        `--cache-dir=${await temporaryDir()}`,
      ];
      await resolveInput(ociInput({ ref }), flags);
      await registry.stop();

      const soon = await resolveInput(ociInput({ ref }), flags);
      const late = await resolveInput(ociInput({ ref }), flags, {
        aheadMs: 2 * 3_600_000,
      });

      expect(soon).toMatchObject({
        code: 0,
        stderr: "",
        verdict: {
          warnings: [
            {
              code: "tag-not-answered",
              message: expect.stringMatching(
                new RegExp(`; using ${manifestDigest}, which the tag led to `),
              ) as string,
            },
          ],
        },
      });
      expect(late).toMatchObject({ code: 2, verdict: undefined });
      expect(late.stderr).toMatch(
        new RegExp(
          `: connection refused \\(ECONNREFUSED\\); the tag led to ${manifestDigest} 720\\d s ago, too long ago to go by \\(at most 3600 s\\): try again when the registry answers, or pin a digest\n$`,
        ),
      );
      expect(late.stderr).not.toContain("--");
    });

    it.each([
      {
        output: "text",
        judged: (place: string) =>
          `${place}/f.yaml: Composition/things pipeline[1] step-1: refused [input-invalid]: module is required\n${place}/g.yaml: Input/g.yaml: OK (Path m.wasm, limits timeout 30s memory 512Mi)\n1 admitted, 1 refused, 0 warnings\n`,
      },
      { output: "json", judged: null },
    ])(
      "judges the rest, and names each step, when a registry gives no answer, in $output",
      async ({ output, judged }) => {
        const { pinned, registry } = await publish();
        await registry.stop();
        const oci = step(ociInput({ ref: pinned }));
        const path = inputOf({ module: { type: "Path", path: "m.wasm" } });
        const place = await filesOf({
          "m.wasm": "module",
          "f.yaml": JSON.stringify(
            compositionOf([oci, step(inputOf({})), oci]),
          ),
          "g.yaml": JSON.stringify({ ...path, metadata: { name: "g.yaml" } }),
        });

        const { code, stdout, stderr } = await validate([
          ...["f.yaml", "g.yaml"].map((name) => join(place, name)),
          "--resolve",
          `--module-dir=${place}`,
          `--output=${output}`,
        ]);

        expect(code).toBe(2);
        expect(stderr.split("\n")).toEqual([
          ...[0, 2].map(
            (i) =>
              expect.stringContaining(
                `validate: ${place}/f.yaml: Composition/things pipeline[${i}] step-${i}: cannot resolve module: module OCI ${pinned}: ${registry.authority}: `,
              ) as string,
          ),
          "",
        ]);
        if (judged !== null) expect(stdout).toBe(judged(place));
        else
          expect(jsonLines(stdout)).toMatchObject([
            { file: `${place}/f.yaml`, index: 1, verdict: "refused" },
            { file: `${place}/g.yaml`, verdict: "admitted" },
          ]);
      },
    );

    it("fails when the registry refuses this machine, where the step names no credential", async () => {
      const { pinned, registry } = await publish();
      registry.requireBasic({ username: "u", password: "hunter2" });

      const outcome = await resolveInput(ociInput({ ref: pinned }));

      expect(outcome).toMatchObject({ code: 2, verdict: undefined });
      expect(outcome.stderr).toContain(`module OCI ${pinned}: `);
    });

    describe("with a step credential", () => {
      const login = { username: "me", password: "hunter2" };
      const stepWith = (ref: string) =>
        compositionOf([
          step(ociInput({ ref, credentials: "pull" }), {
            credentials: [secret("pull")],
          }),
        ]);
      async function dockerConfig(authority: string, password: string) {
        const auth = Buffer.from(`${login.username}:${password}`);
        const auths = { [authority]: { auth: auth.toString("base64") } };
        const config = await filesOf({
          "config.json": JSON.stringify({ auths }),
        });
        return { env: { DOCKER_CONFIG: config } };
      }

      it("pulls with this machine's Docker config instead", async () => {
        const { pinned, registry, manifestDigest } = await publish();
        registry.requireBasic(login);

        const outcome = await resolveInput(
          stepWith(pinned),
          [],
          await dockerConfig(registry.authority, login.password),
        );

        expect(outcome).toMatchObject({
          code: 0,
          stderr: "",
          verdict: {
            verdict: "admitted",
            module: { digest: manifestDigest },
            // The pull credential is the runtime's to use, not the module's.
            credentials: [],
            warnings: [],
          },
        });
      });

      it.each([
        {
          name: "there is none for it",
          world: () => Promise.resolve({}),
        },
        {
          name: "the registry refuses the one for it",
          world: (authority: string) =>
            dockerConfig(authority, "hunter2-other"),
        },
        {
          name: "it cannot be read",
          world: async () => ({
            env: {
              DOCKER_CONFIG: await filesOf({ "config.json": "{hunter2" }),
            },
          }),
        },
      ])("warns when $name", async ({ world }) => {
        const { pinned, registry } = await publish();
        registry.requireBasic(login);

        const outcome = await resolveInput(
          stepWith(pinned),
          [],
          await world(registry.authority),
        );

        expect(outcome).toMatchObject({
          code: 0,
          stderr: "",
          verdict: {
            verdict: "admitted",
            credentials: null,
            warnings: [{ code: "not-resolved" }],
          },
        });
        const text = JSON.stringify(outcome.verdict?.["warnings"]);
        expect(text).toContain(
          `not resolved: the step credential \\"pull\\" is in the cluster, and with this machine's Docker config: cannot resolve module: module OCI ${pinned}: `,
        );
        expect(text).not.toContain("hunter2");
      });
    });

    describe("TLS", () => {
      const authorities = createCertificateAuthorities();
      const file = join(mkdtempSync(join(tmpdir(), "validate-ca-")), "ca.crt");
      writeFileSync(file, authorities.authority("ca"));
      const leaf = authorities.leaf({
        authority: "ca",
        altNames: "DNS:localhost",
      });
      afterAll(() => {
        authorities.remove();
        rmSync(dirname(file), { recursive: true });
      });

      async function pinnedOverTls() {
        const registry = await openRegistry({ tls: leaf });
        const wasm = Buffer.from("module");
        const { manifestDigest } = registry.addModule("a/b", { wasm });
        const { authority } = registry;
        return { authority, pinned: `${authority}/a/b@${manifestDigest}` };
      }

      it("is spoken with a registry that has a --registry-ca", async () => {
        const { authority, pinned } = await pinnedOverTls();

        expect(
          await resolveInput(ociInput({ ref: pinned }), [
            `--registry-ca=${authority}=${file}`,
          ]),
        ).toMatchObject({ code: 0, stderr: "" });
      });

      it("fails with a certificate that nobody vouches for", async () => {
        const { authority, pinned } = await pinnedOverTls();

        const outcome = await resolveInput(ociInput({ ref: pinned }), [
          `--registry-ca=other.example=${file}`,
          // Loopback is spoken to in the clear unless something is known of it.
          `--registry-ca=${authority}=${await otherCa()}`,
        ]);

        expect(outcome).toMatchObject({ code: 2, verdict: undefined });
        expect(outcome.stderr).toContain(`module OCI ${pinned}: `);
      });

      async function otherCa(): Promise<string> {
        const other = authorities.authority("other");
        return join(await filesOf({ "ca.crt": other }), "ca.crt");
      }

      it("is not spoken with an --insecure-registry", async () => {
        const url = "http://insecure.example:5000/m";
        const input = inputOf({
          module: {
            type: "HTTP",
            http: { url, digest: `sha256:${zeros}` },
          },
        });
        const judge = async (...flags: readonly string[]) => {
          const { stdout } = await validateFile([input], flags);
          return stdout.split("\n")[0];
        };

        expect(await judge()).toContain("refused [input-invalid]");
        expect(
          await judge("--insecure-registry=insecure.example:5000"),
        ).toContain(`OK (HTTP ${url}, `);
      });

      it("fails for a CA that cannot be used, resolving or not", async () => {
        const outcome = await validateFile(
          [pathInput],
          [dir, "--registry-ca=ghcr.io=/nowhere"],
        );

        expect(outcome).toMatchObject({ code: 2, stdout: "" });
        expect(outcome.stderr).toMatch(
          /^validate: --registry-ca ghcr\.io: ENOENT[^\n]*\n$/,
        );
      });
    });
  });

  describe("exit code 2", () => {
    it.each([
      {
        name: "a file that is not there",
        files: {},
        want: /^validate: cannot read "[^"]*f\.yaml": ENOENT[^\n]*\n$/,
      },
      {
        name: "bad YAML",
        files: { "f.yaml": "a: [" },
        want: /^validate: \S*f\.yaml, line 1: Flow sequence/,
      },
      {
        name: "a duplicate key",
        files: { "f.yaml": "kind: a\n\nkind: b\n" },
        want: /^validate: \S*f\.yaml, line 3: the key "kind" comes twice\n$/,
      },
      {
        name: "bytes that are no text",
        files: { "f.yaml": Uint8Array.of(0xff) },
        want: /f\.yaml: expected UTF-8 text\n$/,
      },
      {
        name: "a pipeline that is no list",
        files: {
          "f.yaml": JSON.stringify({
            ...compositionOf([]),
            spec: { pipeline: {} },
          }),
        },
        want: /line 1: spec\.pipeline: expected a list, got an object\n$/,
      },
      {
        name: "a step that is no object",
        files: {
          "f.yaml": JSON.stringify({
            kind: "List",
            items: [{ ...compositionOf([]), spec: { pipeline: ["a"] } }],
          }),
        },
        want: /line 1: items\[0\]\.spec\.pipeline\[0\]: expected an object, got text\n$/,
      },
      {
        name: "no documents",
        files: { "f.yaml": "---\n" },
        want: "validate: nothing to judge: found no pipeline step with an Input of wasm.fn.crossplane.io, and no Input\n",
      },
      {
        name: "documents of others",
        files: {
          "f.yaml":
            'kind: ConfigMap\n---\napiVersion: v1\nkind: "Sec\\u001bret"\n---\n- text\n---\n{}\n---\nkind: ConfigMap',
        },
        want: "and no Input; passed over: documents of ConfigMap: 2, documents of v1 Sec\\u001bret: 1, documents without apiVersion and kind: 2\n",
      },
      {
        name: "steps of a misspelt group",
        files: {
          "f.yaml": JSON.stringify(
            compositionOf([
              step({ ...pathInput, apiVersion: "wasm.fn.crosplane.io/v1" }),
              step({ ...pathInput, apiVersion: "wasm.fn.crosplane.io/v1" }),
              step(null),
            ]),
          ),
        },
        want: "and no Input; passed over: steps with an input of wasm.fn.crosplane.io/v1 Input: 2, steps without an input that says what it is: 1; --function-name judges the steps that call a function, whatever their input is\n",
      },
      {
        name: "Compositions without steps",
        files: {
          "f.yaml": ["Pipelin\u001b", 1, null]
            .map((mode) =>
              JSON.stringify({
                ...compositionOf([]),
                spec: {
                  mode,
                  pipeline: mode === null ? [] : [step(pathInput)],
                },
              }),
            )
            .join("\n"),
        },
        want: 'and no Input; passed over: Compositions of mode "Pipelin\\u001b": 1, Compositions of mode 1: 1, Compositions without pipeline steps: 1\n',
      },
      {
        name: "steps that call nothing",
        files: {
          "f.yaml": JSON.stringify(compositionOf([{ functionRef: {} }])),
        },
        flags: ["--function-name=mine"],
        want: "; passed over: steps that call no function: 1\n",
      },
      {
        name: "many kinds of documents",
        files: {
          "f.yaml": Array.from({ length: 13 }, (_, i) => `kind: K${i}\n`).join(
            "---\n",
          ),
        },
        want: "documents of K9: 1, and 3 other kinds\n",
      },
      {
        name: "no step of the function",
        files: { "f.yaml": JSON.stringify(compositionOf([step(pathInput)])) },
        flags: ["--function-name=mine\u001b"],
        want: 'validate: nothing to judge: found no pipeline step that calls the function "mine\\u001b" of --function-name, and no Input; passed over: steps that call "function-wasm": 1\n',
      },
      {
        name: "an input that is no object",
        files: { "f.yaml": JSON.stringify(compositionOf([step("text")])) },
        flags: ["--function-name=function-wasm"],
        want: "spec.pipeline[0].input: expected an object, got text\n",
      },
      {
        name: "a flag that does not parse",
        files: { "f.yaml": "" },
        flags: ["--module-timeout=soon"],
        want: 'validate: --module-timeout: expected a duration such as 30s, more than 0 and at most 24h, got "soon"\n',
      },
      {
        name: "a variable that does not parse",
        files: { "f.yaml": "" },
        env: { MODULE_MEMORY_LIMIT: "much" },
        want: "validate: --module-memory-limit (MODULE_MEMORY_LIMIT): expected MB",
      },
      {
        name: "an operator policy that is not there",
        files: { "f.yaml": JSON.stringify(pathInput) },
        flags: ["--sandbox-policy-file=/nowhere/p.cedar"],
        want: "validate: cannot read the operator policy (--sandbox-policy-file) /nowhere/p.cedar: ENOENT",
      },
    ])("is for $name", async ({ files, flags = [], env = {}, want }) => {
      const place = await filesOf(files);

      const outcome = await validate([join(place, "f.yaml"), dir, ...flags], {
        env,
      });

      expect(outcome).toMatchObject({ code: 2, stdout: "" });
      if (typeof want === "string") expect(outcome.stderr).toContain(want);
      else expect(outcome.stderr).toMatch(want);
      expect(outcome.stderr).toMatch(/^validate: [^\p{C}]+\n$/u);
    });

    it("is for an operator policy that does not compile, in the server's words", async () => {
      const place = await filesOf({ "p.cedar": "permit(" });

      const outcome = await validateFile(
        [pathInput],
        [dir, `--sandbox-policy-file=${join(place, "p.cedar")}`],
      );

      expect(outcome).toMatchObject({ code: 2, stdout: "" });
      expect(outcome.stderr).toMatch(
        /^validate: cannot compile the operator policy \(--sandbox-policy-file\) \S*p\.cedar: [^\n]+\n$/,
      );
    });

    it("is for a policy engine that does not start", async () => {
      const input = ociInput({ ref: pinned }, { compositionPolicy: fence });
      const compile = () =>
        Promise.reject(new AdmissionError("policy-unavailable", "no thread"));

      expect(
        await validateFile([input], [], { policies: { compile } }),
      ).toEqual({
        code: 2,
        stdout: "",
        stderr: "validate: f.yaml: Input document[0]: no thread\n",
      });
    });

    it("is for one bad file of several, which hides nothing about the others", async () => {
      const place = await filesOf({
        "a.yaml": "a: [",
        "b.yaml": JSON.stringify(inputOf({})),
      });

      const { code, stdout, stderr } = await validate([place, "gone", dir]);

      expect(code).toBe(2);
      expect(stdout).toContain(
        "refused [input-invalid]: module is required\n0 admitted, 1 refused, 0 warnings\n",
      );
      expect(stderr.split("\n")).toEqual([
        expect.stringContaining("a.yaml, line 1") as string,
        expect.stringContaining('cannot read "gone"') as string,
        "",
      ]);
    });

    it.each([
      {
        name: "is not there",
        at: "gone",
        want: /^validate: --module-dir: ENOENT[^\n]*\n$/,
      },
      {
        name: "is none",
        at: "f.yaml",
        want: /^validate: --module-dir: expected a directory, got \S*f\.yaml\n$/,
      },
    ])(
      "is for a --module-dir that $name, if modules are looked at",
      async ({ at, want }) => {
        const place = await filesOf({ "f.yaml": JSON.stringify(pathInput) });
        const argv = [join(place, "f.yaml"), `--module-dir=${join(place, at)}`];

        const resolved = await validate([...argv, "--resolve"]);
        const judged = await validate(argv);

        expect(resolved).toMatchObject({ code: 2, stdout: "" });
        expect(resolved.stderr).toMatch(want);
        expect(judged).toMatchObject({ code: 0, stderr: "" });
      },
    );

    it("is for a MODULE_DIR that is not there, and names the variable", async () => {
      const { code, stderr } = await validateFile([pathInput], ["--resolve"], {
        env: { MODULE_DIR: "/nowhere" },
      });

      expect({ code, stderr }).toEqual({
        code: 2,
        stderr:
          "validate: --module-dir (MODULE_DIR): ENOENT: no such file or directory, stat '/nowhere'\n",
      });
    });

    it("is for the standard input given twice", async () => {
      expect(await validate(["-", "-"])).toEqual({
        code: 2,
        stdout: "",
        stderr: "validate: the standard input (-) can be read once only\n",
      });
    });

    it.each([
      { name: "an output that there is not", argv: ["f.yaml", "--output=xml"] },
      { name: "a flag that only serve has", argv: ["f.yaml", "--address=:1"] },
      { name: "no file", argv: [] },
    ])("is left to the program for $name", async ({ argv }) => {
      const { code } = await validate(argv);

      expect(code).toBeInstanceOf(CommanderError);
    });
  });

  describe("flags", () => {
    it.each([
      {
        name: "a flag before its variable",
        flags: ["--module-timeout=20s"],
        env: { MODULE_TIMEOUT: "5s" },
      },
      {
        name: "a variable before the default",
        flags: [],
        env: { MODULE_TIMEOUT: "20s" },
      },
    ])("takes $name", async ({ flags, env }) => {
      const input = (timeout: string) =>
        ociInput({ ref: pinned }, { limits: { timeout } });

      const { stdout } = await validateFile(
        [input("20s"), input("21s")],
        flags,
        { env },
      );

      expect(stdout).toContain("limits timeout 20s");
      expect(stdout).toContain(
        "refused [limit-exceeded]: limits.timeout 21s exceeds the runtime's --module-timeout of 20s",
      );
    });

    it("takes no notice of variables that are for serve alone", async () => {
      const env = { DEBUG: "express:*", ADDRESS: "here", TTL: "for ever" };

      expect(await validateFile([pathInput], [dir], { env })).toMatchObject({
        code: 0,
        stderr: "",
      });
    });

    it("admits a tag alone with --allow-unpinned-tags", async () => {
      const input = ociInput({ ref: "ghcr.io/example/greeter:1" });

      expect((await validateFile([input], [])).code).toBe(1);
      expect(
        (await validateFile([input], ["--allow-unpinned-tags"])).code,
      ).toBe(0);
    });

    it.each([
      { argv: ["--allow-unpinned-tags=true"], code: 0 },
      { argv: ["--allow-unpinned-tags=false"], code: 1 },
      { argv: ["--allow-unpinned-tags", "--no-allow-unpinned-tags"], code: 1 },
    ])("reads the switch of $argv", async ({ argv, code }) => {
      const input = ociInput({ ref: "ghcr.io/example/greeter:1" });
      const env = { ALLOW_UNPINNED_TAGS: String(code === 1) };

      expect((await validateFile([input], argv, { env })).code).toBe(code);
    });

    it("takes the file after a switch for a file", async () => {
      const input = ociInput({ ref: "ghcr.io/example/greeter:1" });
      const place = await filesOf({ true: JSON.stringify(input) });

      const outcome = await validate([
        "--allow-unpinned-tags",
        join(place, "true"),
      ]);

      expect(outcome).toMatchObject({ code: 0, stderr: "" });
    });

    it("refuses a switch that is neither on nor off", async () => {
      const outcome = await validateFile([], ["--allow-unpinned-tags=maybe"]);

      expect(outcome.code).toMatchObject({
        code: "flag-invalid",
        message: `--allow-unpinned-tags: expected true or false, got "maybe"`,
      });
    });
  });
});
