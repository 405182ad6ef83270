import fc from "fast-check";
import { describe, expect, it } from "vitest";

import {
  createPatterns,
  type Pattern,
} from "../../../../../src/admission/manifest/config/pattern.js";

const BACKTRACKING = "(RE2 syntax, without lookaround and backreferences)";
const TOO_LARGE = "it is too large, or all of them together are";

describe("admission/manifest/config/pattern", () => {
  it.each([
    { name: "anywhere in the text", source: "b+", text: "abbc", want: true },
    { name: "nowhere", source: "b+", text: "ac", want: false },
    { name: "from start to end", source: "^a$", text: "a", want: true },
    { name: "the end, not a line's", source: "^a$", text: "a\n", want: false },
    {
      name: "a character beyond the BMP",
      source: "^.$",
      text: "😀",
      want: true,
    },
    {
      name: "an escaped character",
      source: "^\\u0041\\x41\\cJ$",
      text: "AA\n",
      want: true,
    },
    {
      name: "a character by its number",
      source: "^\\u{1F600}$",
      text: "😀",
      want: true,
    },
    { name: "an escaped slash", source: "^a\\/b$", text: "a/b", want: true },
    { name: "any character", source: "^[^]$", text: "\n", want: true },
    { name: "a Unicode class", source: "^\\p{L}+$", text: "äß", want: true },
    { name: "ASCII digits only", source: "^\\d$", text: "١", want: false },
    { name: "a named group", source: "^(?<x>a)$", text: "a", want: true },
    { name: "either case", source: "(?i)^[a-z]+$", text: "ABC", want: true },
    { name: "an empty pattern", source: "", text: "", want: true },
    {
      name: "a brace that repeats nothing",
      source: "^a{,2}$",
      text: "a{,2}",
      want: true,
    },
  ])("matches $name", ({ source, text, want }) => {
    expect(compile(source).test(text)).toBe(want);
  });

  it("agrees with RegExp on what both know", () => {
    const parts = fc.constantFrom(
      "a",
      "b",
      "[ab]",
      "[^a]",
      ".",
      "(a|b)",
      "(?:ab)?",
      "a*",
      "b+",
      "a{2}",
      "b{0,2}",
      "^",
      "$",
      "\\d",
      "\\w",
    );
    const source = fc
      .array(parts, { minLength: 1, maxLength: 6 })
      .map((some) => some.join(""));
    const text = fc.string({
      unit: fc.constantFrom("a", "b", "1", " "),
      maxLength: 8,
    });

    fc.assert(
      fc.property(
        source,
        fc.array(text, { minLength: 5 }),
        (pattern, texts) => {
          const compiled = compile(pattern);
          const expected = new RegExp(pattern, "u");
          expect(texts.map((each) => compiled.test(each))).toEqual(
            texts.map((each) => expected.test(each)),
          );
        },
      ),
    );
  });

  it("takes time linear in the text where RegExp takes for ever", () => {
    const text = `${"a".repeat(50_000)}!`;

    expect(compile("^(a+)+$").test(text)).toBe(false);
    expect(compile("^(a|aa)*$").test(text)).toBe(false);
    expect(compile("(.*)(.*)(.*)(.*)x$").test(text)).toBe(false);
  });

  it("compiles a pattern once", () => {
    const patterns = createPatterns();

    const first = patterns.compile("^a$");

    expect(patterns.compile("^a$")).toEqual(first);
    for (let n = 0; n < 1000; n++)
      expect(patterns.compile("^[a-z]{1,63}$").kind).toBe("ok");
  });

  it.each([
    { name: "lookahead", source: "(?=a)", reason: "`(?=`" },
    { name: "negative lookahead", source: "(?!a)", reason: "`(?!`" },
    { name: "lookbehind", source: "(?<=a)b", reason: "`(?<=a)b`" },
    { name: "a backreference", source: "(a)\\1", reason: "`\\\\1`" },
    { name: "an open group", source: "(a", reason: "missing closing )" },
    {
      name: "a repetition from 2 to 1",
      source: "a{2,1}",
      reason: "`{2,1}`",
    },
  ])("refuses $name and names it", ({ source, reason }) => {
    const result = createPatterns().compile(source);

    if (result.kind === "ok") throw new Error("it was compiled");
    expect(result.message).toContain(reason);
    expect(result.message.endsWith(BACKTRACKING)).toBe(true);
  });

  it.each([
    { name: "repetitions of repetitions", source: "(a{1000}){1000}" },
    { name: "repetitions of a group", source: `(${"a".repeat(100)}){100}` },
    { name: "repetitions in a row", source: "a{999}".repeat(10) },
    { name: "repetitions up to many", source: "[ab]{0,1000}" },
    { name: "repetitions beyond all numbers", source: `a{${"9".repeat(400)}}` },
    {
      name: "many alternatives",
      source: Array.from({ length: 1500 }, (_, n) => `a${String(n)}`).join("|"),
    },
    { name: "Unicode classes", source: "\\p{L}".repeat(300) },
    {
      name: "wide classes without case",
      source: "(?i)[B-\\x{1e940}][B-\\x{1e940}][B-\\x{1e940}]",
    },
  ])("refuses $name as too large", ({ source }) => {
    const result = createPatterns().compile(source);

    expect(result).toMatchObject({
      message: expect.stringContaining(TOO_LARGE) as unknown,
    });
  });

  it("refuses what is too large together", () => {
    const patterns = createPatterns();

    const results = Array.from({ length: 100 }, (_, n) =>
      patterns.compile(`^[a-z]{0,61}${String(n)}$`),
    );

    expect(results[0]?.kind).toBe("ok");
    expect(results[20]?.kind).toBe("ok");
    expect(results[99]).toMatchObject({
      message: expect.stringContaining(TOO_LARGE) as unknown,
    });
  });

  it.each(["\\Q(a\\E", "[[:alpha:]]", "[a[:digit:]]"])(
    "refuses %s, which ECMA-262 does not have",
    (source) => {
      expect(createPatterns().compile(source)).toMatchObject({
        message: expect.stringMatching(
          /: "\\\\Q" and "\[:" are not supported$/,
        ) as unknown,
      });
    },
  );

  it.each(["(?<x>a)\\k<x>", "\\\\\\k<x>", "\\k"])(
    "refuses %s, which RE2 would take for the letter k",
    (source) => {
      expect(createPatterns().compile(source)).toMatchObject({
        message: expect.stringMatching(
          /: backreferences are not supported$/,
        ) as unknown,
      });
    },
  );

  it("takes a k after a backslash that is escaped", () => {
    expect(compile("^\\\\k$").test("\\k")).toBe(true);
  });

  it("returns a result for any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (source) => {
        const result = createPatterns().compile(source);
        if (result.kind === "ok") result.value.test(source);
        else expect(result.message).toMatch(/^cannot compile the pattern "/);
      }),
    );
  });
});

function compile(source: string): Pattern {
  const result = createPatterns().compile(source);
  if (result.kind === "error") throw new Error(result.message);
  return result.value;
}
