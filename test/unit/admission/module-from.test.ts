import { describe, expect, it } from "vitest";
import {
  compositeFromJson,
  type CompositeResource,
} from "../../../src/admission/composite.js";
import { AdmissionError } from "../../../src/admission/error.js";
import { admitInput } from "../../../src/admission/input.js";
import type { JsonObject, JsonValue } from "../../../src/admission/json.js";
import type { FromChoice } from "../../../src/admission/module-choice.js";
import { readModuleFrom } from "../../../src/admission/module-from.js";
import { sourceParsers } from "../../support/source-parsers.js";

const DIGEST = `sha256:${"0123456789abcdef".repeat(4)}`;
const PINNED = `ghcr.io/example/greeter:v1@${DIGEST}`;
const URL = "https://example.com/a.wasm";
const CEILINGS = {
  timeoutMs: 30_000,
  timeoutText: "30s",
  memoryBytes: 1024,
  memoryText: "1Ki",
  moduleDirSet: true,
  allowUnpinnedTags: false,
};

const FIELD = "module.from: status.module of the composite resource";

describe("admission/module-from", () => {
  describe("reads", () => {
    it.each([
      {
        name: "a pinned reference",
        type: "OCI",
        module: { ref: PINNED },
        want: {
          type: "OCI",
          ref: { location: "ghcr.io/example/greeter", text: PINNED },
          expectedDigest: null,
          credentials: null,
        },
      },
      {
        name: "a reference in another spelling, with credentials",
        type: "OCI",
        module: { ref: `docker.io/x@${DIGEST}`, credentials: "registry" },
        want: {
          type: "OCI",
          ref: { location: "index.docker.io/library/x" },
          credentials: "registry",
        },
      },
      {
        name: "a reference with its credentials left out by null",
        type: "OCI",
        module: { ref: PINNED, credentials: null },
        want: { type: "OCI", credentials: null },
      },
      {
        name: "a URL",
        type: "HTTP",
        module: { url: `${URL}?sig=hunter2`, digest: DIGEST },
        want: {
          type: "HTTP",
          url: { href: `${URL}?sig=hunter2`, location: URL },
          digest: DIGEST,
          manifest: null,
        },
      },
      {
        name: "a URL with a manifest beside it",
        type: "HTTP",
        module: {
          url: URL,
          digest: DIGEST,
          manifestURL: "https://example.com/allowed/%2e%2e/wasmfn.yaml",
          manifestDigest: DIGEST,
        },
        want: {
          manifest: {
            url: { location: "https://example.com/wasmfn.yaml" },
            digest: DIGEST,
          },
        },
      },
      {
        name: "a path",
        type: "Path",
        module: "greeter.wasm",
        want: { type: "Path", path: "greeter.wasm", manifestPath: null },
      },
    ])("$name", ({ type, module, want }) => {
      const result = read(choose(type), { status: { module } });

      expect(result).toMatchObject({ kind: "source", source: want });
    });

    it("a path, with the manifest the Input names", () => {
      const choice = choose("Path", { manifestPath: "wasmfn.yaml" });

      expect(read(choice, { status: { module: "a.wasm" } })).toEqual({
        kind: "source",
        source: { type: "Path", path: "a.wasm", manifestPath: "wasmfn.yaml" },
      });
    });

    it("a key with dots and an element of a list", () => {
      const choice = choose("Path", { from: 'spec["a.b"].list[1]' });

      expect(
        read(choice, { spec: { "a.b": { list: ["0.wasm", "1.wasm"] } } }),
      ).toMatchObject({ source: { path: "1.wasm" } });
    });

    it("a bare tag with --allow-unpinned-tags", () => {
      const ceilings = { ...CEILINGS, allowUnpinnedTags: true };
      const xr = compositeFromJson({
        status: { module: { ref: "ghcr.io/example/greeter:v1" } },
      });

      expect(
        readModuleFrom(choose("OCI"), xr, sourceParsers, ceilings),
      ).toMatchObject({ source: { ref: { tag: "v1", digest: null } } });
    });
  });

  describe("an unset field", () => {
    const NO_FIELD =
      "module.from: cannot read status.module from the composite resource: module: no such field";
    const NO_ROOT =
      "module.from: cannot read status.module from the composite resource: status: no such field";

    it.each([
      { name: "absent", xr: { status: {} }, want: NO_FIELD },
      {
        name: "null",
        xr: { status: { module: null } },
        want: "module.from: cannot read status.module from the composite resource: module: is null",
      },
      { name: "without the object above it", xr: {}, want: NO_ROOT },
      { name: "below null", xr: { status: null }, want: NO_FIELD },
      { name: "below text", xr: { status: "ready" }, want: NO_FIELD },
      { name: "below a list", xr: { status: ["module"] }, want: NO_FIELD },
      {
        name: "absent in the middle of a long path",
        from: "spec.tenant.module",
        xr: { spec: {} },
        want: "module.from: cannot read spec.tenant.module from the composite resource: tenant: no such field",
      },
      {
        name: "behind a name with dots",
        from: 'spec["a.b"].c',
        xr: { spec: { a: { b: {} } } },
        want: 'module.from: cannot read spec["a.b"].c from the composite resource: "a.b": no such field',
      },
      {
        name: "beyond the end of a list",
        from: "spec.list[3]",
        xr: { spec: { list: [0, 1, 2] } },
        want: "module.from: cannot read spec.list[3] from the composite resource: [3]: no such element",
      },
      {
        name: "null in a list",
        from: "spec.list[0]",
        xr: { spec: { list: [null] } },
        want: "module.from: cannot read spec.list[0] from the composite resource: [0]: is null",
      },
      {
        name: "an index into an object",
        from: "spec.list[0]",
        xr: { spec: { list: { 0: "a.wasm" } } },
        want: "module.from: cannot read spec.list[0] from the composite resource: [0]: no such element",
      },
      {
        name: "inherited by every object",
        from: "spec.constructor.name",
        xr: { spec: {} },
        want: "module.from: cannot read spec.constructor.name from the composite resource: constructor: no such field",
      },
      {
        name: "a prototype",
        from: "spec.__proto__",
        xr: { spec: {} },
        want: "module.from: cannot read spec.__proto__ from the composite resource: __proto__: no such field",
      },
      {
        name: "a list's own length",
        from: "spec.list.length",
        xr: { spec: { list: [] } },
        want: "module.from: cannot read spec.list.length from the composite resource: length: no such field",
      },
    ] satisfies {
      name: string;
      from?: string;
      xr: JsonObject;
      want: string;
    }[])(
      "$name: is refused, or runs nothing with allowEmpty",
      ({ xr, want, ...rest }) => {
        const from = "from" in rest ? rest.from : "status.module";

        expect(refusal(choose("Path", { from }), xr)).toEqual({
          code: "from-unset",
          message: want,
        });
        expect(read(choose("Path", { from, allowEmpty: true }), xr)).toEqual({
          kind: "empty",
        });
      },
    );

    it("of a step without a composite resource is refused as well", () => {
      expect(refusalOf(choose("OCI"), compositeFromJson(undefined))).toEqual({
        code: "from-unset",
        message: NO_ROOT,
      });
    });
  });

  describe("refuses", () => {
    const NO_OCI = `${FIELD} is not a {ref, credentials} object: `;
    const NO_HTTP = `${FIELD} is not a {url, digest} object: `;

    it.each([
      {
        type: "OCI",
        module: PINNED,
        want: `${NO_OCI}expected an object, got a string`,
      },
      {
        type: "OCI",
        module: [],
        want: `${NO_OCI}expected an object, got a list`,
      },
      { type: "OCI", module: {}, want: `${NO_OCI}ref is required` },
      {
        type: "OCI",
        module: { ref: null },
        want: `${NO_OCI}ref is required`,
      },
      {
        type: "OCI",
        module: { ref: 7 },
        want: `${NO_OCI}ref: expected a string, got 7`,
      },
      { type: "OCI", module: { ref: "" }, want: `${NO_OCI}ref is empty` },
      {
        type: "OCI",
        module: { ref: PINNED, credentials: ["registry"] },
        want: `${NO_OCI}credentials: expected a string, got a list`,
      },
      {
        type: "OCI",
        module: { ref: PINNED, credential: "registry" },
        want: `${NO_OCI}unknown field credential, did you mean credentials`,
      },
      {
        type: "OCI",
        module: { ref: PINNED, expectedDigest: DIGEST },
        want: `${NO_OCI}unknown field expectedDigest, which is read from the Input only`,
      },
      {
        type: "OCI",
        module: { ref: PINNED, expectedDigest: null },
        want: `${NO_OCI}unknown field expectedDigest, which is read from the Input only`,
      },
      {
        type: "OCI",
        module: { ref: PINNED, compositionPolicy: "permit(…)" },
        want: `${NO_OCI}unknown field compositionPolicy, expected one of ref, credentials`,
      },
      {
        type: "OCI",
        module: { ref: PINNED, "\u202ea": 1 },
        want: `${NO_OCI}unknown field (what it is called is no name), expected one of ref, credentials`,
      },
      {
        type: "OCI",
        module: { ref: `user:hunter2@ghcr.io/x@${DIGEST}` },
        want: `${FIELD}: ref: a reference has no user name or password, and one "@" at most, expected registry/repository[:tag]@sha256:<64 hex digits>`,
      },
      {
        type: "OCI",
        module: { ref: "greeter" },
        want: `${FIELD}: ref: "index.docker.io/library/greeter" has neither tag nor digest, expected registry/repository[:tag]@sha256:<64 hex digits>`,
      },
      {
        type: "OCI",
        module: { ref: PINNED, credentials: "a b" },
        want: `${FIELD}: credentials: expected the name of a step credential (letters and digits, with "-", "_" or "." between them, at most 253), got text that is none`,
      },
      {
        type: "HTTP",
        module: "https://u:hunter2@h/x?sig=hunter2",
        want: `${NO_HTTP}expected an object, got a string`,
      },
      {
        type: "HTTP",
        module: { "https://u:hunter2@h/x?sig=hunter2": DIGEST },
        want: `${NO_HTTP}unknown field (what it is called is no name), expected one of url, digest, manifestURL, manifestDigest`,
      },
      {
        type: "HTTP",
        module: { url: URL },
        want: `${NO_HTTP}digest is required`,
      },
      {
        type: "HTTP",
        module: { digest: DIGEST },
        want: `${NO_HTTP}url is required`,
      },
      {
        type: "HTTP",
        module: { url: URL, digest: DIGEST, manifestPath: "wasmfn.yaml" },
        want: `${NO_HTTP}unknown field manifestPath, expected one of url, digest, manifestURL, manifestDigest`,
      },
      {
        type: "HTTP",
        module: { url: URL, digest: DIGEST, manifestURL: URL },
        want: `${NO_HTTP}manifestURL is set but manifestDigest is not`,
      },
      {
        type: "HTTP",
        module: { url: "http://example.com/a.wasm", digest: DIGEST },
        want: `${FIELD}: url: http is for localhost, 127.0.0.0/8, [::1] and the hosts in --insecure-registry only, expected https for host "example.com"`,
      },
      {
        type: "HTTP",
        module: { url: URL, digest: "sha512:ab" },
        want: `${FIELD}: digest: digest algorithm "sha512" is not supported, expected sha256: and 64 lower-case hex digits`,
      },
      {
        type: "Path",
        module: { path: "a.wasm" },
        want: `${FIELD} is not a string: got an object`,
      },
      {
        type: "Path",
        module: false,
        want: `${FIELD} is not a string: got false`,
      },
      { type: "Path", module: "", want: `${FIELD}: the path is empty` },
      {
        type: "Path",
        module: "a".repeat(4097),
        want: `${FIELD}: the path is 4097 characters long, expected at most 4096`,
      },
    ] satisfies { type: string; module: JsonValue; want: string }[])(
      "$type $module, allowEmpty or not",
      ({ type, module, want }) => {
        const xr = { status: { module } };
        const refused = { code: "from-invalid", message: want };

        expect(refusal(choose(type), xr)).toEqual(refused);
        expect(refusal(choose(type, { allowEmpty: true }), xr)).toEqual(
          refused,
        );
      },
    );

    it("a bare tag, and does not tell the XR's author of expectedDigest", () => {
      const xr = { status: { module: { ref: "ghcr.io/example/greeter:v1" } } };

      expect(refusal(choose("OCI"), xr)).toEqual({
        code: "source-refused",
        message: `${FIELD}: ref is refused: "ghcr.io/example/greeter:v1" has a tag and no digest, which needs the runtime's --allow-unpinned-tags: pin it as registry/repository[:tag]@sha256:<64 hex digits>`,
      });
    });

    it("whatever breaks while the field is read", () => {
      const broken = new TypeError("broken");
      const parsers = {
        ...sourceParsers,
        parseReference: () => {
          throw broken;
        },
      };
      const xr = compositeFromJson({ status: { module: { ref: PINNED } } });

      expect(() =>
        readModuleFrom(choose("OCI"), xr, parsers, CEILINGS),
      ).toThrow(broken);
    });
  });

  it("names the same field whatever the order of the fields", () => {
    const module = { ref: PINNED, zzz: 1, aaa: 1 };
    const backwards = Object.fromEntries(Object.entries(module).reverse());

    const { message } = refusal(choose("OCI"), { status: { module } });

    expect(message).toContain("unknown field aaa");
    expect(refusal(choose("OCI"), { status: { module: backwards } })).toEqual({
      code: "from-invalid",
      message,
    });
  });
});

/** The choice of an Input, as admission makes it. */
function choose(type: string, more: JsonObject = {}): FromChoice {
  const input = {
    apiVersion: "wasm.fn.crossplane.io/v1",
    kind: "Input",
    compositionPolicy: "permit (principal, action, resource);",
    module: { type, from: "status.module", ...more },
  };
  const { module } = admitInput(input, CEILINGS, sourceParsers);
  if (module.kind === "from") return module;
  throw new Error("not the XR's choice");
}

function read(choice: FromChoice, xr: JsonObject) {
  return readModuleFrom(choice, compositeFromJson(xr), sourceParsers, CEILINGS);
}

function refusal(choice: FromChoice, xr: JsonObject) {
  return refusalOf(choice, compositeFromJson(xr));
}

/** What is said no with; fails when the answer is yes, or something breaks. */
function refusalOf(
  choice: FromChoice,
  xr: CompositeResource,
): { code: string; message: string } {
  try {
    readModuleFrom(choice, xr, sourceParsers, CEILINGS);
  } catch (error) {
    if (error instanceof AdmissionError)
      return { code: error.code, message: error.message };
    throw error;
  }
  throw new Error("read");
}
