import fc from "fast-check";
import { stringify } from "yaml";
import { describe, expect, it } from "vitest";

import type { JsonValue } from "../../../../src/admission/json.js";
import { readManifest } from "../../../../src/admission/manifest/read-manifest.js";
import { manifestWith, readLayer, refusalOf, utf8 } from "./fixtures.js";

const NOTHING = { egress: [], privateTmp: false, env: [], credentials: [] };

const FULL = `
name: greeter
version: 1.2.3
description: |
  Greets.
  In every language.
abi: 2
source: https://example.com/greeter
minRuntime: v0.3.0
requires:
  egress:
    http:
      - host: API.example.com.
        methods: [GET, POST]
        pathPrefix: /v1/
      - hostPattern: "*.example.com"
        methods: [GET]
        scheme: http
        port: 8080
  filesystem:
    privateTmp: true
  env:
    - name: DB_PASSWORD
      fromCredential: {name: db, key: password}
  credentials: [cmdb]
config:
  schema:
    type: object
    properties:
      greeting: {type: string}
`;

describe("admission/manifest/read-manifest", () => {
  it("reads every field of a wasmfn.yaml", () => {
    const result = readManifest("file", utf8(FULL));

    expect(result).toEqual({
      kind: "ok",
      value: {
        name: "greeter",
        version: "1.2.3",
        abi: 2,
        source: "https://example.com/greeter",
        minRuntime: "0.3.0",
        requires: {
          egress: [
            {
              host: "api.example.com",
              methods: ["GET", "POST"],
              pathPrefix: "/v1/",
              scheme: "https",
              port: 443,
            },
            {
              host: "*.example.com",
              methods: ["GET"],
              pathPrefix: "",
              scheme: "http",
              port: 8080,
            },
          ],
          privateTmp: true,
          env: [{ name: "DB_PASSWORD", credential: "db", key: "password" }],
          credentials: ["cmdb"],
        },
        configSchema: { check: expect.any(Function) as unknown },
      },
    });
  });

  it("compiles the schema", () => {
    const result = readManifest("file", utf8(FULL));

    if (result.kind === "error") throw new Error(result.message);
    const { configSchema } = result.value;
    expect(configSchema?.check({ greeting: "hi" })).toBeNull();
    expect(configSchema?.check({ greeting: 1 })).toBe(
      "/greeting: got number, want string",
    );
  });

  it("reads the smallest manifest, which requires nothing", () => {
    expect(readManifest("file", utf8("abi: 1"))).toEqual({
      kind: "ok",
      value: {
        name: null,
        version: null,
        abi: 1,
        source: null,
        minRuntime: null,
        requires: NOTHING,
        configSchema: null,
      },
    });
  });

  it("takes null for absent (C58)", () => {
    const nulls = {
      name: null,
      version: null,
      description: null,
      source: null,
      minRuntime: null,
      requires: null,
      config: null,
    };

    expect(manifestWith(nulls)).toEqual(manifestWith({}));
    expect(
      manifestWith({
        requires: {
          egress: null,
          filesystem: null,
          env: null,
          credentials: null,
        },
        config: { schema: null },
      }),
    ).toEqual(manifestWith({}));
    expect(
      manifestWith({
        requires: { egress: { http: null }, filesystem: { privateTmp: null } },
      }),
    ).toEqual(manifestWith({}));
  });

  it("freezes what it read", () => {
    const result = readManifest("file", utf8(FULL));

    if (result.kind === "error") throw new Error(result.message);
    const { value } = result;
    expect(value).toSatisfy(Object.isFrozen);
    expect(value.configSchema).toSatisfy(Object.isFrozen);
    expect(value.requires).toSatisfy(Object.isFrozen);
    expect(value.requires.egress[0]).toSatisfy(Object.isFrozen);
    expect(value.requires.egress[0]?.methods).toSatisfy(Object.isFrozen);
    expect(value.requires.env[0]).toSatisfy(Object.isFrozen);
  });

  it.each(["", "one line", "l\n".repeat(512)])(
    "takes a description of people's and keeps nothing of it: %j",
    (description) => {
      expect(manifestWith({ description })).toEqual(manifestWith({}));
    },
  );

  describe("unknown fields", () => {
    it.each([
      {
        name: "at the top",
        text: "abi: 2\nminRuntme: 1.0.0",
        want: "unknown field minRuntme, did you mean minRuntime",
      },
      {
        name: "with the value null",
        text: "abi: 2\nextra: null",
        want: "unknown field extra, expected one of name, version, description, abi, source, minRuntime, requires, config",
      },
      {
        name: "in requires",
        text: "abi: 2\nrequires: {egres: {}}",
        want: "unknown field requires.egres, did you mean requires.egress",
      },
      {
        name: "in a rule",
        text: "abi: 2\nrequires: {egress: {http: [{method: [GET]}]}}",
        want: "unknown field requires.egress.http[0].method, did you mean requires.egress.http[0].methods",
      },
      {
        name: "in config",
        text: "abi: 2\nconfig: {schemas: {}}",
        want: "unknown field config.schemas, did you mean config.schema",
      },
      {
        name: "__proto__",
        text: "abi: 2\n__proto__: {name: x}",
        want: "unknown field __proto__, expected one of name, version, description, abi, source, minRuntime, requires, config",
      },
    ])("refuses one $name of a file", ({ text, want }) => {
      expect(readManifest("file", utf8(text))).toEqual({
        kind: "error",
        message: want,
      });
    });

    it("ignores one at the top of a layer: a newer tool may have written it", () => {
      expect(manifestWith({ later: { any: 1 } })).toEqual(manifestWith({}));
      expect(
        readManifest("layer", utf8('{"abi":2,"__proto__":{"name":"x"}}')),
      ).toEqual({ kind: "ok", value: manifestWith({}) });
    });

    it.each([
      {
        name: "requires",
        fields: { requires: { sockets: true } },
        want: "unknown field requires.sockets, expected one of egress, filesystem, env, credentials",
      },
      {
        name: "requires.egress",
        fields: { requires: { egress: { tcp: [] } } },
        want: "unknown field requires.egress.tcp, expected one of http",
      },
      {
        name: "requires.filesystem",
        fields: { requires: { filesystem: { privateTemp: true } } },
        want: "unknown field requires.filesystem.privateTemp, did you mean requires.filesystem.privateTmp",
      },
      {
        name: "requires.env[0]",
        fields: { requires: { env: [{ name: "A", value: "x" }] } },
        want: "unknown field requires.env[0].value, expected one of name, fromCredential",
      },
      {
        name: "config",
        fields: { config: { schema: true, defaults: {} } },
        want: "unknown field config.defaults, expected one of schema",
      },
    ])("refuses one in $name of a layer", ({ fields, want }) => {
      expect(refusalOf(fields)).toBe(want);
    });
  });

  describe("refuses", () => {
    it.each([
      { name: "no abi", manifest: {}, want: "abi is required" },
      {
        name: "another abi",
        manifest: { abi: 3 },
        want: "abi: expected 1 or 2, got 3",
      },
      {
        name: "an abi in quotes",
        manifest: { abi: "2" },
        want: 'abi: expected 1 or 2, got "2"',
      },
      {
        name: "a list",
        manifest: [],
        want: "expected an object, got a list",
      },
      {
        name: "null",
        manifest: null,
        want: "expected an object, got null",
      },
      {
        name: "an empty name",
        manifest: { abi: 2, name: "" },
        want: "name is empty",
      },
      {
        name: "a long name",
        manifest: { abi: 2, name: "n".repeat(129) },
        want: "name is 129 characters long, expected at most 128",
      },
      {
        name: "a name of two lines",
        manifest: { abi: 2, name: "a\nb" },
        want: 'name: expected one line without control characters, got "a\\u000ab"',
      },
      {
        name: "a name that reorders what follows",
        manifest: { abi: 2, name: "a\u202eb" },
        want: 'name: expected one line without control characters, got "a\\u202eb"',
      },
      {
        name: "a long description",
        manifest: { abi: 2, description: "d".repeat(1025) },
        want: "description is 1025 characters long, expected at most 1024",
      },
      {
        name: "a description that is a number",
        manifest: { abi: 2, description: 7 },
        want: "description: expected a string, got 7",
      },
      {
        name: "a long source",
        manifest: { abi: 2, source: "s".repeat(2049) },
        want: "source is 2049 characters long, expected at most 2048",
      },
      {
        name: "a version that is a number",
        manifest: { abi: 2, version: 1.5 },
        want: "version: expected a string, got 1.5: put it in quotes",
      },
      {
        name: "a version of two numbers",
        manifest: { abi: 2, version: "1.0" },
        want: 'version: expected a semantic version such as "1.2.3", got "1.0"',
      },
      {
        name: "a minRuntime that is a range",
        manifest: { abi: 2, minRuntime: ">=1.0.0" },
        want: 'minRuntime: expected a semantic version such as "1.2.3", got ">=1.0.0"',
      },
      {
        name: "requires that is a list",
        manifest: { abi: 2, requires: [] },
        want: "requires: expected an object, got a list",
      },
      {
        name: "config that is a text",
        manifest: { abi: 2, config: "x" },
        want: 'config: expected an object, got "x"',
      },
      {
        name: "a schema that does not compile",
        manifest: { abi: 2, config: { schema: { tipe: "object" } } },
        want: 'config.schema: unknown keyword "tipe", did you mean "type"',
      },
    ])("$name", ({ manifest, want }) => {
      expect(readLayer(manifest)).toEqual({ kind: "error", message: want });
    });
  });

  describe("YAML scalars (C72)", () => {
    it.each([
      {
        name: "version: 1.0",
        text: "abi: 2\nversion: 1.0",
        want: "version: expected a string, got 1: put it in quotes",
      },
      {
        name: "name: 0o17",
        text: "abi: 2\nname: 0o17",
        want: "name: expected a string, got 15: put it in quotes",
      },
      {
        name: "name: true",
        text: "abi: 2\nname: true",
        want: "name: expected a string, got true: put it in quotes",
      },
      {
        name: "privateTmp: yes",
        text: "abi: 2\nrequires: {filesystem: {privateTmp: yes}}",
        want: 'requires.filesystem.privateTmp: expected true or false, got "yes"',
      },
      {
        name: "privateTmp: on",
        text: "abi: 2\nrequires: {filesystem: {privateTmp: on}}",
        want: 'requires.filesystem.privateTmp: expected true or false, got "on"',
      },
      {
        name: "port: 1_000",
        text: "abi: 2\nrequires: {egress: {http: [{host: a, methods: [GET], port: 1_000}]}}",
        want: 'requires.egress.http[0].port: expected a whole number from 1 to 65535, got "1_000"',
      },
      {
        name: "a port that YAML 1.1 reads as a time",
        text: "abi: 2\nrequires: {egress: {http: [{host: a, methods: [GET], port: 1:30}]}}",
        want: 'requires.egress.http[0].port: expected a whole number from 1 to 65535, got "1:30"',
      },
    ])("refuses $name", ({ text, want }) => {
      expect(readManifest("file", utf8(text))).toEqual({
        kind: "error",
        message: want,
      });
    });

    it.each(["no", "on", "2001-01-01", "1_000", "1:30"])(
      "reads %s as text, as YAML 1.2 does",
      (name) => {
        expect(readManifest("file", utf8(`abi: 2\nname: ${name}`))).toEqual({
          kind: "ok",
          value: manifestWith({ name }),
        });
      },
    );

    it("reads ~ as null, which is absent", () => {
      expect(readManifest("file", utf8("abi: 2\nname: ~"))).toEqual({
        kind: "ok",
        value: manifestWith({}),
      });
    });
  });

  it("returns a result for every JSON value, in both forms", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(["ok", "error"]).toContain(
          readManifest("layer", utf8(text)).kind,
        );
        expect(["ok", "error"]).toContain(
          readManifest("file", utf8(text)).kind,
        );
      }),
    );
  });

  it("returns a result for any bytes, in both forms", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.uint8Array(), fc.string({ unit: "binary" }).map(utf8)),
        (bytes) => {
          expect(readManifest("layer", bytes).kind).toBe("error");
          expect(readManifest("file", bytes).kind).toBe("error");
        },
      ),
    );
  });

  it("returns a result for a manifest with any value in any field", () => {
    const field = (name: string) =>
      fc.jsonValue().map((value) => ({ [name]: value }));
    const fields = fc.oneof(
      ...["name", "version", "minRuntime", "requires", "config"].map(field),
      ...["egress", "filesystem", "env", "credentials"].map((name) =>
        field(name).map((requires) => ({ requires })),
      ),
      fc
        .array(fc.jsonValue())
        .map((http) => ({ requires: { egress: { http } } })),
      field("schema").map((config) => ({ config })),
    );

    fc.assert(
      fc.property(fields, (some) => {
        const { kind } = readLayer({ abi: 2, ...some });
        expect(["ok", "error"]).toContain(kind);
      }),
    );
  });

  it("reads the same from a file and from a layer", () => {
    fc.assert(
      fc.property(arbitraryManifest(), (manifest) => {
        const layer = readLayer(manifest);
        const file = readManifest("file", utf8(stringify(manifest)));

        expect(layer.kind).toBe("ok");
        expect(comparable(file)).toEqual(comparable(layer));
      }),
    );
  });
});

function arbitraryManifest(): fc.Arbitrary<JsonValue> {
  const optional = <T>(arbitrary: fc.Arbitrary<T>) =>
    fc.option(arbitrary, { nil: null });
  const text = fc.stringMatching(/^[ -~]{1,40}$/);
  const label = fc.stringMatching(/^[a-z][a-z0-9]{0,9}$/);
  const host = fc
    .array(label, { minLength: 1, maxLength: 4 })
    .map((labels) => labels.join("."));
  const version = fc
    .tuple(fc.nat(99), fc.nat(99), fc.nat(99))
    .map((numbers) => numbers.join("."));
  const methods = fc.subarray(["GET", "HEAD", "POST", "PUT", "DELETE"], {
    minLength: 1,
  });
  const more = {
    methods,
    pathPrefix: optional(label.map((name) => `/${name}/`)),
    scheme: optional(fc.constantFrom("http", "https")),
    port: optional(fc.integer({ min: 1, max: 65535 })),
  };
  const rule = fc.oneof(
    fc.record({ host, ...more }),
    fc.record({ hostPattern: host.map((name) => `*.${name}`), ...more }),
  );
  const binding = fc.record({
    name: fc.stringMatching(/^[A-Z_][A-Z0-9_]{0,9}$/),
    fromCredential: fc.record({ name: label, key: text }),
  });
  return fc.record({
    abi: fc.constantFrom(1, 2),
    name: optional(text),
    version: optional(version),
    source: optional(text),
    minRuntime: optional(version.map((number) => `v${number}`)),
    requires: optional(
      fc.record({
        egress: optional(fc.record({ http: fc.array(rule, { maxLength: 5 }) })),
        filesystem: optional(fc.record({ privateTmp: fc.boolean() })),
        env: fc.uniqueArray(binding, {
          maxLength: 5,
          selector: ({ name }) => name,
        }),
        credentials: fc.uniqueArray(label, { maxLength: 5 }),
      }),
    ),
    config: optional(
      fc.record({ schema: fc.constantFrom({ type: "object" }, true, {}) }),
    ),
  });
}

/** Two schemas are two functions. */
function comparable(result: ReturnType<typeof readManifest>): unknown {
  if (result.kind === "error") return result;
  return { ...result.value, configSchema: result.value.configSchema !== null };
}
