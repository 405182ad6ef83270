import { describe, expect, it } from "vitest";
import type { StructuralSchema } from "../../support/crd.js";
import { structuralProblems } from "../../support/structural-schema.js";

const TEXT = { type: "string", description: "A text.", maxLength: 4096 };
const RULE = { rule: "has(self.text)", message: "there must be a text" };
const PROPERTIES: Readonly<Record<string, StructuralSchema>> = {
  apiVersion: { ...TEXT, enum: ["v1"] },
  kind: TEXT,
  metadata: { type: "object" },
  text: { ...TEXT, allOf: [{ pattern: "a" }] },
  flag: { type: "boolean", description: "A flag." },
  compositionPolicy: { ...TEXT, maxLength: 1024 * 1024 },
  limits: {
    type: "object",
    description: "Limits.",
    "x-kubernetes-validations": [
      { rule: "has(self.memory)", message: "there must be a memory" },
    ],
    properties: {
      memory: {
        "x-kubernetes-int-or-string": true,
        description: "A quantity.",
        maxLength: 9,
      },
    },
  },
  config: {
    type: "object",
    description: "Anything.",
    "x-kubernetes-preserve-unknown-fields": true,
  },
};

describe("support/structural-schema", () => {
  it("finds nothing wrong with a good schema", () => {
    expect(structuralProblems(root({}))).toEqual([]);
  });

  it.each([
    {
      name: "a root that is no object",
      change: { type: "string" },
      want: ": the root must be an object",
    },
    ...[
      "$ref",
      "additionalProperties",
      "default",
      "definitions",
      "format",
      "id",
      "nullable",
      "oneof",
      "patternProperties",
      "title",
      "uniqueItems",
      "x-kubernetes-embedded-resource",
    ].map((keyword) => ({
      name: keyword,
      change: { [keyword]: false },
      want: `: must not have ${keyword}`,
    })),
    {
      name: "no description",
      change: { description: undefined },
      want: ": must have a description in sentences",
    },
    {
      name: "an empty description",
      change: { description: "" },
      want: ": must have a description in sentences",
    },
    {
      name: "a required field that is none",
      change: { required: ["nope"] },
      want: ": must not require nope, which does not exist",
    },
    {
      name: "an open root",
      change: { "x-kubernetes-preserve-unknown-fields": true },
      want: ": must not preserve unknown fields",
    },
    {
      name: "a required field in allOf that is none",
      change: { allOf: [{ required: ["nope"] }] },
      want: " allOf: must not require nope, which does not exist",
    },
    {
      name: "a field in not that is nowhere else",
      change: { not: { properties: { nope: {} } } },
      want: " not: must not have nope, which does not exist outside",
    },
    ...[
      "type",
      "description",
      "x-kubernetes-validations",
      "additionalProperties",
      "default",
    ].map((keyword) => ({
      name: `${keyword} in oneOf`,
      change: { oneOf: [{ [keyword]: "object" }] },
      want: ` oneOf: must not have ${keyword}`,
    })),
    {
      name: "type in a not in anyOf",
      change: { anyOf: [{ not: { type: "object" } }] },
      want: " anyOf not: must not have type",
    },
  ])("finds $name", ({ change, want }) => {
    expect(structuralProblems(root(change))).toContain(want);
  });

  it.each([
    {
      name: "a field without type",
      at: "flag",
      change: { type: undefined },
      want: "flag: must have a type",
    },
    {
      name: "a type that JSON has and this does not",
      at: "flag",
      change: { type: "null" },
      want: "flag: must have a type",
    },
    {
      name: "an object without properties",
      at: "flag",
      change: { type: "object" },
      want: "flag: must be an object if it has properties, and have some if it is one",
    },
    {
      name: "properties without an object",
      at: "flag",
      change: { properties: {} },
      want: "flag: must be an object if it has properties, and have some if it is one",
    },
    {
      name: "an open object",
      at: "limits",
      change: { "x-kubernetes-preserve-unknown-fields": true },
      want: "limits: must not preserve unknown fields",
    },
    {
      name: "int-or-string",
      at: "flag",
      change: {
        type: undefined,
        "x-kubernetes-int-or-string": true,
        maxLength: 1,
      },
      want: "flag: must not be int-or-string",
    },
    {
      name: "a type beside int-or-string",
      at: "flag",
      change: { "x-kubernetes-int-or-string": true },
      want: "flag: must have no type beside int-or-string",
    },
    {
      name: "a text without bound",
      at: "text",
      change: { maxLength: undefined },
      want: "text: must have a maxLength of at most 4096",
    },
    {
      name: "a text with too high a bound",
      at: "text",
      change: { maxLength: 4097 },
      want: "text: must have a maxLength of at most 4096",
    },
    {
      name: "a policy with too high a bound",
      at: "compositionPolicy",
      change: { maxLength: 1024 * 1024 + 1 },
      want: "compositionPolicy: must have a maxLength of at most 1048576",
    },
    {
      name: "look-ahead",
      at: "text",
      change: { pattern: "(?=a)" },
      want: "text: must have a pattern that RE2 reads",
    },
    {
      name: "look-ahead in allOf",
      at: "text",
      change: { allOf: [{ pattern: "(?=a)" }] },
      want: "text allOf: must have a pattern that RE2 reads",
    },
    {
      name: "a pattern that is no text",
      at: "text",
      change: { pattern: 5 },
      want: "text: must have a pattern that RE2 reads",
    },
    {
      name: "a described metadata",
      at: "metadata",
      change: { description: "Metadata." },
      want: "metadata: must be an object and say nothing else",
    },
    {
      name: "a number for kind",
      at: "kind",
      change: { type: "integer" },
      want: "kind: must be a string",
    },
    {
      name: "a number for apiVersion",
      at: "apiVersion",
      change: { type: "integer" },
      want: "apiVersion: must be a string",
    },
  ])("finds $name", ({ at, change, want }) => {
    const property = withoutUndefined({ ...PROPERTIES[at], ...change });

    const problems = structuralProblems(
      root({ properties: { ...PROPERTIES, [at]: property } }),
    );

    expect(problems).toContain(want);
  });

  it.each([
    {
      name: "a rule that does not parse",
      change: { rule: "self.(" },
      want: "the rule must be a condition",
    },
    {
      name: "a rule that is a text",
      change: { rule: "self.text" },
      want: "the rule must be a condition",
    },
    {
      name: "a rule that compares a flag with a text",
      change: { rule: "self.flag == 'a'" },
      want: "the rule must be a condition",
    },
    {
      name: "a field that does not exist",
      change: { rule: "has(self.nope)" },
      want: "the rule must not use nope, which does not exist",
    },
    {
      name: "a nested field that does not exist",
      change: { rule: "!has(self.limits.nope)" },
      want: "the rule must not use nope, which does not exist",
    },
    {
      name: "a function that costs much",
      change: { rule: "self.text.matches('a')" },
      want: "the rule must not call matches",
    },
    {
      name: "a function that is not listed",
      change: { rule: "self.text.trim() == ''" },
      want: "the rule must not call trim",
    },
    {
      name: "no message",
      change: { message: "" },
      want: "the message must be one line",
    },
    {
      name: "a message of two lines",
      change: { message: "a\nb" },
      want: "the message must be one line",
    },
    {
      name: "more than a message",
      change: { reason: "FieldValueInvalid" },
      want: "a rule must have a message and nothing else",
    },
  ])("finds $name in a rule", ({ change, want }) => {
    const rules = [{ ...RULE, ...change }];

    expect(
      structuralProblems(root({ "x-kubernetes-validations": rules })),
    ).toContain(`: ${want}`);
  });
});

function root(change: Readonly<Record<string, unknown>>): StructuralSchema {
  return withoutUndefined({
    type: "object",
    description: "A thing.",
    required: ["kind", "text"],
    "x-kubernetes-validations": [RULE],
    properties: PROPERTIES,
    ...change,
  });
}

function withoutUndefined(
  schema: Readonly<Record<string, unknown>>,
): StructuralSchema {
  return Object.fromEntries(
    Object.entries(schema).filter(([, value]) => value !== undefined),
  );
}
