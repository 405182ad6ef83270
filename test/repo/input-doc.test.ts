import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import {
  admitInput,
  type InputCeilings,
  type JsonObject,
} from "../../src/admission/index.js";
import { sourceParsers } from "../support/source-parsers.js";
import { textOf } from "./committed-files.js";

const DOC = textOf("docs/input.md");
const [EXAMPLE = "", FROM_EXAMPLE = ""] = Array.from(
  DOC.matchAll(/```yaml\n(.*?)```/gs),
  (match) => match[1] ?? "",
);
const CEILINGS: InputCeilings = {
  timeoutMs: 30_000,
  timeoutText: "30s",
  memoryBytes: 512 * 1024 * 1024,
  memoryText: "512Mi",
  moduleDirSet: true,
  allowUnpinnedTags: false,
};
const FIELDS = Array.from(
  DOC.matchAll(/^\| `(?<field>[\w.]+)`/gm),
  (match) => match[1] ?? "",
);

describe("docs/input.md", () => {
  it("has an example that is admitted", () => {
    expect(admit(parse(EXAMPLE) as JsonObject)).toMatchObject({
      module: {
        kind: "static",
        source: {
          type: "Path",
          path: "greeter.wasm",
          manifestPath: "greeter.wasmfn.yaml",
        },
      },
      limits: { timeoutMs: 5000, memoryBytes: 134217728 },
    });
  });

  it("has an example of module.from that is admitted", () => {
    const { apiVersion, kind } = parse(EXAMPLE) as Record<string, string>;
    const rest = parse(FROM_EXAMPLE) as JsonObject;

    expect(
      admit({ apiVersion, kind, ...rest } as JsonObject).module,
    ).toMatchObject({ kind: "from", type: "OCI", pathText: "spec.module" });
  });

  it("lists every field there is", () => {
    for (const object of [
      "",
      "module.",
      "module.oci.",
      "module.http.",
      "limits.",
    ])
      expect([object, knownFields(object)]).toEqual([
        object,
        FIELDS.filter((field) => isDirectlyIn(field, object)).sort(),
      ]);
  });
});

function admit(input: JsonObject) {
  return admitInput(input, CEILINGS, sourceParsers);
}

/** The limits are listed, the object they are in is not. */
function isDirectlyIn(field: string, object: string): boolean {
  return field.startsWith(object) && !field.slice(object.length).includes(".");
}

/** What admission says it expected when it finds a field with a name like no other. */
function knownFields(object: string): string[] {
  const unknown = { qqqqqqqqqqqq: 1 };
  const base = { apiVersion: "wasm.fn.crossplane.io/v1", kind: "Input" };
  const inputs: Record<string, object> = {
    "": { ...base, ...unknown },
    "module.": { ...base, module: { type: "Path", ...unknown } },
    "module.oci.": { ...base, module: { type: "OCI", oci: unknown } },
    "module.http.": { ...base, module: { type: "HTTP", http: unknown } },
    "limits.": {
      ...base,
      module: { type: "Path", path: "a" },
      limits: unknown,
    },
  };
  try {
    admit(inputs[object] as JsonObject);
  } catch (thrown) {
    const message = thrown instanceof Error ? thrown.message : "";
    const list = /expected one of (?<list>.*)$/.exec(message)?.groups?.["list"];
    return (list ?? message)
      .split(", ")
      .filter((name) => name !== "limits")
      .map((name) => object + name)
      .sort();
  }
  return [];
}
