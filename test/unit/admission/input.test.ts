import { describe, expect, it } from "vitest";
import {
  AdmissionError,
  type AdmissionErrorCode,
  admitInput,
  type InputCeilings,
  type JsonObject,
  type JsonValue,
} from "../../../src/admission/index.js";

const CEILINGS: InputCeilings = {
  timeoutMs: 30_000,
  timeoutText: "30s",
  memoryBytes: 512 * 1024 * 1024,
  memoryText: "512Mi",
  moduleDirSet: true,
};
const PATH_MODULE = { type: "Path", path: "greeter.wasm" };
const DIGEST = `sha256:${"0123456789abcdef".repeat(4)}`;

describe("admission/input", () => {
  it("admits the smallest Input with the operator's ceilings", () => {
    expect(admitInput(input({ module: PATH_MODULE }), CEILINGS)).toEqual({
      apiVersion: "wasm.fn.crossplane.io/v1",
      deprecated: false,
      source: { type: "Path", path: "greeter.wasm" },
      limits: { timeoutMs: 30_000, memoryBytes: 536870912, concurrency: null },
    });
  });

  it("admits every supported field", () => {
    const full = input({
      metadata: { name: "greeter", annotations: { a: "b" } },
      module: PATH_MODULE,
      limits: { timeout: "1.5s", memory: "128Mi", concurrency: 3 },
      config: { anything: [1, null, { goes: true }] },
    });

    expect(admitInput(full, CEILINGS)).toMatchObject({
      limits: { timeoutMs: 1500, memoryBytes: 134217728, concurrency: 3 },
    });
  });

  it("admits v1beta1 and says that it is deprecated", () => {
    const old = input({
      apiVersion: "wasm.fn.crossplane.io/v1beta1",
      module: PATH_MODULE,
    });

    expect(admitInput(old, CEILINGS)).toMatchObject({
      apiVersion: "wasm.fn.crossplane.io/v1beta1",
      deprecated: true,
    });
  });

  it.each([
    {
      name: "OCI",
      module: { type: "OCI", oci: { ref: "ghcr.io/example/greeter:v1" } },
      want: { type: "OCI", ref: "ghcr.io/example/greeter:v1" },
    },
    {
      name: "HTTP",
      module: {
        type: "HTTP",
        http: { url: "https://example.com/a.wasm", digest: DIGEST },
      },
      want: { type: "HTTP", url: "https://example.com/a.wasm", digest: DIGEST },
    },
  ])("decodes an $name source without --module-dir", ({ module, want }) => {
    const admitted = admitInput(input({ module }), {
      ...CEILINGS,
      moduleDirSet: false,
    });

    expect(admitted.source).toEqual(want);
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
        name: "fields not supported yet",
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
      { name: "removed fields", fields: { policy: null, sandbox: null } },
    ] satisfies { name: string; fields: JsonObject }[])(
      "$name",
      ({ fields }) => {
        const admitted = admitInput(
          input({ module: PATH_MODULE, ...fields }),
          CEILINGS,
        );

        expect(admitted).toEqual(
          admitInput(input({ module: PATH_MODULE }), CEILINGS),
        );
      },
    );
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
      const admitted = admitInput(
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

  it.each([0, -1, 1.5, NaN, Infinity, 2 ** 53, true, {}])(
    "refuses limits.concurrency %j",
    (concurrency) => {
      const { code, message } = refusal(
        input({ module: PATH_MODULE, limits: { concurrency } }),
      );

      expect(code).toBe("input-invalid");
      expect(message).toMatch(
        /^limits\.concurrency: expected a whole number of at least 1, got /,
      );
    },
  );

  it("quotes a limits.concurrency that is text", () => {
    expect(
      refusal(input({ module: PATH_MODULE, limits: { concurrency: "3" } }))
        .message,
    ).toBe(
      'limits.concurrency: expected a whole number of at least 1, got "3"',
    );
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
        want: 'module: expected an object, got "greeter.wasm"',
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
        want: "unknown field __proto__, expected one of apiVersion, kind, metadata, module, limits, config, compositionPolicy",
      },
      {
        name: "an unknown field with a hostile name",
        object: input({ module: { ...PATH_MODULE, "a\n\u202eb": 1 } }),
        code: "field-unknown",
        want: 'unknown field module["a\\u000a\\u202eb"], expected one of type, oci, http, path, allowEmpty, from, manifestPath',
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
        name: "a type that every object inherits",
        object: input({ module: { type: "constructor", path: "a.wasm" } }),
        code: "input-invalid",
        want: 'module.type: expected OCI, HTTP or Path, got "constructor"',
      },
      {
        name: "a type without its source",
        object: input({ module: { type: "Path" } }),
        code: "input-invalid",
        want: "module.path is required with module.type Path",
      },
      {
        name: "a source of another type",
        object: input({ module: { type: "OCI", path: "a.wasm" } }),
        code: "input-invalid",
        want: "module.path does not go with module.type OCI, expected module.oci only",
      },
      {
        name: "two sources",
        object: input({ module: { ...PATH_MODULE, http: {} } }),
        code: "input-invalid",
        want: "module.http does not go with module.type Path, expected module.path only",
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
        want: 'module.oci: expected an object, got "ghcr.io/a/b"',
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
        name: "a digest in upper case",
        object: input({
          module: { type: "HTTP", http: { url: "a", digest: "sha256:AB" } },
        }),
        code: "input-invalid",
        want: 'module.http.digest: expected sha256: and 64 lower-case hex digits, got "sha256:AB"',
      },
      {
        name: "a digest with a line after it",
        object: input({
          module: { type: "HTTP", http: { url: "a", digest: `${DIGEST}\n` } },
        }),
        code: "input-invalid",
        want: `module.http.digest: expected sha256: and 64 lower-case hex digits, got "${DIGEST}\\u000a"`,
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

  describe("refuses what is not supported yet", () => {
    it.each([
      {
        field: "module.from",
        module: { type: "Path", from: "spec.module", allowEmpty: true },
      },
      {
        field: "module.manifestPath",
        module: { ...PATH_MODULE, manifestPath: "wasmfn.yaml" },
      },
      {
        field: "module.oci.expectedDigest",
        module: oci({ expectedDigest: DIGEST }),
      },
      {
        field: "module.oci.credentials",
        module: oci({ credentials: "registry" }),
      },
      {
        field: "module.http.manifestURL",
        module: http({ manifestURL: "https://example.com" }),
      },
      {
        field: "module.http.manifestDigest",
        module: http({ manifestDigest: DIGEST }),
      },
      {
        field: "compositionPolicy",
        module: PATH_MODULE,
        more: { compositionPolicy: "permit(…)" },
      },
    ] satisfies { field: string; module: JsonObject; more?: JsonObject }[])(
      "$field",
      ({ field, module, ...rest }) => {
        const more = "more" in rest ? rest.more : {};

        expect(refusal(input({ module, ...more }))).toEqual({
          code: "field-not-supported",
          message: `${field} is not supported yet by this runtime`,
        });
      },
    );
  });

  it("refuses a Path source without --module-dir", () => {
    const ceilings = { ...CEILINGS, moduleDirSet: false };

    expect(refusal(input({ module: PATH_MODULE }), ceilings)).toEqual({
      code: "source-refused",
      message:
        "module.path is refused: the runtime has no --module-dir to load modules from",
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
  return { type: "OCI", oci: { ref: "ghcr.io/example/greeter:v1", ...more } };
}

function http(more: JsonObject): JsonObject {
  return {
    type: "HTTP",
    http: { url: "https://example.com/a.wasm", digest: DIGEST, ...more },
  };
}

function limitsOf(limits: JsonObject) {
  return admitInput(input({ module: PATH_MODULE, limits }), CEILINGS).limits;
}

/** What admission says no with; fails when it says yes or breaks. */
function refusal(
  object: JsonObject,
  ceilings = CEILINGS,
): { code: string; message: string } {
  try {
    admitInput(object, ceilings);
  } catch (error) {
    if (error instanceof AdmissionError)
      return { code: error.code, message: error.message };
    throw error;
  }
  throw new Error("admitted");
}
