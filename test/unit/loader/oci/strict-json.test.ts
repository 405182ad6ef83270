import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  member,
  parseStrictJson,
} from "../../../../src/loader/oci/strict-json.js";

const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);

describe("loader/oci/strict-json", () => {
  it.each([
    { text: "null" },
    { text: ' {"a": [1, -2.5e3, "x", true, null, {}]} ' },
    { text: '{"a": {"a": 1}, "b": {"a": 1}}' },
    { text: '[{"a": 1}, {"a": 1}]' },
    { text: '{"a": "a", "b": "\\"a\\": {", "A": 1}' },
    { text: '{"__proto__": 1, "constructor": 2}' },
    { text: '"\u{1f600}\\ud800"' },
    { text: nested(32) },
  ])("reads $text", ({ text }) => {
    expect(parseStrictJson(Buffer.from(text))).toEqual({
      kind: "ok",
      value: JSON.parse(text) as unknown,
    });
  });

  it.each([
    { text: '{"a": 1, "a": 1}', want: 'an object has the field "a" twice' },
    {
      text: '{"x": [{"digest": "1", "n": {"n": 1}, "digest": "2"}]}',
      want: 'an object has the field "digest" twice',
    },
    {
      text: String.raw`{"a": 1, "\u0061": 2}`,
      want: 'an object has the field "a" twice',
    },
    {
      text: '{"__proto__": 1, "__proto__": 2}',
      want: 'an object has the field "__proto__" twice',
    },
    { text: nested(33), want: "it has more than 32 levels" },
    { text: "", want: "it is not JSON: " },
    { text: "{'a': 1}", want: "it is not JSON: " },
    { text: "{} {}", want: "it is not JSON: " },
    { text: '{"a": 1,}', want: "it is not JSON: " },
    { text: "\u{feff}{}", want: "it is not JSON: " },
    { text: "[".repeat(10_000), want: "it is not JSON: " },
  ])("refuses $text", ({ text, want }) => {
    expect(parseStrictJson(Buffer.from(text))).toEqual({
      kind: "error",
      message: expect.stringContaining(want) as unknown,
    });
  });

  it.each([
    { name: "lists", text: (count: number) => marks("[", "]", count) },
    { name: "objects", text: (count: number) => `[${marks("{", "}", count)}]` },
    {
      name: "numbers",
      text: (count: number) => `[${"0,".repeat(count - 2)}0]`,
    },
    {
      name: "fields",
      text: (count: number) =>
        `{${Array.from({ length: (count - 2) / 2 }, (_, i) => `"${i}":0`).join()}}`,
    },
  ])("refuses more $name than it can read in no time", ({ text }) => {
    const json = (count: number) => Buffer.from(text(count));

    expect(parseStrictJson(json(8_000)).kind).toBe("ok");
    expect(parseStrictJson(json(12_000))).toEqual({
      kind: "error",
      message: "it has more than 10000 brackets, colons and commas",
    });
  });

  it("counts none that are in strings", () => {
    const text = JSON.stringify({ a: '[{:,}]"\\'.repeat(3_000) });

    expect(parseStrictJson(Buffer.from(text)).kind).toBe("ok");
  });

  it("refuses what is not UTF-8", () => {
    expect(parseStrictJson(Buffer.from('"\xff"', "latin1"))).toEqual({
      kind: "error",
      message: "it is not UTF-8",
    });
  });

  it("has no members but an object's own", () => {
    expect(member({ a: 1 }, "a")).toBe(1);
    expect(member({ a: 1 }, "toString")).toBeNull();
    expect(member({}, "a")).toBeNull();
  });

  it("reads what JSON.parse reads, and never throws", () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 5 }), (text) => {
        expect(parseStrictJson(Buffer.from(text))).toEqual({
          kind: "ok",
          value: JSON.parse(text) as unknown,
        });
      }),
    );
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        const result = parseStrictJson(bytes);

        if (result.kind === "error")
          expect(result.message).toMatch(/^[^\p{C}]{1,400}$/u);
      }),
    );
  });
});

/** Some `count` brackets, and commas between them, at few levels. */
function marks(open: string, close: string, count: number): string {
  const each = `${open}${close}`;
  return `[${Array(Math.floor(count / 3))
    .fill(each)
    .join()}]`;
}
