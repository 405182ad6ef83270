import { describe, expect, it } from "vitest";
import { type JsonObject } from "../../../src/admission/json.js";
import { createCrdJudge, readCrd } from "../../support/crd.js";

const judge = createCrdJudge(
  readCrd(`
spec:
  group: example.com
  names: { kind: Thing }
  versions:
    - name: v1
      schema:
        openAPIV3Schema:
          type: object
          properties:
            apiVersion: { type: string }
            kind: { type: string }
    - name: v2
      schema:
        openAPIV3Schema:
          type: object
          required: [name]
          x-kubernetes-validations:
            - rule: "!has(self.size) || self.name != 'sizeless'"
              message: sizeless has a size
          properties:
            apiVersion: { type: string }
            kind: { type: string }
            metadata: { type: object }
            name: { type: string, pattern: "^[a-z]+$" }
            other: { type: string, pattern: "^[A-Z]+$" }
            size: { x-kubernetes-int-or-string: true, pattern: "^1", minimum: 3 }
            open:
              type: object
              x-kubernetes-preserve-unknown-fields: true
              properties: { known: { type: boolean } }
            nested:
              type: object
              x-kubernetes-validations:
                - rule: self.left.startsWith(self.right)
                  message: left does not begin with right
              properties: { left: { type: string }, right: { type: string } }
`),
);

describe("support/crd", () => {
  it.each([
    { name: "what is required", fields: {} },
    { name: "null in a known field", fields: { other: null, nested: null } },
    { name: "anything in metadata", fields: { metadata: { a: [null] } } },
    { name: "anything in an open object", fields: { open: { a: [null] } } },
    { name: "null in an open object", fields: { open: { known: null } } },
    { name: "another field's pattern", fields: { other: "A" } },
    { name: "an integer for int-or-string", fields: { size: 3 } },
    { name: "a text for int-or-string", fields: { size: "1" } },
    {
      name: "a rule that holds",
      fields: { nested: { left: "ab", right: "a" } },
    },
  ] satisfies { name: string; fields: JsonObject }[])(
    "admits $name",
    ({ fields }) => {
      expect(judge(thing(fields))).toEqual({ kind: "admitted" });
    },
  );

  it.each([
    { name: "another version", fields: { apiVersion: "example.com/v3" } },
    { name: "another group", fields: { apiVersion: "example.org/v2" } },
    { name: "another kind", fields: { kind: "thing" } },
    { name: "null in a required field", fields: { name: null } },
    { name: "an unknown field", fields: { unknown: 1 } },
    { name: "null in an unknown field", fields: { unknown: null } },
    { name: "an unknown nested field", fields: { nested: { unknown: 1 } } },
    { name: "a field of an open object", fields: { open: { known: 1 } } },
    { name: "a pattern that does not match", fields: { name: "A" } },
    { name: "a line break before the end", fields: { name: "a\n" } },
    { name: "a pattern of its own", fields: { other: "a" } },
    { name: "a fraction for int-or-string", fields: { size: 3.5 } },
    { name: "a number out of range", fields: { size: 2 } },
    { name: "a text for int-or-string", fields: { size: "2" } },
    { name: "a broken rule", fields: { name: "sizeless", size: 3 } },
    {
      name: "a broken nested rule",
      fields: { nested: { left: "b", right: "a" } },
    },
    { name: "a rule that cannot be evaluated", fields: { nested: {} } },
  ] satisfies { name: string; fields: JsonObject }[])(
    "refuses $name",
    ({ fields }) => {
      expect(judge(thing(fields)).kind).toBe("refused");
    },
  );

  it("judges by the schema of the version", () => {
    const object = { apiVersion: "example.com/v1", kind: "Thing" };

    expect(judge(object).kind).toBe("admitted");
    expect(judge({ ...object, name: "a" }).kind).toBe("refused");
  });

  it("says which rule is broken", () => {
    expect(judge(thing({ name: "sizeless", size: 3 }))).toEqual({
      kind: "refused",
      reason: "sizeless has a size",
    });
  });
});

function thing(fields: JsonObject): JsonObject {
  return { apiVersion: "example.com/v2", kind: "Thing", name: "a", ...fields };
}
