import fc from "fast-check";
import { describe, expect, it } from "vitest";

import { FileError } from "../../../../src/cli/files/error.js";
import { readYaml } from "../../../../src/cli/files/yaml.js";
import { errorText } from "../../../../src/errors.js";
import { writeYaml } from "../../../../src/cli/render/write-yaml.js";

const values = (text: string) => readYaml(text, "f").map(({ value }) => value);

/** The message of the FileError that reading throws, once. */
function refusalOf(text: string): string {
  try {
    readYaml(text, "f");
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(FileError);
    return errorText(thrown);
  }
  return "read";
}

describe("cli/files/yaml", () => {
  it.each([
    {
      name: "plain text as Kubernetes does, in keys too",
      text: "on: yes\n0x10: 07\n1: 1:30\nday: 2001-01-01\n",
      want: { true: true, 16: 7, 1: "1:30", day: "2001-01-01" },
    },
    {
      name: "quoted text as it is",
      text: "a: 'yes'\nb: \"07\"\n\"on\": '~'\n'': \"\"\n",
      want: { a: "yes", b: "07", on: "~", "": "" },
    },
    {
      name: "nothing as null",
      text: "a:\nb: ~\nc: [~]\nd: {e}\n",
      want: { a: null, b: null, c: [null], d: { e: null } },
    },
    {
      name: "explicit tags",
      text: "a: !!str 07\nb: !!int '07'\nc: !!float 1\nd: !!bool 'yes'\ne: !!null ''\nf: ! 12\ng: !!map {}\nh: !!seq []\n",
      want: { a: "07", b: 7, c: 1, d: true, e: null, f: "12", g: {}, h: [] },
    },
    {
      name: "block and folded text",
      text: "a: |\n  x\n  yes\nb: >-\n  on\n  off\nc: on\n  off\n",
      want: { a: "x\nyes\n", b: "on off", c: "on off" },
    },
    {
      name: "aliases, each of what its anchor was last",
      text: "a: &x 1\nb: *x\nc: &x [yes]\nd: *x\n",
      want: { a: 1, b: 1, c: [true], d: [true] },
    },
    {
      name: "an alias as key",
      text: "a: &x yes\n*x : b\n",
      want: { a: true, true: "b" },
    },
    {
      name: "a merge in its place: it replaces what is before it",
      text: "x: &x {p: 1, q: 1}\nb: {p: 0, <<: *x}\nc: {<<: *x, p: 0}\n",
      want: { x: { p: 1, q: 1 }, b: { p: 1, q: 1 }, c: { p: 0, q: 1 } },
    },
    {
      name: "a merge of several, the first of which wins",
      text: "x: &x {p: 1}\nz: &z {p: 2, q: 2}\nb: {<<: [*x, *z, {r: 3}]}\n",
      want: { x: { p: 1 }, z: { p: 2, q: 2 }, b: { p: 1, q: 2, r: 3 } },
    },
    {
      name: "a quoted or tagged << as any key",
      text: "a: {'<<': {p: 1}}\nb: {!!str <<: 1}\n",
      want: { a: { "<<": { p: 1 } }, b: { "<<": 1 } },
    },
    {
      name: "a byte order mark, CRLF and tabs between tokens",
      text: "a:\t1\r\nb:\t[1,\t2]\r\n---\r\n\uFEFFc: 1\r\n",
      want: { a: 1, b: [1, 2] },
    },
  ])("reads $name", ({ text, want }) => {
    expect(values(text)[0]).toEqual(want);
  });

  it("reads a document behind each mark, a second byte order mark included", () => {
    const text = "---\n---\na: 1\n--- # two\n\uFEFFb: 2\n...\n# c\n---\n~\n";

    expect(readYaml(text, "f")).toEqual([
      { where: "f, line 3", value: { a: 1 } },
      { where: "f, line 5", value: { b: 2 } },
    ]);
  });

  it("reads JSON objects that follow each other", () => {
    const text =
      '{"a":\t1}\n{"b": "\\u00e9\\/"}\n\n{"c":\n [9007199254740993]}';

    expect(readYaml(text, "f")).toEqual([
      { where: "f, line 1", value: { a: 1 } },
      { where: "f, line 2", value: { b: "é/" } },
      { where: "f, line 4", value: { c: [9007199254740992] } },
    ]);
  });

  it("reads 50 documents", () => {
    const text = Array.from({ length: 50 }, (_, i) => `a: ${i}\n`).join(
      "---\n",
    );

    expect(values(text).at(-1)).toEqual({ a: 49 });
    expect(values(text)).toHaveLength(50);
  });

  it("reads every JSON value for what it is", () => {
    const json = fc.dictionary(fc.string(), fc.jsonValue());
    fc.assert(
      fc.property(json, fc.boolean(), (value, isPretty) => {
        const text = JSON.stringify(value, null, isPretty ? 2 : 0);
        fc.pre(!text.includes("__proto__"));

        expect(values(text)).toEqual([JSON.parse(text)]);
      }),
    );
  });

  it("reads what the program writes for what it was", () => {
    const text = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.constantFrom(
        ..."yes on ~ 07 0o7 1_0 1:30 .inf << = 2001-01-01".split(" "),
      ),
    );
    const json = fc.dictionary(
      text,
      fc.oneof(text, fc.integer(), fc.boolean(), fc.constant(null)),
    );
    fc.assert(
      fc.property(json, (value) => {
        fc.pre(!JSON.stringify(value).includes("__proto__"));
        const written = writeYaml(JSON.parse(JSON.stringify(value)) as never);

        expect(values(written)).toEqual([JSON.parse(JSON.stringify(value))]);
      }),
    );
  });

  it.each([
    {
      name: "a key that comes twice",
      text: "a: 1\nb: 2\na: 3\n",
      want: 'line 3: the key "a" comes twice',
    },
    {
      name: "a key that comes twice in other words",
      text: "yes: 1\ntrue: 2\n",
      want: 'line 2: the key "true" comes twice',
    },
    {
      name: "one in a JSON stream",
      text: '{}\n{"a": 1,\n"a": 2}',
      want: 'line 3: the key "a" comes twice',
    },
    {
      name: "one in a later document",
      text: "a: 1\n---\nb: 1\n\n'b': 1\n",
      want: 'line 5: the key "b" comes twice',
    },
    {
      name: "a number that JSON cannot hold",
      text: "a: [1,\n -.inf]",
      want: 'line 2: "-.inf" is no number that JSON can hold',
    },
    {
      name: "no number at all",
      text: "a: .NaN",
      want: 'line 1: ".NaN" is no number',
    },
    {
      name: "a value that is not of its tag",
      text: "a: !!int 1.5",
      want: 'line 1: "1.5" is no value of the tag "tag:yaml.org,2002:int"',
    },
    {
      name: "a boolean that is none",
      text: "a: !!bool maybe",
      want: 'line 1: "maybe" is no value of',
    },
    {
      name: "an empty value that is no null",
      text: "a: !!null x",
      want: 'line 1: "x" is no value of',
    },
    {
      name: "text that is no number",
      text: "a: !!float x",
      want: 'line 1: "x" is no value of',
    },
    {
      name: "a tag of one's own",
      text: "a: !mine 1",
      want: "line 1: Unresolved tag: !mine",
    },
    {
      name: "a binary",
      text: "a: !!binary aGk=",
      want: "line 1: Unresolved tag",
    },
    {
      name: "a null as key",
      text: "a: 1\n~: 2",
      want: "line 2: expected text as key: write it in quotes",
    },
    {
      name: "a fraction as key",
      text: "1.5: 2",
      want: "line 1: expected text as key",
    },
    {
      name: "a rounded number as key",
      text: "9007199254740993: 2",
      want: "line 1: expected text as key",
    },
    {
      name: "a list as key",
      text: "[a]: b",
      want: "line 1: expected text as key",
    },
    {
      name: "__proto__ as key",
      text: '{"a": {"__proto__": 1}}',
      want: "line 1: the name __proto__ is not supported",
    },
    {
      name: "an alias of nothing",
      text: "a: 1\nb: *a",
      want: 'line 2: the alias "*a" stands for nothing before it',
    },
    {
      name: "an alias of itself",
      text: "a: &x 1\nb: &x [*x]",
      want: 'line 2: the alias "*x" stands for nothing before it',
    },
    {
      name: "an alias of another document",
      text: "a: &x 1\n---\nb: *x",
      want: 'line 3: the alias "*x"',
    },
    {
      name: "a merge of no object",
      text: "a: {<<: [1]}",
      want: "line 1: expected an object, or a list of objects, to merge",
    },
    {
      name: "a merge of nothing",
      text: "a: {<<}",
      want: "line 1: expected an object, or a list of objects, to merge",
    },
    {
      name: "a tab for indentation",
      text: "a:\n\tb: 1",
      want: "line 2: Tabs are not allowed as indentation",
    },
    {
      name: "an open bracket",
      text: "a: [1\nb: 2\n",
      want: "line 2: Flow sequence in block collection",
    },
    {
      name: "a control character",
      text: "a: 1\nb: 'x\u0007'",
      want: 'line 2: the control character "\\u0007"',
    },
    {
      name: "a delete character",
      text: "a: \u007f",
      want: 'line 1: the control character "\\u007f"',
    },
    {
      name: "deep flow lists",
      text: "[".repeat(5000),
      want: "line 1: it nests deeper than 256 levels",
    },
    {
      name: "deep flow maps",
      text: "{a: ".repeat(5000),
      want: "line 1: it nests deeper than 256 levels",
    },
    {
      name: "deep block lists",
      text: "- ".repeat(5000),
      want: "line 1: it nests deeper than 256 levels",
    },
    {
      name: "deep block maps",
      text: Array.from({ length: 1000 }, (_, i) => `${" ".repeat(i)}a:\n`).join(
        "",
      ),
      want: /line 25\d: it nests deeper than 256 levels/,
    },
    {
      name: "aliases of aliases",
      text: `a: &a [x,x,x,x,x,x,x,x,x]\n${"bcdefghi"
        .split("")
        .map(
          (name, i) =>
            `${name}: &${name} [${Array(9)
              .fill(`*${"abcdefgh".charAt(i)}`)
              .join(",")}]\n`,
        )
        .join("")}`,
      want: /line \d: the aliases repeat more than 1000000 values/,
    },
    {
      name: "merges of merges",
      text: `a: &a {${Array.from({ length: 1000 }, (_, i) => `k${i}: 1`).join(",")}}\nb: [${"{<<: *a},".repeat(1000)}]\n`,
      want: "line 2: the aliases repeat more than 1000000 values",
    },
    {
      name: "aliases in many documents",
      text: `a: &a [${"x,".repeat(1000)}]\nb: [${"*a,".repeat(100)}]\n---\n`.repeat(
        20,
      ),
      want: /line \d\d: the aliases repeat more than 1000000 values/,
    },
    {
      name: "too many tokens",
      text: "\n".repeat(2_000_001),
      want: "line 2000002: the document has more than 2000000 tokens",
    },
  ])("refuses $name", ({ text, want }) => {
    const refusal = refusalOf(text);

    expect(refusal).toMatch(want);
    expect(refusal).toMatch(/^f, line [^\n]*$/);
  });

  it("counts the tokens of each document alone", () => {
    const text = `a: 1${"\n".repeat(700_000)}---\n`.repeat(3);

    expect(readYaml(text, "f")).toHaveLength(3);
  });

  it("nests 256 levels", () => {
    const text = "[".repeat(255) + "{a: 1}" + "]".repeat(255);

    expect(values(text)).toHaveLength(1);
  });

  it("escapes the file's name", () => {
    expect(() => readYaml("a: [", "f\u001b[31m")).toThrow(
      /^f\\u001b\[31m, line/,
    );
  });
});
