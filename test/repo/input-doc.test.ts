import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import {
  admitInput,
  type InputCeilings,
  type JsonObject,
} from "../../src/admission/index.js";
import { textOf } from "./committed-files.js";

const DOC = textOf("docs/input.md");
const EXAMPLE = /```yaml\n(?<yaml>.*?)```/s.exec(DOC)?.groups?.["yaml"] ?? "";
const CEILINGS: InputCeilings = {
  timeoutMs: 30_000,
  timeoutText: "30s",
  memoryBytes: 512 * 1024 * 1024,
  memoryText: "512Mi",
  moduleDirSet: true,
};

describe("docs/input.md", () => {
  it("has an example that is admitted", () => {
    expect(admitInput(example(), CEILINGS)).toMatchObject({
      source: { type: "Path", path: "greeter.wasm" },
      limits: { timeoutMs: 5000, memoryBytes: 134217728 },
    });
  });

  it.each(
    Array.from(
      DOC.matchAll(/^\| `(?<field>[\w.]+)`/gm),
      (match) => match[1] ?? "",
    ),
  )("lists %s, which exists", (field) => {
    expect(refusalOf(field)).not.toMatch(
      /^unknown field|not supported yet|was removed/,
    );
  });

  it("lists as not supported what is refused as such", () => {
    const line = /^- (?<fields>`compositionPolicy`.*) are refused until/m.exec(
      DOC,
    );
    const fields = Array.from(
      line?.[0].matchAll(/`([\w.]+)`/g) ?? [],
      (match) => match[1] ?? "",
    );

    const refusals = fields.map((field) => refusalOf(field));

    expect(refusals).toEqual(
      fields.map((field) =>
        field === "module.allowEmpty"
          ? "module.allowEmpty is set but module.from is not"
          : `${field} is not supported yet by this runtime`,
      ),
    );
    expect(fields.length).toBe(8);
  });
});

function example(): JsonObject {
  return parse(EXAMPLE) as JsonObject;
}

/** What admission says to the example with the field at this dotted path set to a text. */
function refusalOf(field: string): string {
  const object: Record<string, unknown> = { ...example() };
  const [, type] = /^module\.(oci|http)\./.exec(field) ?? [];
  if (type !== undefined)
    object["module"] = { type: type.toUpperCase(), [type]: {} };
  const parents = field.split(".");
  const name = parents.pop() ?? "";
  let at = object;
  for (const parent of parents)
    at = (at[parent] ??= {}) as Record<string, unknown>;
  at[name] = "text";
  try {
    admitInput(object as JsonObject, CEILINGS);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  return "admitted";
}
