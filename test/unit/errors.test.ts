import { describe, expect, it } from "vitest";
import { errorText, escaped, quoted } from "../../src/errors.js";

describe("errors", () => {
  it.each([
    { name: "plain text", text: "greeter v1.wasm", want: "greeter v1.wasm" },
    {
      name: "letters of any script",
      text: "gr\u00fc\u00dfe \u4f60\u597d \u{1f600}",
      want: "gr\u00fc\u00dfe \u4f60\u597d \u{1f600}",
    },
    { name: "line breaks", text: "a\r\nb", want: "a\\u000d\\u000ab" },
    {
      name: "NUL, escape and delete",
      text: "\0\u001b[2J\u007f",
      want: "\\u0000\\u001b[2J\\u007f",
    },
    { name: "C1 controls", text: "\u009b", want: "\\u009b" },
    {
      name: "line and paragraph separators",
      text: "\u2028\u2029",
      want: "\\u2028\\u2029",
    },
    {
      name: "text that reorders its line",
      text: "\u202egnp",
      want: "\\u202egnp",
    },
    {
      name: "invisible characters",
      text: "a\u200bb\ufeff",
      want: "a\\u200bb\\ufeff",
    },
    {
      name: "invisible characters beyond 16 bits",
      text: "\u{e0041}",
      want: "\\udb40\\udc41",
    },
    { name: "half a character", text: "\ud83d!", want: "\\ud83d!" },
    { name: "quotes and backslashes", text: '"\\u000a', want: '\\"\\\\u000a' },
    { name: "nothing", text: "", want: "" },
  ])("escapes $name", ({ text, want }) => {
    expect(escaped(text)).toBe(want);
    expect(quoted(text)).toBe(`"${want}"`);
  });

  it.each([
    { text: "abcdef", maxChars: 6, want: '"abcdef"' },
    { text: "abcdefg", maxChars: 6, want: '"abcdef\u2026"' },
    { text: "abcde\u{1f600}", maxChars: 6, want: '"abcde\\ud83d\u2026"' },
  ])("cuts $text at $maxChars", ({ text, maxChars, want }) => {
    expect(quoted(text, maxChars)).toBe(want);
  });

  it.each([
    { name: "an error", thrown: new Error("a\n  b\r\nc"), want: "a b c" },
    { name: "text", thrown: "a", want: "a" },
    { name: "nothing", thrown: undefined, want: "undefined" },
  ])("puts $name on one line", ({ thrown, want }) => {
    expect(errorText(thrown)).toBe(want);
  });
});
