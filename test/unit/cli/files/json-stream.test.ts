import fc from "fast-check";
import { describe, expect, it } from "vitest";

import { splitJsonStream } from "../../../../src/cli/files/json-stream.js";

describe("cli/files/json-stream", () => {
  it("cuts a stream of objects apart, blanks before each kept", () => {
    expect(splitJsonStream('{"a": "}{"}\n\n {"b": [{}]}{"c": 1}\n')).toEqual([
      '{"a": "}{"}',
      '\n\n {"b": [{}]}',
      '{"c": 1}',
    ]);
  });

  it("cuts at the same places as JSON does, whatever is in the strings", () => {
    const objects = fc.array(fc.dictionary(fc.string(), fc.jsonValue()), {
      minLength: 2,
    });
    fc.assert(
      fc.property(objects, fc.constantFrom("", " ", "\n"), (values, blank) => {
        const texts = values.map((value) => JSON.stringify(value));

        expect(splitJsonStream(texts.join(blank))).toEqual(
          texts.map((text, i) => (i === 0 ? text : blank + text)),
        );
      }),
    );
  });

  it.each([
    { name: "nothing", text: "" },
    { name: "one object", text: '{"a": 1}' },
    { name: "a list", text: "[1] [2]" },
    { name: "YAML documents of JSON", text: '{"a": 1}\n---\n{"b": 1}' },
    { name: "a flow map that is no JSON", text: "{a: 1}\n{b: 1}" },
    { name: "something behind", text: '{"a": 1}{"b": 1} x' },
    { name: "a bracket too many", text: '{"a": 1}}{"b": 1}' },
    { name: "brackets that do not match", text: '{"a": 1]{"b": 1}' },
    { name: "an unfinished string", text: '{"a": 1}{"b": "}' },
  ])("leaves $name alone", ({ text }) => {
    expect(splitJsonStream(text)).toBeNull();
  });
});
