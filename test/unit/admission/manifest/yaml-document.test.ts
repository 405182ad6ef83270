import fc from "fast-check";
import { stringify } from "yaml";
import { describe, expect, it } from "vitest";

import { parseYaml } from "../../../../src/admission/manifest/yaml-document.js";

const deep = "it nests deeper than 64 levels";

describe("admission/manifest/yaml-document", () => {
  it("reads what YAML writes", () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "grapheme" }), (value) => {
        // JSON has no -0.
        const json = JSON.parse(JSON.stringify(value)) as unknown;
        const text = stringify(json, { aliasDuplicateObjects: false });

        expect(parseYaml(text)).toEqual(json);
      }),
    );
  });

  it.each([
    {
      name: "JSON",
      text: '{"a": [1, null, true, "x"]}',
      want: { a: [1, null, true, "x"] },
    },
    { name: "comments", text: "# x\na: 1 # y\n", want: { a: 1 } },
    { name: "CRLF", text: "a:\r\n  - b\r\n  - c\r\n", want: { a: ["b", "c"] } },
    {
      name: "one document between markers",
      text: "---\na: 1\n...\n",
      want: { a: 1 },
    },
    {
      name: "the directive of its version",
      text: "%YAML 1.2\n---\na: yes",
      want: { a: "yes" },
    },
    { name: "an absent value", text: "a:", want: { a: null } },
    {
      name: "numbers of YAML 1.2",
      text: "[017, 0o17, 0xf, 1e3]",
      want: [17, 15, 15, 1000],
    },
    {
      name: "booleans of YAML 1.1 as texts",
      text: "[yes, No, on, y]",
      want: ["yes", "No", "on", "y"],
    },
    {
      name: "keys as texts",
      text: "{404: a, true: b, null: c, 1.0: d}",
      want: { 404: "a", true: "b", null: "c", "1.0": "d" },
    },
    {
      name: "an anchor that nothing refers to",
      text: "a: &x 1",
      want: { a: 1 },
    },
    { name: "tags of the core schema", text: "a: !!str 1", want: { a: "1" } },
    {
      name: "a quoted key that looks like a merge key",
      text: '"<<": 1',
      want: { "<<": 1 },
    },
    { name: "tabs between a key and its value", text: "a:\t1", want: { a: 1 } },
    {
      name: "64 levels of lists",
      text: "[".repeat(64) + "]".repeat(64),
      want: expect.any(Array) as unknown,
    },
    {
      name: "64 levels of maps",
      text: `${"{a: ".repeat(64)}1${"}".repeat(64)}`,
      want: expect.any(Object) as unknown,
    },
  ])("reads $name", ({ text, want }) => {
    expect(parseYaml(text)).toEqual(want);
  });

  it("keeps __proto__ as a key like any other", () => {
    const value = parseYaml("__proto__: {a: 1}") as object;

    expect(Object.keys(value)).toEqual(["__proto__"]);
    expect("a" in value).toBe(false);
  });

  it.each([
    {
      name: "an alias",
      text: "a: &x 1\nb: *x",
      want: "line 2: aliases are not supported",
    },
    { name: "an alias as key", text: "a: &x b\n*x : 1", want: "line 2: " },
    {
      name: "a merge key",
      text: "a: 1\n<<: {b: 1}",
      want: "line 2: merge keys are not supported",
    },
    {
      name: "a key twice",
      text: "a: 1\nb:\n  c: 1\n  c: 2",
      want: 'line 4: the key "c" comes twice',
    },
    {
      name: "a key twice, once quoted",
      text: 'a: 1\n"a": 2',
      want: 'line 2: the key "a" comes twice',
    },
    {
      name: "a key twice, once a number",
      text: '1: a\n"1": b',
      want: 'line 2: the key "1" comes twice',
    },
    { name: "a list as key", text: "? [a]\n: 1", want: "line 1: " },
    {
      name: "two documents (C74)",
      text: "a: 1\n---\nb: 1",
      want: "line 2: expected one document, got another",
    },
    {
      name: "50 documents (C74)",
      text: "--- a\n".repeat(50),
      want: "line 2: expected one document, got another",
    },
    {
      name: "a custom tag",
      text: "a: !env HOME",
      want: "line 1: Unresolved tag: !env",
    },
    {
      name: "a binary",
      text: "a: !!binary aGk=",
      want: "line 1: Unresolved tag: tag:yaml.org,2002:binary",
    },
    {
      name: "YAML 1.1",
      text: "%YAML 1.1\n---\na: yes",
      want: 'line 1: expected YAML 1.2, got a directive for "1.1"',
    },
    {
      name: "tabs as indentation (C74)",
      text: "a:\n\tb: 1",
      want: "line 2: Tabs are not allowed as indentation",
    },
    {
      name: "infinity (C57)",
      text: "a: -.inf",
      want: "line 1: -.inf is out of the range of a number",
    },
    {
      name: "not a number (C57)",
      text: "a: .nan",
      want: "line 1: .nan is out of the range of a number",
    },
    {
      name: "a number beyond all doubles",
      text: "a: 1e999",
      want: "line 1: 1e999 is out of the range of a number",
    },
    { name: "an open bracket", text: "a: [1", want: "line 1: " },
    {
      name: "65 levels of lists",
      text: "[".repeat(65) + "]".repeat(65),
      want: deep,
    },
    {
      name: "65 levels of maps",
      text: `${"{a: ".repeat(65)}1${"}".repeat(65)}`,
      want: deep,
    },
    // C73: each of these overflows the stack of a parser that calls itself.
    { name: "5000 open brackets (C73)", text: "[".repeat(5000), want: deep },
    {
      name: "30 000 closed brackets (C73)",
      text: "[".repeat(30_000) + "]".repeat(30_000),
      want: deep,
    },
    { name: "15 000 flow maps (C73)", text: "{a: ".repeat(15_000), want: deep },
    {
      name: "30 000 nested dashes (C73)",
      text: "- ".repeat(30_000),
      want: deep,
    },
    {
      name: "30 000 explicit keys (C73)",
      text: "? ".repeat(30_000),
      want: deep,
    },
    {
      name: "an alias bomb (C73)",
      text: bomb(),
      want: "line 2: aliases are not supported",
    },
    {
      name: "60 000 commas (C73)",
      text: `[${",".repeat(60_000)}]`,
      want: "it has more than 24576 YAML tokens",
    },
    {
      name: "30 000 bad escapes",
      text: `"${"\\x".repeat(30_000)}"`,
      want: "line 1: Invalid escape sequence",
    },
  ])("refuses $name", ({ text, want }) => {
    expect(() => parseYaml(text)).toThrow(want);
  });

  // All the others would each be made into an Error.
  it.each([
    {
      name: "a warning before an error",
      text: 'a: !env HOME\nb: "\\x"',
      want: "line 1: Unresolved tag: !env",
    },
    {
      name: "60 000 brackets that nothing opened",
      text: "]".repeat(60_000),
      want: "line 1: Unexpected flow-seq-end token",
    },
    {
      name: "a problem inside of others, said once",
      text: 'a:\n  - [{b: "\\x"}]',
      want: /^line 2: Invalid escape sequence \\\\x\\"$/,
    },
  ])("stops at the first problem: $name", ({ text, want }) => {
    expect(() => parseYaml(text)).toThrow(want);
  });

  it("reads a manifest of 64 KiB whose lines are short", () => {
    const names = Array.from(
      { length: 1620 },
      (_, i) => `property${String(i)}`,
    );
    const properties = names.map((name) => [name, { type: "string" }]);
    const text = stringify({
      config: {
        schema: { properties: Object.fromEntries(properties) as object },
      },
    });

    expect(text.length).toBeGreaterThan(63 * 1024);
    expect(text.length).toBeLessThan(64 * 1024);
    expect(() => parseYaml(text)).not.toThrow();
  });

  it("says on one line what is wrong", () => {
    expect(() => parseYaml("a: !\u001b[31m\u202e x\nb: [")).toThrow(
      /^line \d+: [\x20-\x7e]*$/,
    );
  });
});

/** Nine times nine times nine… texts, if it were expanded. */
function bomb(): string {
  const names = ["a", "b", "c", "d", "e", "f", "g", "h"];
  const lines = names.map((name, index) => {
    const item = index === 0 ? "x" : `*${names[index - 1] ?? ""}`;
    return `${name}: &${name} [${Array(9).fill(item).join()}]`;
  });
  return lines.join("\n");
}
