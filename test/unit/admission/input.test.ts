import { describe, expect, it } from "vitest";
import {
  AdmissionError,
  type AdmissionErrorCode,
} from "../../../src/admission/error.js";
import {
  admitInput,
  type AdmittedInput,
  type InputCeilings,
} from "../../../src/admission/input.js";
import type { JsonObject, JsonValue } from "../../../src/admission/json.js";
import { sourceParsers } from "../../support/source-parsers.js";

const CEILINGS: InputCeilings = {
  timeoutMs: 30_000,
  timeoutText: "30s",
  memoryBytes: 512 * 1024 * 1024,
  memoryText: "512Mi",
  moduleDirSet: true,
  allowUnpinnedTags: false,
};
const PATH_MODULE = { type: "Path", path: "greeter.wasm" };
const DIGEST = `sha256:${"0123456789abcdef".repeat(4)}` as const;
const OTHER_DIGEST = `sha256:${"f".repeat(64)}`;
const PINNED = `ghcr.io/example/greeter:v1@${DIGEST}`;
const URL = "https://example.com/a.wasm";
const POLICY = "permit (principal, action, resource);";

describe("admission/input", () => {
  it("admits the smallest Input with the operator's ceilings", () => {
    expect(admit(input({ module: PATH_MODULE }))).toEqual({
      apiVersion: "wasm.fn.crossplane.io/v1",
      deprecated: false,
      module: {
        kind: "static",
        source: { type: "Path", path: "greeter.wasm", manifestPath: null },
      },
      compositionPolicy: null,
      limits: { timeoutMs: 30_000, memoryBytes: 536870912, concurrency: null },
    });
  });

  it("admits every field but those of other sources", () => {
    const full = input({
      metadata: { name: "greeter", annotations: { a: "b" } },
      module: { ...PATH_MODULE, manifestPath: "wasmfn.yaml" },
      compositionPolicy: POLICY,
      limits: { timeout: "1.5s", memory: "128Mi", concurrency: 3 },
      config: { anything: [1, null, { goes: true }] },
    });

    expect(admit(full)).toMatchObject({
      module: {
        source: {
          type: "Path",
          path: "greeter.wasm",
          manifestPath: "wasmfn.yaml",
        },
      },
      compositionPolicy: POLICY,
      limits: { timeoutMs: 1500, memoryBytes: 134217728, concurrency: 3 },
    });
  });

  it("admits v1beta1 and says that it is deprecated", () => {
    const old = input({
      apiVersion: "wasm.fn.crossplane.io/v1beta1",
      module: PATH_MODULE,
    });

    expect(admit(old)).toMatchObject({
      apiVersion: "wasm.fn.crossplane.io/v1beta1",
      deprecated: true,
    });
  });

  describe("admits as the module, without --module-dir,", () => {
    const GREETER = {
      registry: "ghcr.io",
      repository: "example/greeter",
      location: "ghcr.io/example/greeter",
    };

    it.each([
      {
        name: "a pinned reference",
        module: oci({ ref: PINNED }),
        want: {
          type: "OCI",
          ref: { ...GREETER, tag: "v1", digest: DIGEST, text: PINNED },
          expectedDigest: null,
          credentials: null,
        },
      },
      {
        name: "a reference written in another way",
        module: oci({ ref: `GHCR.io.:443/example/greeter@${DIGEST}` }),
        want: {
          type: "OCI",
          ref: {
            ...GREETER,
            tag: null,
            digest: DIGEST,
            text: `ghcr.io/example/greeter@${DIGEST}`,
          },
          expectedDigest: null,
          credentials: null,
        },
      },
      {
        name: "a pinned reference that is expected to be itself",
        module: oci({ ref: PINNED, expectedDigest: DIGEST }),
        want: {
          type: "OCI",
          ref: { ...GREETER, tag: "v1", digest: DIGEST, text: PINNED },
          expectedDigest: DIGEST,
          credentials: null,
        },
      },
      {
        name: "a tag held to a digest, with credentials",
        module: oci({
          ref: "ghcr.io/example/greeter:v1",
          expectedDigest: DIGEST,
          credentials: "My_Registry.pull-1",
        }),
        want: {
          type: "OCI",
          ref: {
            ...GREETER,
            tag: "v1",
            digest: null,
            text: "ghcr.io/example/greeter:v1",
          },
          expectedDigest: DIGEST,
          credentials: "My_Registry.pull-1",
        },
      },
      {
        name: "a URL",
        module: http({ url: "https://EXAMPLE.com/x/../a.wasm?sig=hunter2" }),
        want: {
          type: "HTTP",
          url: { href: `${URL}?sig=hunter2`, location: URL },
          digest: DIGEST,
          manifest: null,
        },
      },
      {
        name: "a URL with a manifest beside it",
        module: http({
          manifestURL: "https://example.com/wasmfn.yaml",
          manifestDigest: OTHER_DIGEST,
        }),
        want: {
          type: "HTTP",
          url: { href: URL, location: URL },
          digest: DIGEST,
          manifest: {
            url: {
              href: "https://example.com/wasmfn.yaml",
              location: "https://example.com/wasmfn.yaml",
            },
            digest: OTHER_DIGEST,
          },
        },
      },
    ])("$name", ({ module, want }) => {
      const ceilings = { ...CEILINGS, moduleDirSet: false };

      expect(admit(input({ module }), ceilings).module).toEqual({
        kind: "static",
        source: want,
      });
    });
  });

  describe("admits as the XR's choice", () => {
    it.each([
      {
        name: "an OCI module",
        module: { type: "OCI", from: "status.module" },
        want: { type: "OCI", path: ["status", "module"] },
      },
      {
        name: "an HTTP module that may be unset",
        module: { type: "HTTP", from: 'spec["a.b"].c[0]', allowEmpty: true },
        want: {
          type: "HTTP",
          path: ["spec", "a.b", "c", 0],
          pathText: 'spec["a.b"].c[0]',
          allowEmpty: true,
        },
      },
      {
        name: "a Path module with the Input's manifest",
        module: {
          type: "Path",
          from: "status.module",
          manifestPath: "wasmfn.yaml",
        },
        want: {
          type: "Path",
          path: ["status", "module"],
          manifestPath: "wasmfn.yaml",
        },
      },
    ])("$name", ({ module, want }) => {
      const admitted = admit(input({ module, compositionPolicy: POLICY }));

      expect(admitted.module).toEqual({
        kind: "from",
        pathText: "status.module",
        allowEmpty: false,
        manifestPath: null,
        ...want,
      });
    });

    it("a Path module without a compositionPolicy", () => {
      const module = { type: "Path", from: "status.module" };

      expect(admit(input({ module }))).toMatchObject({
        module: { kind: "from" },
        compositionPolicy: null,
      });
    });
  });

  it("admits a bare tag with --allow-unpinned-tags", () => {
    const ceilings = { ...CEILINGS, allowUnpinnedTags: true };
    const module = oci({ ref: "ghcr.io/example/greeter:v1" });

    expect(admit(input({ module }), ceilings).module).toMatchObject({
      source: { ref: { tag: "v1", digest: null }, expectedDigest: null },
    });
  });

  it("admits an allowEmpty of false, which changes nothing", () => {
    const module = { ...PATH_MODULE, allowEmpty: false };

    expect(admit(input({ module }))).toEqual(
      admit(input({ module: PATH_MODULE })),
    );
  });

  it("admits a compositionPolicy of a mebibyte", () => {
    const compositionPolicy = "é".repeat(512 * 1024);

    expect(
      admit(input({ module: PATH_MODULE, compositionPolicy })),
    ).toMatchObject({ compositionPolicy });
  });

  describe("takes null for absent (C58)", () => {
    it.each([
      { name: "limits", fields: { limits: null } },
      {
        name: "each limit",
        fields: { limits: { timeout: null, memory: null, concurrency: null } },
      },
      { name: "config and metadata", fields: { config: null, metadata: null } },
      { name: "a null inside config", fields: { config: { a: null } } },
      {
        name: "other sources",
        fields: { module: { ...PATH_MODULE, oci: null, http: null } },
      },
      {
        name: "all that may be left out",
        fields: {
          compositionPolicy: null,
          module: {
            ...PATH_MODULE,
            from: null,
            allowEmpty: null,
            manifestPath: null,
          },
        },
      },
    ] satisfies { name: string; fields: JsonObject }[])(
      "$name",
      ({ fields }) => {
        const admitted = admit(input({ module: PATH_MODULE, ...fields }));

        expect(admitted).toEqual(admit(input({ module: PATH_MODULE })));
      },
    );

    it.each([
      {
        name: "of oci",
        module: oci({ expectedDigest: null, credentials: null }),
        same: oci({}),
      },
      {
        name: "of http",
        module: http({ manifestURL: null, manifestDigest: null }),
        same: http({}),
      },
      {
        name: "of an XR's choice",
        module: {
          type: "Path",
          from: "status.module",
          path: null,
          allowEmpty: null,
        },
        same: { type: "Path", from: "status.module" },
      },
    ])("what may be left out $name", ({ module, same }) => {
      expect(admit(input({ module }))).toEqual(admit(input({ module: same })));
    });
  });

  describe("limits.memory", () => {
    it.each([
      { memory: "128Mi", want: 134217728 },
      { memory: "0.5Gi", want: 536870912 },
      { memory: "512Mi", want: 536870912, reason: "the ceiling itself" },
      { memory: "1e3", want: 1000 },
      { memory: "1E3", want: 1000 },
      { memory: "500M", want: 500_000_000 },
      { memory: ".5Gi", want: 536870912 },
      { memory: "5.", want: 5 },
      { memory: "100m", want: 1 },
      { memory: 134217728, want: 134217728 },
      { memory: 1, want: 1 },
    ])("reads $memory", ({ memory, want }) => {
      expect(limitsOf({ memory }).memoryBytes).toBe(want);
    });

    it.each([
      [
        "1Gi",
        "limits.memory 1Gi exceeds the runtime's --module-memory-limit of 512Mi",
      ],
      [
        "+1Gi",
        "limits.memory +1Gi exceeds the runtime's --module-memory-limit of 512Mi",
      ],
      [
        "1E",
        "limits.memory 1E exceeds the runtime's --module-memory-limit of 512Mi",
      ],
      [
        "536870912.1",
        "limits.memory 536870912.1 exceeds the runtime's --module-memory-limit of 512Mi",
      ],
      [
        536870913,
        "limits.memory 536870913 exceeds the runtime's --module-memory-limit of 512Mi",
      ],
      [
        1e300,
        "limits.memory 1e+300 exceeds the runtime's --module-memory-limit of 512Mi",
      ],
    ])("refuses %j as above the ceiling", (memory, want) => {
      expect(
        refusal(input({ module: PATH_MODULE, limits: { memory } })),
      ).toEqual({
        code: "limit-exceeded",
        message: want,
      });
    });

    it.each([
      [
        "128mi",
        'limits.memory: "128mi" is not a Kubernetes quantity such as 128Mi: unknown suffix "mi", ',
      ],
      [
        "128MiB",
        'limits.memory: "128MiB" is not a Kubernetes quantity such as 128Mi: unknown suffix "MiB", ',
      ],
      [
        " 128Mi",
        'limits.memory: " 128Mi" is not a Kubernetes quantity such as 128Mi: expected digits first',
      ],
      [
        "1 Gi",
        'limits.memory: "1 Gi" is not a Kubernetes quantity such as 128Mi: unknown suffix " Gi", ',
      ],
      [
        "",
        'limits.memory: "" is not a Kubernetes quantity such as 128Mi: expected digits first',
      ],
      ["0", 'limits.memory: expected more than 0, got "0"'],
      ["-1Mi", 'limits.memory: expected more than 0, got "-1Mi"'],
      [0, "limits.memory: expected more than 0, got 0"],
      [-1, "limits.memory: expected more than 0, got -1"],
      [
        1.5,
        'limits.memory: expected a Kubernetes quantity such as "128Mi" or a whole number of bytes, got 1.5',
      ],
      [
        true,
        'limits.memory: expected a Kubernetes quantity such as "128Mi" or a whole number of bytes, got true',
      ],
      [
        NaN,
        'limits.memory: expected a Kubernetes quantity such as "128Mi" or a whole number of bytes, got NaN',
      ],
      [
        Infinity,
        'limits.memory: expected a Kubernetes quantity such as "128Mi" or a whole number of bytes, got Infinity',
      ],
      [
        ["1Mi"],
        'limits.memory: expected a Kubernetes quantity such as "128Mi" or a whole number of bytes, got a list',
      ],
      [
        {},
        'limits.memory: expected a Kubernetes quantity such as "128Mi" or a whole number of bytes, got an object',
      ],
    ] satisfies [JsonValue, string][])("refuses %j", (memory, want) => {
      const { code, message } = refusal(
        input({ module: PATH_MODULE, limits: { memory } }),
      );

      expect(code).toBe("input-invalid");
      expect(message.startsWith(want)).toBe(true);
    });
  });

  describe("limits.timeout", () => {
    it.each([
      { timeout: "5s", want: 5000 },
      { timeout: "1.5s", want: 1500 },
      { timeout: "30s", want: 30_000, reason: "the ceiling itself" },
      { timeout: "1s1s", want: 2000 },
      { timeout: "1us", want: 1, reason: "rounded up, never to none" },
      { timeout: "1\u00b5s", want: 1 },
      { timeout: "1\u03bcs", want: 1 },
      { timeout: "1000001ns", want: 2 },
    ])("reads $timeout", ({ timeout, want }) => {
      expect(limitsOf({ timeout }).timeoutMs).toBe(want);
    });

    it("reads 1h30m under a higher ceiling", () => {
      const ceilings = { ...CEILINGS, timeoutMs: 7_200_000, timeoutText: "2h" };
      const admitted = admit(
        input({ module: PATH_MODULE, limits: { timeout: "1h30m" } }),
        ceilings,
      );

      expect(admitted.limits.timeoutMs).toBe(5_400_000);
    });

    it.each([
      [
        "1h30m",
        "limits.timeout 1h30m exceeds the runtime's --module-timeout of 30s",
      ],
      [
        "30s1ns",
        "limits.timeout 30s1ns exceeds the runtime's --module-timeout of 30s",
      ],
      [
        "9223372036s",
        "limits.timeout 9223372036s exceeds the runtime's --module-timeout of 30s",
      ],
    ])("refuses %j as above the ceiling", (timeout, want) => {
      expect(
        refusal(input({ module: PATH_MODULE, limits: { timeout } })),
      ).toEqual({
        code: "limit-exceeded",
        message: want,
      });
    });

    it.each([
      [
        "1d",
        'limits.timeout: "1d" is not a Go duration such as 5s: unknown unit "d", expected ns, us, ms, s, m or h',
      ],
      [
        "5",
        'limits.timeout: "5" is not a Go duration such as 5s: missing unit, expected ns, us, ms, s, m or h',
      ],
      ["0", 'limits.timeout: expected more than 0, got "0"'],
      ["-5s", 'limits.timeout: expected more than 0, got "-5s"'],
      [
        "9223372037s",
        'limits.timeout: "9223372037s" is not a Go duration such as 5s: longer than the 292 years a duration can hold',
      ],
      [5, 'limits.timeout: expected a Go duration such as "5s", got 5'],
      [false, 'limits.timeout: expected a Go duration such as "5s", got false'],
    ] satisfies [JsonValue, string][])("refuses %j", (timeout, want) => {
      expect(
        refusal(input({ module: PATH_MODULE, limits: { timeout } })),
      ).toEqual({
        code: "input-invalid",
        message: want,
      });
    });
  });

  it.each([
    { concurrency: 0, got: "0" },
    { concurrency: -1, got: "-1" },
    { concurrency: 1.5, got: "1.5" },
    { concurrency: NaN, got: "NaN" },
    { concurrency: Infinity, got: "more" },
    { concurrency: 2 ** 53, got: "more" },
    // As a double it is another number, which is in nobody's Input.
    { concurrency: JSON.parse("9007199254740993") as number, got: "more" },
    { concurrency: true, got: "true" },
    { concurrency: {}, got: "an object" },
    { concurrency: "3", got: '"3"' },
  ] satisfies { concurrency: JsonValue; got: string }[])(
    "refuses limits.concurrency $concurrency",
    ({ concurrency, got }) => {
      expect(
        refusal(input({ module: PATH_MODULE, limits: { concurrency } })),
      ).toEqual({
        code: "input-invalid",
        message: `limits.concurrency: expected a whole number from 1 to 9007199254740991, got ${got}`,
      });
    },
  );

  describe("repeats no URL, which may hold a password or a signature:", () => {
    const SECRET = "https://u:hunter2@h/x?sig=hunter2";

    it.each([
      { name: "as module", module: SECRET },
      { name: "as module.type", module: { type: SECRET } },
      { name: "as module.oci", module: { type: "OCI", oci: SECRET } },
      { name: "as module.oci.ref", module: oci({ ref: SECRET }) },
      { name: "as credentials", module: oci({ credentials: SECRET }) },
      {
        name: "as user and password",
        module: oci({ credentials: "u:hunter2" }),
      },
      { name: "as module.http", module: { type: "HTTP", http: SECRET } },
      { name: "as module.http.url", module: http({ url: SECRET }) },
      { name: "as module.http.digest", module: http({ digest: SECRET }) },
      { name: "as module.from", module: { type: "HTTP", from: SECRET } },
      {
        name: "as module.allowEmpty",
        module: { type: "Path", from: "spec.a", allowEmpty: SECRET },
      },
      { name: "as a field of module", module: { type: "OCI", [SECRET]: 1 } },
      { name: "as a field of module.http", module: http({ [SECRET]: 1 }) },
    ] satisfies { name: string; module: JsonValue }[])(
      "$name",
      ({ module }) => {
        const { message } = refusal(
          input({ module, compositionPolicy: POLICY }),
        );

        expect(message).toMatch(/^[^\n]{1,250}$/);
        expect(message).not.toMatch(/u:|hunter2|sig/);
      },
    );

    it("but shows a text of the wrong type elsewhere", () => {
      expect(
        refusal(input({ module: PATH_MODULE, limits: SECRET })).message,
      ).toContain(SECRET);
    });
  });

  describe("refuses", () => {
    it.each([
      {
        name: "an empty object",
        object: {},
        code: "input-version",
        want: "apiVersion: expected wasm.fn.crossplane.io/v1 or wasm.fn.crossplane.io/v1beta1, got none",
      },
      {
        name: "another apiVersion",
        object: input({ apiVersion: "wasm.fn.crossplane.io/v2" }),
        code: "input-version",
        want: 'apiVersion: expected wasm.fn.crossplane.io/v1 or wasm.fn.crossplane.io/v1beta1, got "wasm.fn.crossplane.io/v2"',
      },
      {
        name: "another kind",
        object: input({ kind: "Inputs" }),
        code: "input-version",
        want: 'kind: expected Input, got "Inputs"',
      },
      {
        name: "a kind of null",
        object: input({ kind: null }),
        code: "input-version",
        want: "kind: expected Input, got none",
      },
      {
        name: "no module",
        object: input({}),
        code: "input-invalid",
        want: "module is required",
      },
      {
        name: "a module that is text",
        object: input({ module: "greeter.wasm" }),
        code: "input-invalid",
        want: "module: expected an object, got a string",
      },
      {
        name: "limits that are a list",
        object: input({ module: PATH_MODULE, limits: [] }),
        code: "input-invalid",
        want: "limits: expected an object, got a list",
      },
      {
        name: "config that is text",
        object: input({ module: PATH_MODULE, config: "a: 1" }),
        code: "input-invalid",
        want: 'config: expected an object, got "a: 1"',
      },
      {
        name: "metadata that is a number",
        object: input({ module: PATH_MODULE, metadata: 7 }),
        code: "input-invalid",
        want: "metadata: expected an object, got 7",
      },
      {
        name: "a misspelt fence",
        object: input({ module: PATH_MODULE, compositonPolicy: "permit(…)" }),
        code: "field-unknown",
        want: "unknown field compositonPolicy, did you mean compositionPolicy",
      },
      {
        name: "an unknown field that is null",
        object: input({ module: PATH_MODULE, compositonPolicy: null }),
        code: "field-unknown",
        want: "unknown field compositonPolicy, did you mean compositionPolicy",
      },
      {
        name: "a misspelt limit",
        object: input({ module: PATH_MODULE, limits: { timout: "5s" } }),
        code: "field-unknown",
        want: "unknown field limits.timout, did you mean limits.timeout",
      },
      {
        name: "a field in the wrong case",
        object: input({ module: { ...PATH_MODULE, Path: "b.wasm" } }),
        code: "field-unknown",
        want: "unknown field module.Path, did you mean module.path",
      },
      {
        name: "an unknown field with no near one",
        object: input({
          module: { type: "OCI", oci: { ref: "a", insecure: true } },
        }),
        code: "field-unknown",
        want: "unknown field module.oci.insecure, expected one of ref, expectedDigest, credentials",
      },
      {
        name: "an unknown field of http",
        object: input({
          module: { type: "HTTP", http: { URL: "a", digest: DIGEST } },
        }),
        code: "field-unknown",
        want: "unknown field module.http.URL, did you mean module.http.url",
      },
      {
        name: "an inherited-looking name",
        object: JSON.parse(
          '{"apiVersion":"wasm.fn.crossplane.io/v1","kind":"Input","__proto__":{"module":{}}}',
        ) as JsonObject,
        code: "field-unknown",
        want: "unknown field __proto__, expected one of apiVersion, kind, metadata, module, compositionPolicy, limits, config",
      },
      {
        name: "an unknown field with a hostile name",
        object: input({ module: { ...PATH_MODULE, "a\n\u202eb": 1 } }),
        code: "field-unknown",
        want: "unknown field in module (what it is called is no name), expected one of type, oci, http, path, from, allowEmpty, manifestPath",
      },
      {
        name: "an unknown field of the Input with a blank in its name",
        object: input({ module: PATH_MODULE, "limits ": {} }),
        code: "field-unknown",
        want: "unknown field (what it is called is no name), did you mean limits",
      },
      {
        name: "an unknown field whose name is too long for one",
        object: input({ module: PATH_MODULE, ["a".repeat(65)]: {} }),
        code: "field-unknown",
        want: "unknown field (what it is called is no name), expected one of apiVersion, kind, metadata, module, compositionPolicy, limits, config",
      },
      {
        name: "an unknown field with the longest name",
        object: input({ module: PATH_MODULE, ["a".repeat(64)]: {} }),
        code: "field-unknown",
        want: `unknown field ${"a".repeat(64)}, expected one of apiVersion, kind, metadata, module, compositionPolicy, limits, config`,
      },
      {
        name: "the removed policy, set to null",
        object: input({ module: PATH_MODULE, policy: null }),
        code: "field-removed",
        want: "the Input's policy field was removed: write the fence as compositionPolicy",
      },
      {
        name: "the removed policy",
        object: input({ module: PATH_MODULE, policy: "permit(…)" }),
        code: "field-removed",
        want: "the Input's policy field was removed: write the fence as compositionPolicy",
      },
      {
        name: "the removed sandbox",
        object: input({ module: PATH_MODULE, sandbox: {} }),
        code: "field-removed",
        want: "the Input's sandbox field was removed: a module asks for capabilities in its manifest's requires",
      },
      {
        name: "allowEmpty without from",
        object: input({ module: { ...PATH_MODULE, allowEmpty: true } }),
        code: "input-invalid",
        want: "module.allowEmpty is set but module.from is not",
      },
      {
        name: "no type",
        object: input({ module: { path: "a.wasm" } }),
        code: "input-invalid",
        want: "module.type is required, expected OCI, HTTP or Path",
      },
      {
        name: "a type in the wrong case",
        object: input({ module: { type: "path", path: "a.wasm" } }),
        code: "input-invalid",
        want: 'module.type: expected OCI, HTTP or Path, got "path"',
      },
      {
        name: "a type that is a URL",
        object: input({ module: { type: "https://u:hunter2@h/x" } }),
        code: "input-invalid",
        want: "module.type: expected OCI, HTTP or Path, got a string",
      },
      {
        name: "a type that is a number",
        object: input({ module: { type: 1 } }),
        code: "input-invalid",
        want: "module.type: expected OCI, HTTP or Path, got 1",
      },
      {
        name: "a type that every object inherits",
        object: input({ module: { type: "constructor", path: "a.wasm" } }),
        code: "input-invalid",
        want: 'module.type: expected OCI, HTTP or Path, got "constructor"',
      },
      {
        name: "a type without its source",
        object: input({ module: { type: "Path" } }),
        code: "input-invalid",
        want: "module.path or module.from is required with module.type Path",
      },
      {
        name: "a source of another type",
        object: input({ module: { type: "OCI", path: "a.wasm" } }),
        code: "input-invalid",
        want: "module.path does not go with module.type OCI, expected module.oci or module.from",
      },
      {
        name: "two sources",
        object: input({ module: { ...PATH_MODULE, http: {} } }),
        code: "input-invalid",
        want: "module.http does not go with module.type Path, expected module.path or module.from",
      },
      {
        name: "a path that is an object",
        object: input({ module: { type: "Path", path: {} } }),
        code: "input-invalid",
        want: "module.path: expected a string, got an object",
      },
      {
        name: "an empty path",
        object: input({ module: { type: "Path", path: "" } }),
        code: "input-invalid",
        want: "module.path is empty",
      },
      {
        name: "an endless path",
        object: input({ module: { type: "Path", path: "a".repeat(4097) } }),
        code: "input-invalid",
        want: "module.path is 4097 characters long, expected at most 4096",
      },
      {
        name: "oci without ref",
        object: input({ module: { type: "OCI", oci: {} } }),
        code: "input-invalid",
        want: "module.oci.ref is required",
      },
      {
        name: "oci that is text",
        object: input({ module: { type: "OCI", oci: "ghcr.io/a/b" } }),
        code: "input-invalid",
        want: "module.oci: expected an object, got a string",
      },
      {
        name: "http without digest",
        object: input({
          module: { type: "HTTP", http: { url: "https://example.com" } },
        }),
        code: "input-invalid",
        want: "module.http.digest is required",
      },
      {
        name: "http without url",
        object: input({ module: http({ url: null }) }),
        code: "input-invalid",
        want: "module.http.url is required",
      },
      {
        name: "a digest in upper case",
        object: input({ module: http({ digest: "sha256:AB" }) }),
        code: "input-invalid",
        want: 'module.http.digest: expected sha256: and 64 lower-case hex digits, got "sha256:AB"',
      },
      {
        name: "a digest with a line after it",
        object: input({ module: http({ digest: `${DIGEST}\n` }) }),
        code: "input-invalid",
        want: `module.http.digest: expected sha256: and 64 lower-case hex digits, got "${DIGEST}\\u000a"`,
      },
      {
        name: "a digest of another algorithm",
        object: input({ module: http({ digest: "sha512:ab" }) }),
        code: "input-invalid",
        want: 'module.http.digest: digest algorithm "sha512" is not supported, expected sha256: and 64 lower-case hex digits',
      },
      {
        name: "a URL of another scheme",
        object: input({ module: http({ url: "ftp://example.com/a.wasm" }) }),
        code: "input-invalid",
        want: 'module.http.url: expected a URL with https, got "ftp"',
      },
      {
        name: "a manifestURL alone",
        object: input({ module: http({ manifestURL: URL }) }),
        code: "input-invalid",
        want: "module.http.manifestURL is set but module.http.manifestDigest is not",
      },
      {
        name: "a manifestDigest alone",
        object: input({ module: http({ manifestDigest: DIGEST }) }),
        code: "input-invalid",
        want: "module.http.manifestDigest is set but module.http.manifestURL is not",
      },
      {
        name: "a manifestURL in the clear",
        object: input({
          module: http({
            manifestURL: "http://example.com/wasmfn.yaml",
            manifestDigest: DIGEST,
          }),
        }),
        code: "input-invalid",
        want: 'module.http.manifestURL: http is for localhost, 127.0.0.0/8, [::1] and the hosts in --insecure-registry only, expected https for host "example.com"',
      },
      {
        name: "a manifestDigest that is a tag",
        object: input({
          module: http({ manifestURL: URL, manifestDigest: "v1" }),
        }),
        code: "input-invalid",
        want: 'module.http.manifestDigest: expected sha256: and 64 lower-case hex digits, got "v1"',
      },
      {
        name: "a reference that does not parse",
        object: input({ module: oci({ ref: `a.b/C@${DIGEST}` }) }),
        code: "input-invalid",
        want: 'module.oci.ref: repository component "C": expected lower-case letters and digits with ".", "_", "__" or "-" between them',
      },
      {
        name: "a reference without tag and digest",
        object: input({ module: oci({ ref: "greeter" }) }),
        code: "input-invalid",
        want: 'module.oci.ref: "index.docker.io/library/greeter" has neither tag nor digest, expected registry/repository[:tag]@sha256:<64 hex digits>',
      },
      {
        name: "a bare tag",
        object: input({ module: oci({ ref: "ghcr.io/example/greeter:v1" }) }),
        code: "source-refused",
        want: 'module.oci.ref is refused: "ghcr.io/example/greeter:v1" has a tag and no digest, which needs the runtime\'s --allow-unpinned-tags: set module.oci.expectedDigest, or pin it as registry/repository[:tag]@sha256:<64 hex digits>',
      },
      {
        name: "an expectedDigest that is not the pin",
        object: input({ module: oci({ expectedDigest: OTHER_DIGEST }) }),
        code: "input-invalid",
        want: `module.oci.expectedDigest: expected "${DIGEST}", which module.oci.ref is pinned to, got "${OTHER_DIGEST}"`,
      },
      {
        name: "an expectedDigest of another algorithm",
        object: input({ module: oci({ expectedDigest: "sha512:ab" }) }),
        code: "input-invalid",
        want: 'module.oci.expectedDigest: digest algorithm "sha512" is not supported, expected sha256: and 64 lower-case hex digits',
      },
      {
        name: "an expectedDigest without ref",
        object: input({ module: oci({ ref: null, expectedDigest: DIGEST }) }),
        code: "input-invalid",
        want: "module.oci.ref is required",
      },
      {
        name: "an expectedDigest beside a URL",
        object: input({ module: http({ expectedDigest: DIGEST }) }),
        code: "field-unknown",
        want: "unknown field module.http.expectedDigest, expected one of url, digest, manifestURL, manifestDigest",
      },
      {
        name: "credentials that are an object",
        object: input({ module: oci({ credentials: { name: "registry" } }) }),
        code: "input-invalid",
        want: "module.oci.credentials: expected a string, got an object",
      },
      {
        name: "credentials that are no name",
        object: input({ module: oci({ credentials: "my registry" }) }),
        code: "input-invalid",
        want: 'module.oci.credentials: expected the name of a step credential (letters and digits, with "-", "_" or "." between them, at most 253), got text that is none',
      },
      {
        name: "from beside a source of its type",
        object: input({ module: { ...PATH_MODULE, from: "status.module" } }),
        code: "input-invalid",
        want: "module.path and module.from are both set, expected one of them",
      },
      {
        name: "from beside a source of another type",
        object: input({ module: { ...oci({}), type: "HTTP", from: "spec.a" } }),
        code: "input-invalid",
        want: "module.oci does not go with module.type HTTP, expected module.http or module.from",
      },
      {
        name: "from that is an object",
        object: input({ module: { type: "Path", from: { field: "a" } } }),
        code: "input-invalid",
        want: "module.from: expected a string, got an object",
      },
      {
        name: "from outside spec and status",
        object: input({ module: { type: "Path", from: "metadata.labels.a" } }),
        code: "input-invalid",
        want: 'module.from: expected spec.… or status.…, got "metadata.labels.a"',
      },
      {
        name: "from that is a URL",
        object: input({
          module: { type: "Path", from: "https://u:hunter2@h/x" },
        }),
        code: "input-invalid",
        want: "module.from: expected spec.… or status.…, got a URL",
      },
      {
        name: "allowEmpty that is text",
        object: input({
          module: { type: "Path", from: "spec.a", allowEmpty: "true" },
        }),
        code: "input-invalid",
        want: "module.allowEmpty: expected true or false, got a string",
      },
      {
        name: "manifestPath with OCI",
        object: input({ module: { ...oci({}), manifestPath: "wasmfn.yaml" } }),
        code: "input-invalid",
        want: "module.manifestPath does not go with module.type OCI, expected module.type Path",
      },
      {
        name: "manifestPath with HTTP from the XR",
        object: input({
          module: { type: "HTTP", from: "spec.a", manifestPath: "wasmfn.yaml" },
          compositionPolicy: POLICY,
        }),
        code: "input-invalid",
        want: "module.manifestPath does not go with module.type HTTP, expected module.type Path",
      },
      {
        name: "an empty manifestPath",
        object: input({ module: { ...PATH_MODULE, manifestPath: "" } }),
        code: "input-invalid",
        want: "module.manifestPath is empty",
      },
      {
        name: "a manifestPath of the XR's Path that is a list",
        object: input({
          module: { type: "Path", from: "spec.a", manifestPath: ["a"] },
        }),
        code: "input-invalid",
        want: "module.manifestPath: expected a string, got a list",
      },
      {
        name: "a compositionPolicy that is an object",
        object: input({ module: PATH_MODULE, compositionPolicy: {} }),
        code: "input-invalid",
        want: "compositionPolicy: expected a string, got an object",
      },
      {
        name: "an empty compositionPolicy",
        object: input({ module: PATH_MODULE, compositionPolicy: "" }),
        code: "input-invalid",
        want: "compositionPolicy is empty: write its rules, or leave the field out",
      },
      {
        name: "a blank compositionPolicy beside a Path from the XR",
        object: input({
          module: { type: "Path", from: "spec.a" },
          compositionPolicy: " \n\t",
        }),
        code: "input-invalid",
        want: "compositionPolicy is empty: write its rules, or leave the field out",
      },
      {
        name: "a compositionPolicy above a mebibyte",
        object: input({
          module: PATH_MODULE,
          compositionPolicy: `${"é".repeat(512 * 1024)}x`,
        }),
        code: "input-invalid",
        want: "compositionPolicy has 1048577 bytes, expected at most 1048576",
      },
    ] satisfies {
      name: string;
      object: JsonObject;
      code: AdmissionErrorCode;
      want: string;
    }[])("$name", ({ object, code, want }) => {
      expect(refusal(object)).toEqual({ code, message: want });
    });
  });

  describe("refuses a module the XR chooses without a fence:", () => {
    it.each([
      { name: "none", type: "OCI", from: "status.module", more: {} },
      { name: "none", type: "HTTP", from: "spec.module", more: {} },
      {
        name: "null",
        type: "OCI",
        from: 'spec["a.b"]',
        more: { compositionPolicy: null },
      },
      {
        name: "a blank one",
        type: "HTTP",
        from: "status.module",
        more: { compositionPolicy: " \n" },
      },
      {
        name: "none, though the field may be unset",
        type: "OCI",
        from: "status.module",
        more: { module: { allowEmpty: true } },
      },
    ] satisfies {
      name: string;
      type: string;
      from: string;
      more: JsonObject;
    }[])("$name ($type)", ({ type, from, more }) => {
      const module = { type, from, ...("module" in more ? more.module : {}) };

      expect(refusal(input({ ...more, module }))).toEqual({
        code: "policy-missing",
        message: `cannot resolve module: module.from: ${from} of the composite resource names a ${type} source, but the Input has no compositionPolicy: a module the composite resource chooses must be permitted by the compositionPolicy's pullModule rules, or its author could point the runtime at any host`,
      });
    });
  });

  it.each([
    { field: "path", module: PATH_MODULE },
    {
      field: "path",
      module: { ...PATH_MODULE, manifestPath: "wasmfn.yaml" },
    },
    {
      field: "from",
      module: { type: "Path", from: "spec.module", allowEmpty: true },
    },
  ])("refuses $module without --module-dir", ({ field, module }) => {
    const ceilings = { ...CEILINGS, moduleDirSet: false };

    expect(refusal(input({ module }), ceilings)).toEqual({
      code: "source-refused",
      message: `module.${field} is refused: the runtime has no --module-dir to load modules from`,
    });
  });

  it("reads own properties only", () => {
    const inheriting = Object.create(
      input({ module: PATH_MODULE }),
    ) as JsonObject;

    expect(refusal(inheriting).code).toBe("input-version");
  });

  it("names the same field whatever the order of the fields", () => {
    const forwards = input({ module: PATH_MODULE, aaa: 1, zzz: 2 });
    const backwards = Object.fromEntries(Object.entries(forwards).reverse());

    expect(refusal(backwards)).toEqual(refusal(forwards));
  });

  it("quotes no more of a long value than a message bears", () => {
    const { message } = refusal(
      input({ module: { type: "\0".repeat(100_000), path: "a" } }),
    );

    expect(message.length).toBeLessThan(1000);
    expect(message).not.toContain("\0");
  });
});

function input(fields: JsonObject): JsonObject {
  return { apiVersion: "wasm.fn.crossplane.io/v1", kind: "Input", ...fields };
}

function oci(more: JsonObject): JsonObject {
  return { type: "OCI", oci: { ref: PINNED, ...more } };
}

function http(more: JsonObject): JsonObject {
  return { type: "HTTP", http: { url: URL, digest: DIGEST, ...more } };
}

function admit(object: JsonObject, ceilings = CEILINGS): AdmittedInput {
  return admitInput(object, ceilings, sourceParsers);
}

function limitsOf(limits: JsonObject) {
  return admit(input({ module: PATH_MODULE, limits })).limits;
}

/** What admission says no with; fails when it says yes or breaks. */
function refusal(
  object: JsonObject,
  ceilings = CEILINGS,
): { code: string; message: string } {
  try {
    admit(object, ceilings);
  } catch (error) {
    if (error instanceof AdmissionError)
      return { code: error.code, message: error.message };
    throw error;
  }
  throw new Error("admitted");
}
