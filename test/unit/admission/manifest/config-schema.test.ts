import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

import type { JsonValue } from "../../../../src/admission/json.js";
import { compileConfigSchema } from "../../../../src/admission/manifest/config-schema.js";

const TOO_MUCH =
  "/: checking it takes more steps or levels than a module's schema may cause";

describe("admission/manifest/config-schema", () => {
  describe("says what is wrong", () => {
    it.each<{
      name: string;
      schema: JsonValue;
      config: JsonValue;
      want: string;
    }>([
      {
        name: "a type",
        schema: { properties: { greeting: { type: "string" } } },
        config: { greeting: 1 },
        want: "/greeting: got number, want string",
      },
      {
        name: "types",
        schema: { properties: { greeting: { type: ["string", "null"] } } },
        config: { greeting: true },
        want: "/greeting: got boolean, want string or null",
      },
      {
        name: "a fraction where an integer is wanted",
        schema: { properties: { n: { type: "integer" } } },
        config: { n: 1.5 },
        want: "/n: got number, want integer",
      },
      {
        name: "the type of the whole",
        schema: { type: "array" },
        config: {},
        want: "/: got object, want array",
      },
      {
        name: "null",
        schema: { properties: { a: { type: "object" } } },
        config: { a: null },
        want: "/a: got null, want object",
      },
      {
        name: "a list in a list",
        schema: { properties: { a: { items: { items: { type: "string" } } } } },
        config: { a: [[], ["x", []]] },
        want: "/a/1/1: got array, want string",
      },
      {
        name: "a missing property",
        schema: { required: ["a", "name"] },
        config: { a: 1 },
        want: '/: missing property "name"',
      },
      {
        name: "a property too many, at its object",
        schema: {
          properties: { greeting: { additionalProperties: false } },
        },
        config: { greeting: { greting: 1 } },
        want: '/greeting: additional property "greting" is not allowed',
      },
      {
        name: "a property that no keyword has judged",
        schema: {
          allOf: [{ properties: { a: true } }],
          unevaluatedProperties: false,
        },
        config: { a: 1, b: 2 },
        want: '/: additional property "b" is not allowed',
      },
      {
        name: "an item that no keyword has judged",
        schema: {
          properties: {
            a: { prefixItems: [true], unevaluatedItems: { type: "string" } },
          },
        },
        config: { a: [1, "x", 2] },
        want: "/a/2: got number, want string",
      },
      {
        name: "additional properties of a wrong type",
        schema: { additionalProperties: { type: "string" } },
        config: { a: "x", b: 1 },
        want: "/b: got number, want string",
      },
      {
        name: "a value not among those allowed",
        schema: { properties: { a: { enum: ["a", "b", 1, null] } } },
        config: { a: "c" },
        want: '/a: value must be one of "a", "b", 1, null',
      },
      {
        name: "a value not among many",
        schema: { enum: [1, 2, 3, 4, 5, 6, 7, 8, { a: 1 }] },
        config: {},
        want: "/: value must be one of 1, 2, 3, 4, 5, 6, 7, 8, …",
      },
      {
        name: "an enum of one",
        schema: { properties: { a: { enum: [true] } } },
        config: { a: "true" },
        want: "/a: value must be true",
      },
      {
        name: "a constant",
        schema: { properties: { a: { const: "x" } } },
        config: { a: "y" },
        want: '/a: value must be "x"',
      },
      {
        name: "a constant that is no scalar",
        schema: { properties: { a: { const: { x: 1 } } } },
        config: { a: { x: 2 } },
        want: "/a: value must be an object",
      },
      {
        name: "a text too short",
        schema: { properties: { a: { minLength: 3 } } },
        config: { a: "😀a" },
        want: "/a: expected at least 3 characters, got 2",
      },
      {
        name: "a text too long",
        schema: { properties: { a: { maxLength: 1 } } },
        config: { a: "ab" },
        want: "/a: expected at most 1 character, got 2",
      },
      {
        name: "a pattern",
        schema: { properties: { a: { pattern: "^[a-z]+$" } } },
        config: { a: "A" },
        want: '/a: does not match pattern "^[a-z]+$"',
      },
      {
        name: "too few items",
        schema: { properties: { a: { minItems: 1 } } },
        config: { a: [] },
        want: "/a: expected at least 1 item, got 0",
      },
      {
        name: "too many items",
        schema: { properties: { a: { maxItems: 2 } } },
        config: { a: [1, 2, 3] },
        want: "/a: expected at most 2 items, got 3",
      },
      {
        name: "too few properties",
        schema: { minProperties: 1 },
        config: {},
        want: "/: expected at least 1 property, got 0",
      },
      {
        name: "too many properties",
        schema: { maxProperties: 0 },
        config: { a: 1 },
        want: "/: expected at most 0 properties, got 1",
      },
      {
        name: "equal items",
        schema: { properties: { a: { uniqueItems: true } } },
        config: { a: [{ x: 1, y: [2] }, 1, { y: [2], x: 1 }] },
        want: "/a: items 0 and 2 are equal",
      },
      {
        name: "a number too small",
        schema: { properties: { a: { minimum: 1 } } },
        config: { a: 0.5 },
        want: "/a: expected at least 1, got 0.5",
      },
      {
        name: "a number too large",
        schema: { properties: { a: { maximum: 1 } } },
        config: { a: 2 },
        want: "/a: expected at most 1, got 2",
      },
      {
        name: "a number at its lower end",
        schema: { properties: { a: { exclusiveMinimum: 1 } } },
        config: { a: 1 },
        want: "/a: expected more than 1, got 1",
      },
      {
        name: "a number at its upper end",
        schema: { properties: { a: { exclusiveMaximum: 1 } } },
        config: { a: 1 },
        want: "/a: expected less than 1, got 1",
      },
      {
        name: "a number that is no multiple",
        schema: { properties: { a: { multipleOf: 0.1 } } },
        config: { a: 0.35 },
        want: "/a: expected a multiple of 0.1, got 0.35",
      },
      {
        name: "an integer that no double holds, with the digits the double has (C56)",
        schema: { properties: { a: { maximum: 10 } } },
        config: { a: Number("9123456789012345678") },
        want: "/a: expected at most 10, got 9123456789012345856",
      },
      {
        name: "a property that another needs",
        schema: { dependentRequired: { a: ["b"] } },
        config: { a: 1 },
        want: '/: missing property "b", which "a" needs',
      },
      {
        name: "a property's name",
        schema: { propertyNames: { pattern: "^[a-z]$" } },
        config: { a: 1, B: 2 },
        want: '/: property name "B": does not match pattern "^[a-z]$"',
      },
      {
        name: "no item that matches contains",
        schema: { properties: { a: { contains: { type: "string" } } } },
        config: { a: [1] },
        want: "/a: expected at least 1 item as contains says, got 0",
      },
      {
        name: "too many items that match contains",
        schema: {
          properties: { a: { contains: { type: "string" }, maxContains: 1 } },
        },
        config: { a: ["a", "b"] },
        want: "/a: expected at most 1 item as contains says, got 2",
      },
      {
        name: "no alternative, of which it shows the closest",
        schema: {
          properties: {
            a: {
              anyOf: [
                { type: "string" },
                { properties: { b: { type: "string" } } },
                { properties: { b: { type: "null" } } },
              ],
            },
          },
        },
        config: { a: { b: 1 } },
        want: "/a: no schema of anyOf matches: /a/b: got number, want string",
      },
      {
        name: "none of one",
        schema: { properties: { a: { oneOf: [{ type: "string" }] } } },
        config: { a: 1 },
        want: "/a: no schema of oneOf matches: /a: got number, want string",
      },
      {
        name: "two of one",
        schema: { properties: { a: { oneOf: [false, true, {}] } } },
        config: { a: 1 },
        want: "/a: schemas 1 and 2 of oneOf both match",
      },
      {
        name: "what must not be",
        schema: { properties: { a: { not: { type: "string" } } } },
        config: { a: "x" },
        want: "/a: matches the schema of not",
      },
      {
        name: "a branch",
        schema: {
          if: { properties: { kind: { const: "a" } } },
          then: { required: ["x"] },
          else: { required: ["y"] },
        },
        config: { kind: "b" },
        want: '/: missing property "y"',
      },
      {
        name: "a property for which nothing is allowed",
        schema: { properties: { a: false } },
        config: { a: 1 },
        want: "/a: no value is allowed here",
      },
      {
        name: "a pointer with escapes",
        schema: { additionalProperties: { type: "string" } },
        config: { "a/b~c": 1 },
        want: "/a~1b~0c: got number, want string",
      },
    ])("$name", ({ schema, config, want }) => {
      expect(compileConfigSchema(schema).check(config)).toBe(want);
    });

    it("on one line of at most 300 characters, whatever the config holds", () => {
      const name = `\n\u001b[31m\u202e"${"😀\u0000".repeat(1000)}`;
      const value = "secret ".repeat(10_000);
      const schemas = [
        { additionalProperties: false },
        { additionalProperties: { type: "number" } },
        { additionalProperties: { pattern: "^x" } },
        { additionalProperties: { maxLength: 1 } },
        { propertyNames: { maxLength: 1 } },
        { required: [`${name}x`] },
        { const: name },
        { anyOf: [{ anyOf: [{ const: name }, { maxProperties: 0 }] }] },
        { additionalProperties: { enum: [name, name, name, name, name] } },
      ];

      for (const schema of schemas) {
        const message = compileConfigSchema(schema).check({ [name]: value });
        expect(message).toMatch(/^[\x20-\x7e\u{1f600}…]{1,300}$/u);
        expect(message).not.toContain("secret");
      }
    });

    it("the same, whatever the order of the config's fields", () => {
      const check = checkerOf({
        patternProperties: { "^p": { type: "string" } },
        propertyNames: { maxLength: 3 },
        additionalProperties: { enum: [1] },
      });
      const fields = fc.uniqueArray(
        fc.tuple(fc.constantFrom("p", "pa", "a", "b", "long"), fc.nat(2)),
        { selector: ([name]) => name },
      );

      fc.assert(
        fc.property(fields, (entries) => {
          const there = check(Object.fromEntries(entries));
          const back = check(Object.fromEntries(entries.toReversed()));
          expect(back).toBe(there);
        }),
      );
    });
  });

  describe("takes", () => {
    it.each<{ name: string; schema: JsonValue; config: JsonValue }>([
      { name: "anything for true", schema: true, config: { a: 1 } },
      { name: "anything for {}", schema: {}, config: { a: 1 } },
      {
        name: "an integer written as a fraction",
        schema: { type: "integer" },
        config: 1.0,
      },
      {
        name: "null where a property may be null (C58)",
        schema: { properties: { a: { type: ["string", "null"] } } },
        config: { a: null },
      },
      {
        name: "an integer that no double holds (C56)",
        schema: { properties: { id: { type: "integer", maximum: 2 ** 63 } } },
        config: { id: Number("9007199254740993") },
      },
      {
        name: "0.3 as a multiple of 0.1",
        schema: { multipleOf: 0.1 },
        config: 0.3,
      },
      {
        name: "-0 as 0",
        schema: { const: 0 },
        config: -0,
      },
      {
        name: "any text for format",
        schema: { properties: { a: { format: "uri" }, b: { format: "own" } } },
        config: { a: "no uri", b: "x" },
      },
      {
        name: "annotations",
        schema: {
          $schema: "https://json-schema.org/draft/2020-12/schema",
          $id: "https://example.com/config",
          $comment: "x",
          title: "Config",
          description: "What it is for",
          default: {},
          examples: [{}],
          deprecated: true,
          readOnly: true,
          writeOnly: false,
          contentEncoding: "base64",
          contentMediaType: "text/plain",
          contentSchema: { anything: "goes" },
        },
        config: {},
      },
      {
        name: "then and else without if",
        schema: { then: false, else: false },
        config: {},
      },
      {
        name: "minContains 0",
        schema: { contains: { type: "string" }, minContains: 0 },
        config: [1],
      },
      {
        name: "items of another type after prefixItems",
        schema: { prefixItems: [{ type: "string" }], items: { type: "null" } },
        config: ["x", null],
      },
      {
        name: "what any of several alternatives has judged",
        schema: {
          anyOf: [{ properties: { a: true } }, { properties: { b: true } }],
          unevaluatedProperties: false,
        },
        config: { a: 1, b: 2 },
      },
      {
        name: "what a matching contains has judged",
        schema: { contains: { type: "string" }, unevaluatedItems: false },
        config: ["a", "b"],
      },
      {
        name: "inherited names as absent",
        schema: {
          properties: { constructor: { type: "string" }, toString: false },
          dependentRequired: { valueOf: ["x"] },
        },
        config: {},
      },
    ])("$name", ({ schema, config }) => {
      expect(compileConfigSchema(schema).check(config)).toBeNull();
    });

    it("an object without prototype", () => {
      const config = Object.assign(Object.create(null) as object, { a: "x" });

      const check = checkerOf({
        type: "object",
        properties: { a: { type: "string" } },
        additionalProperties: false,
      });

      expect(check(config as JsonValue)).toBeNull();
    });
  });

  it.each(["__proto__", "constructor", "toString", "hasOwnProperty"])(
    "treats %s as a name like any other",
    (name) => {
      const json = (text: string) =>
        JSON.parse(text.replaceAll("NAME", name)) as JsonValue;
      const check = checkerOf(
        json(
          '{"properties": {"NAME": {"type": "string"}}, "required": ["NAME"], "additionalProperties": false}',
        ),
      );

      expect(check({})).toBe(`/: missing property "${name}"`);
      expect(check(json('{"NAME": 1}'))).toBe(
        `/${name}: got number, want string`,
      );
      expect(check(json('{"NAME": "x"}'))).toBeNull();
      expect(
        compileConfigSchema({ additionalProperties: false }).check(
          json('{"NAME": 1}'),
        ),
      ).toBe(`/: additional property "${name}" is not allowed`);
    },
  );

  it("tells patterns apart", () => {
    const check = checkerOf({
      properties: { a: { pattern: "^a+$" }, b: { pattern: "^b+$" } },
      patternProperties: { "^x": { type: "string" }, "^y": { type: "number" } },
    });

    expect(check({ a: "aa", b: "bb", x1: "x", y1: 1 })).toBeNull();
    expect(check({ a: "bb" })).toBe('/a: does not match pattern "^a+$"');
    expect(check({ b: "aa" })).toBe('/b: does not match pattern "^b+$"');
    expect(check({ x1: 1 })).toBe("/x1: got number, want string");
    expect(check({ y1: "x" })).toBe("/y1: got string, want number");
  });

  describe("$ref", () => {
    it("leads to any schema of the document", () => {
      const check = checkerOf({
        $defs: { "a/b c": { type: "string" } },
        definitions: { old: { type: "null" } },
        properties: {
          a: { $ref: "#/$defs/a~1b%20c" },
          b: { $ref: "#/properties/a" },
          c: { $ref: "#/definitions/old" },
          d: { $ref: "#/allOf/0/then" },
          e: { $ref: "#" },
        },
        allOf: [{ then: { type: "number" } }],
      });

      expect(
        check({ a: "x", b: "x", c: null, d: 1, e: { a: "x" } }),
      ).toBeNull();
      expect(check({ a: 1 })).toBe("/a: got number, want string");
      expect(check({ b: 1 })).toBe("/b: got number, want string");
      expect(check({ c: 1 })).toBe("/c: got number, want null");
      expect(check({ d: "x" })).toBe("/d: got string, want number");
      expect(check({ e: { e: { a: 1 } } })).toBe(
        "/e/e/a: got number, want string",
      );
    });

    it("applies beside its siblings", () => {
      const check = checkerOf({
        $defs: { text: { type: "string" } },
        properties: { a: { $ref: "#/$defs/text", minLength: 2 } },
      });

      expect(check({ a: "x" })).toBe(
        "/a: expected at least 2 characters, got 1",
      );
      expect(check({ a: 1 })).toBe("/a: got number, want string");
    });

    it.each([
      { ref: "https://example.com/schema.json" },
      { ref: "other.json#/$defs/a" },
      { ref: "#name" },
      { ref: "#/%zz" },
      { ref: "" },
    ])("is refused for $ref", ({ ref }) => {
      expect(() =>
        compileConfigSchema({ properties: { a: { $ref: ref } } }),
      ).toThrow(
        `config.schema/properties/a/$ref: expected a place in this schema, such as "#/$defs/name", got "${ref}"`,
      );
    });

    it.each([
      "#/$defs/none",
      "#/properties",
      "#/properties/a/enum/0",
      "#/properties/a/contentSchema",
      "#/__proto__",
      "#/",
    ])("is refused for %s, where no schema is", (ref) => {
      const schema = {
        properties: { a: { enum: [{}], contentSchema: {} }, b: { $ref: ref } },
      };

      expect(() => compileConfigSchema(schema)).toThrow(
        `config.schema/properties/b/$ref: there is no schema at "${ref}"`,
      );
    });
  });

  describe("refuses a schema with", () => {
    it.each<{ name: string; schema: JsonValue; want: string }>([
      {
        name: "no object or boolean",
        schema: [],
        want: "config.schema: expected a schema, got a list",
      },
      {
        name: "a misspelt keyword",
        schema: { properties: { a: { tipe: "string" } } },
        want: 'config.schema/properties/a: unknown keyword "tipe", did you mean "type"',
      },
      {
        name: "an unknown keyword",
        schema: { "x-own": 1 },
        want: 'config.schema: unknown keyword "x-own"',
      },
      {
        name: "__proto__ as keyword",
        schema: JSON.parse('{"__proto__": {"type": "string"}}') as JsonValue,
        want: 'config.schema: unknown keyword "__proto__"',
      },
      {
        name: "nullable",
        schema: { properties: { a: { type: "string", nullable: true } } },
        want: 'config.schema/properties/a: keyword "nullable" is not supported: add "null" to type',
      },
      {
        name: "an anchor",
        schema: { $defs: { a: { $anchor: "a" } } },
        want: 'config.schema/$defs/a: keyword "$anchor" is not supported: name the schema by its JSON pointer',
      },
      {
        name: "a dynamic reference",
        schema: { $dynamicRef: "#a" },
        want: 'config.schema: keyword "$dynamicRef" is not supported: use $ref',
      },
      {
        name: "another draft",
        schema: { $schema: "http://json-schema.org/draft-07/schema#" },
        want: 'config.schema/$schema: expected "https://json-schema.org/draft/2020-12/schema", got "http://json-schema.org/draft-07/schema#"',
      },
      {
        name: "another draft further down",
        schema: { items: { $schema: "x" } },
        want: "config.schema/items: $schema is supported at the root only",
      },
      {
        name: "an id further down, which would move references",
        schema: { items: { $id: "https://example.com/x" } },
        want: "config.schema/items: $id is supported at the root only",
      },
      {
        name: "an id that is no text",
        schema: { $id: 1 },
        want: "config.schema/$id: expected a string, got 1",
      },
      {
        name: "an unknown type",
        schema: { type: ["string", "text"] },
        want: "config.schema/type: expected one or more of null, boolean, object, array, number, integer, string, got a list",
      },
      {
        name: "no type",
        schema: { type: [] },
        want: "config.schema/type: expected one or more of null, boolean, object, array, number, integer, string, got a list",
      },
      {
        name: "a type that is no text",
        schema: { type: 1 },
        want: "config.schema/type: expected a list of strings, got 1",
      },
      {
        name: "an enum that is no list",
        schema: { enum: "a" },
        want: 'config.schema/enum: expected a list, got "a"',
      },
      {
        name: "a negative count",
        schema: { minLength: -1 },
        want: "config.schema/minLength: expected a whole number of at least 0, got -1",
      },
      {
        name: "half a count",
        schema: { maxItems: 0.5 },
        want: "config.schema/maxItems: expected a whole number of at least 0, got 0.5",
      },
      {
        name: "a limit that is a text",
        schema: { minimum: "1" },
        want: 'config.schema/minimum: expected a number, got "1"',
      },
      {
        name: "multiples of 0",
        schema: { multipleOf: 0 },
        want: "config.schema/multipleOf: expected a number above 0, got 0",
      },
      {
        name: "uniqueItems that is no boolean",
        schema: { uniqueItems: 1 },
        want: "config.schema/uniqueItems: expected true or false, got 1",
      },
      {
        name: "required that is a boolean",
        schema: { properties: { a: { required: true } } },
        want: "config.schema/properties/a/required: expected a list of strings, got true",
      },
      {
        name: "required that holds no texts",
        schema: { required: [1] },
        want: "config.schema/required: expected a list of strings, got a list",
      },
      {
        name: "properties that are a list",
        schema: { properties: [] },
        want: "config.schema/properties: expected an object, got a list",
      },
      {
        name: "a property that is no schema",
        schema: { properties: { "a/b": "string" } },
        want: 'config.schema/properties/a~1b: expected a schema, got "string"',
      },
      {
        name: "items of earlier drafts",
        schema: { items: [{}] },
        want: "config.schema/items: expected a schema, got a list",
      },
      {
        name: "an empty anyOf",
        schema: { anyOf: [] },
        want: "config.schema/anyOf: expected a list of at least one schema, got a list",
      },
      {
        name: "then that is no schema",
        schema: { then: 1 },
        want: "config.schema/then: expected a schema, got 1",
      },
      {
        name: "minContains that is no count",
        schema: { minContains: "1" },
        want: 'config.schema/minContains: expected a whole number of at least 0, got "1"',
      },
      {
        name: "a dependency that is no list",
        schema: { dependentRequired: { a: "b" } },
        want: 'config.schema/dependentRequired/a: expected a list of strings, got "b"',
      },
      {
        name: "a pattern with lookahead",
        schema: { properties: { a: { pattern: "^(?!x)" } } },
        want: 'config.schema/properties/a/pattern: cannot compile the pattern "^(?!x)": invalid or unsupported Perl syntax: `(?!` (RE2 syntax, without lookaround and backreferences)',
      },
      {
        name: "a pattern that is no text",
        schema: { pattern: 1 },
        want: "config.schema/pattern: expected a string, got 1",
      },
      {
        name: "a broken pattern as name",
        schema: { patternProperties: { "(": true } },
        want: 'config.schema/patternProperties/(: cannot compile the pattern "(": ',
      },
      {
        name: "a $ref that is no text",
        schema: { $ref: 1 },
        want: "config.schema/$ref: expected a string, got 1",
      },
    ])("$name", ({ schema, want }) => {
      expect(() => compileConfigSchema(schema)).toThrow(want);
    });
  });

  it("does not write out what no scalar can equal", () => {
    const config = Array<number>(200_000).fill(1);

    expect(checkerOf({ enum: ["a", 1] })(config)).toBe(
      '/: value must be one of "a", 1',
    );
  });

  it("takes constants as large as a manifest", () => {
    const value = nested(60, Array<JsonValue>(20_000).fill({}));

    expect(checkerOf({ const: value, enum: [value] })(1)).toBe(
      "/: value must be an object",
    );
  });

  it("refuses a pointer longer than 1024 characters", () => {
    const named = (name: string): JsonValue => ({ $defs: { [name]: {} } });

    expect(checkerOf(named("n".repeat(1017)))({})).toBeNull();
    expect(() => compileConfigSchema(named("n".repeat(1018)))).toThrow(
      /^config\.schema\/\$defs\/n{100,200}…: its JSON pointer is longer than 1024 characters$/,
    );
  });

  describe("gives up on", () => {
    const twice = (schema: JsonValue) => ({ anyOf: [schema, schema] });
    const doubling = Object.fromEntries(
      Array.from({ length: 40 }, (_, n) => [
        `a${String(n)}`,
        { allOf: Array(2).fill({ $ref: `#/$defs/a${String(n + 1)}` }) },
      ]),
    );

    it.each<{ name: string; schema: JsonValue; config: JsonValue }>([
      { name: "a schema that is itself", schema: { $ref: "#" }, config: {} },
      {
        name: "a schema that is itself in two ways",
        schema: twice({ $ref: "#" }),
        config: {},
      },
      {
        name: "a schema that is not itself",
        schema: { not: { $ref: "#" } },
        config: {},
      },
      {
        name: "names that have names",
        schema: {
          propertyNames: { $ref: "#" },
          dependentSchemas: {},
          if: { $ref: "#" },
        },
        config: { a: 1 },
      },
      {
        name: "two ways at every level of the config",
        schema: twice({
          required: ["a"],
          properties: { a: { $ref: "#" }, b: false },
        }),
        config: nested(30, { b: 1 }),
      },
      {
        name: "two ways at every level of the schema",
        schema: {
          $ref: "#/$defs/a0",
          $defs: { ...doubling, a40: { type: "object" } },
        },
        config: {},
      },
      {
        name: "the same while it notes what was judged",
        schema: {
          $ref: "#/$defs/a0",
          $defs: { ...doubling, a40: { properties: { a: true } } },
          unevaluatedProperties: false,
        },
        config: { a: 1 },
      },
      {
        name: "a config too deep",
        schema: { properties: { a: { $ref: "#" } } },
        config: nested(10_000, {}),
      },
      {
        name: "a config too deep to compare",
        schema: { properties: { a: { uniqueItems: true } } },
        config: { a: [nested(10_000, {})] },
      },
      {
        name: "a config too deep to be a constant",
        schema: { const: { a: {} } },
        config: nested(10_000, {}),
      },
      {
        name: "too many items",
        schema: { items: { type: "number" } },
        config: Array<number>(200_000).fill(1),
      },
      {
        name: "too many properties",
        schema: {
          additionalProperties: false,
          patternProperties: { "": true },
        },
        config: Object.fromEntries(
          Array.from({ length: 100_000 }, (_, n) => [`a${String(n)}`, 1]),
        ),
      },
      {
        name: "too many items to compare",
        schema: { uniqueItems: true },
        config: Array.from({ length: 200_000 }, (_, n) => n),
      },
      {
        name: "too many texts to count",
        schema: { items: { maxLength: 1000 } },
        config: Array<string>(10_000).fill("x".repeat(1000)),
      },
      {
        name: "a pattern that is large for a text that is long",
        schema: { pattern: "[ab]*a[ab]{900}$" },
        config: "ab".repeat(50_000),
      },
    ])("$name", ({ schema, config }) => {
      expect(compileConfigSchema(schema).check(config)).toBe(TOO_MUCH);
    });

    it("none of what configs are like", () => {
      const check = checkerOf({
        type: "object",
        additionalProperties: {
          type: "object",
          required: ["name"],
          properties: {
            name: {
              type: "string",
              minLength: 1,
              pattern: "^[a-z0-9-]{1,63}$",
            },
            size: { type: "integer", minimum: 1 },
            tags: {
              type: "array",
              items: { type: "string" },
              uniqueItems: true,
            },
          },
          additionalProperties: false,
        },
      });
      const field = { name: "database-1", size: 3, tags: ["a", "b"] };

      expect(
        check(
          Object.fromEntries(
            Array.from({ length: 1000 }, (_, n) => [`f${String(n)}`, field]),
          ),
        ),
      ).toBeNull();
      expect(
        compileConfigSchema({ properties: { a: { $ref: "#" } } }).check(
          nested(100, {}),
        ),
      ).toBeNull();
    });
  });

  it.each<{ schema: JsonValue; config: JsonValue; isRefused: boolean }>([
    {
      schema: {
        if: { properties: { a: { const: 1 } } },
        then: { minProperties: 1 },
        else: { minProperties: 1 },
        unevaluatedProperties: false,
      },
      config: { a: 2 },
      isRefused: true,
    },
    {
      schema: {
        items: {
          anyOf: [
            {
              properties: { a: { const: 1 }, k: true },
              required: ["a"],
            },
            { properties: { k: true } },
          ],
          unevaluatedProperties: false,
        },
      },
      config: [
        { a: 1, k: 1 },
        { a: 2, k: 1 },
      ],
      isRefused: true,
    },
    {
      schema: {
        oneOf: [{ maxItems: 1 }, { prefixItems: [{ type: "string" }] }],
        unevaluatedItems: { type: "null" },
      },
      config: [1],
      isRefused: true,
    },
    {
      schema: { contains: { type: "string" }, unevaluatedItems: false },
      config: ["a", 1],
      isRefused: true,
    },
    {
      schema: {
        if: { additionalProperties: true },
        unevaluatedProperties: false,
      },
      config: { a: 1 },
      isRefused: false,
    },
  ])("judges what ajv gets wrong: $schema", ({ schema, config, isRefused }) => {
    expect(checkerOf(schema)(config) !== null).toBe(isRefused);
  });

  it("agrees with ajv", () => {
    fc.assert(
      fc.property(
        arbitrarySchema(),
        fc.array(arbitraryConfig(), { minLength: 10, maxLength: 10 }),
        (schema, configs) => {
          const check = checkerOf(schema);
          const ajv = new Ajv2020({
            strict: false,
            ownProperties: true,
            validateFormats: false,
          });
          // It notes what was judged even where nobody asks, and stumbles over its notes.
          ajv.opts.unevaluated = false;
          const validate = ajv.compile(schema as object);

          for (const config of configs) {
            const message = check(config);
            expect({
              schema,
              config,
              message,
              valid: message === null,
            }).toEqual({
              schema,
              config,
              message,
              valid: validate(config),
            });
          }
        },
      ),
      { numRuns: 100 },
    );
  });
});

function checkerOf(schema: JsonValue): (config: JsonValue) => string | null {
  const compiled = compileConfigSchema(schema);
  return (config) => compiled.check(config);
}

function nested(levels: number, inner: JsonValue): JsonValue {
  let value = inner;
  for (let level = 0; level < levels; level++) value = { a: value };
  return value;
}

/** No names of Object.prototype, nor objects without one: with those ajv is wrong. */
const NAMES = ["a", "b", "c", "d"];
const SCALARS: JsonValue[] = [
  null,
  true,
  false,
  0,
  1,
  1.5,
  4,
  "",
  "a",
  "ab",
  "b",
];

function arbitraryConfig(): fc.Arbitrary<JsonValue> {
  return fc.letrec<{ value: JsonValue }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      fc.constantFrom(...SCALARS),
      fc.array(tie("value"), { maxLength: 4 }),
      dictionary(tie("value")),
      dictionary(tie("value")),
    ),
  })).value;
}

function arbitrarySchema(): fc.Arbitrary<JsonValue> {
  const count = fc.nat(3);
  const limit = fc.constantFrom(0, 1, 1.5, 4);
  const names = fc.subarray(NAMES);
  const type = fc.constantFrom(
    "null",
    "boolean",
    "object",
    "array",
    "number",
    "integer",
    "string",
  );
  const pattern = fc.constantFrom("^a", "b$", "^[ab]+$", "^$");
  return fc.letrec<{ schema: JsonValue }>((tie) => {
    const schema = tie("schema");
    const schemas = fc.array(schema, { minLength: 1, maxLength: 3 });
    const keywords: Record<string, fc.Arbitrary<JsonValue>> = {
      type: fc.oneof(
        type,
        fc.uniqueArray(type, { minLength: 1, maxLength: 3 }),
      ),
      const: fc.constantFrom(...SCALARS, [], { a: 1 }),
      enum: fc.uniqueArray(
        fc.constantFrom<JsonValue>(...SCALARS, [1], { a: 1 }),
        { minLength: 1, maxLength: 4 },
      ),
      multipleOf: fc.constantFrom(1, 1.5, 2),
      minimum: limit,
      maximum: limit,
      exclusiveMinimum: limit,
      exclusiveMaximum: limit,
      minLength: count,
      maxLength: count,
      pattern,
      minItems: count,
      maxItems: count,
      uniqueItems: fc.boolean(),
      minProperties: count,
      maxProperties: count,
      required: names,
      dependentRequired: dictionary(names),
      propertyNames: schema,
      properties: dictionary(schema),
      patternProperties: fc.dictionary(pattern, schema, { maxKeys: 2 }),
      additionalProperties: schema,
      prefixItems: schemas,
      items: schema,
      dependentSchemas: dictionary(schema),
      allOf: schemas,
      anyOf: schemas,
      oneOf: schemas,
      not: schema,
      if: schema,
      then: schema,
      else: schema,
    };
    const keyword = fc.constantFrom(...Object.keys(keywords)).chain((name) =>
      (keywords[name] ?? fc.constant(null)).map((value) => ({
        [name]: value,
      })),
    );
    return {
      schema: fc.oneof(
        { maxDepth: 4, withCrossShrink: true },
        fc.boolean(),
        keyword,
        fc
          .array(keyword, { minLength: 2, maxLength: 4 })
          .map((parts) => Object.assign({}, ...parts) as JsonValue),
      ),
    };
  }).schema;
}

function dictionary<T extends JsonValue>(
  value: fc.Arbitrary<T>,
): fc.Arbitrary<JsonValue> {
  return fc.dictionary(fc.constantFrom(...NAMES), value, {
    maxKeys: 3,
    noNullPrototype: true,
  });
}
