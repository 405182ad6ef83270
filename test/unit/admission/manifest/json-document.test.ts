import fc from "fast-check";
import { describe, expect, it } from "vitest";

import { parseJson } from "../../../../src/admission/manifest/json-document.js";

const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);

describe("admission/manifest/json-document", () => {
  it("reads what JSON.parse reads, but for what it refuses", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);

        expect(parseJson(text)).toEqual(JSON.parse(text));
      }),
    );
  });

  it.each([
    { name: "YAML", text: "a: 1", want: "it is not JSON: " },
    { name: "a comment", text: "{} // x", want: "it is not JSON: " },
    { name: "a trailing comma", text: '{"a": 1,}', want: "it is not JSON: " },
    { name: "NaN (C57)", text: "NaN", want: "it is not JSON: " },
    {
      name: "a number beyond all doubles (C57)",
      text: '{"a": [1, -1e999]}',
      want: "-1e999 is out of the range of a number",
    },
    {
      name: "a name twice",
      text: '{"a": {"abi": 1, "b": 2, "abi": 2}}',
      want: 'an object has the field "abi" twice',
    },
    {
      name: "a name twice, once escaped",
      text: '{"abi": 1, "\\u0061bi": 2}',
      want: 'an object has the field "abi" twice',
    },
    {
      name: "a name twice, with quotes in it",
      text: '{"a\\"b": 1, "a\\"b": 2}',
      want: 'an object has the field "a\\"b" twice',
    },
    {
      name: "65 levels",
      text: nested(65),
      want: "it nests deeper than 64 levels",
    },
    {
      name: "32 000 levels (C73)",
      text: nested(32_000),
      want: "it nests deeper than 64 levels",
    },
  ])("refuses $name", ({ text, want }) => {
    expect(() => parseJson(text)).toThrow(want);
  });

  it("does not print what is no JSON on several lines", () => {
    expect(() => parseJson("{\n\u001b[31m")).toThrow(
      /^it is not JSON: [\x20-\x7e]*$/,
    );
  });

  it.each([
    { name: "the same name in two objects", text: '[{"a": 1}, {"a": 1}]' },
    { name: "a name inside its own object", text: '{"a": {"a": {"a": 1}}}' },
    { name: "texts like names and brackets", text: '{"a": ":[{", "b": ":[{"}' },
    { name: "64 levels", text: nested(64) },
    {
      name: "64 levels again and again",
      text: `[${Array(9).fill(nested(63)).join()}]`,
    },
  ])("takes $name", ({ text }) => {
    expect(parseJson(text)).toEqual(JSON.parse(text));
  });
});
