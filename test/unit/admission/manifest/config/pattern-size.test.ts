import fc from "fast-check";
import { RE2JS } from "re2js";
import { describe, expect, it } from "vitest";

import { patternSize } from "../../../../../src/admission/manifest/config/pattern-size.js";

const PARTS =
  "a b ( ) | * + ? [ ] ^ $ . - { } , 1 : é 😀 (?: (?i) (?P<n> (?i: {2} {0,3} {3,} {0} {1000} [^ [a-z] \\d \\b \\] \\[ \\( \\\\ \\p{L} \\pN \\x{41} \\E".split(
    " ",
  );

describe("admission/manifest/config/pattern-size", () => {
  it("is never less than what RE2 makes of it", () => {
    const pattern = fc
      .array(fc.constantFrom(...PARTS), { maxLength: 16 })
      .map((parts) => parts.join(""))
      .filter(
        (text) =>
          isPattern(text) && (patternSize(text)?.instructions ?? 0) < 5000,
      );

    fc.assert(
      fc.property(pattern, (text) => {
        const size = patternSize(text);
        if (size === null) return;
        expect(size.instructions).toBeGreaterThanOrEqual(
          RE2JS.compile(text).programSize(),
        );
      }),
      { numRuns: 1000 },
    );
  });

  it.each([
    { pattern: "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$", atMost: 200 },
    { pattern: "^\\d+\\.\\d+\\.\\d+(-[0-9A-Za-z.-]+)?$", atMost: 50 },
    { pattern: "a".repeat(500), atMost: 510 },
    { pattern: "[\\]abc(){1000}]", atMost: 10 },
  ])("is not much more: $pattern", ({ pattern, atMost }) => {
    const { instructions } = patternSize(pattern) ?? { instructions: 0 };

    expect(instructions).toBeGreaterThanOrEqual(
      RE2JS.compile(pattern).programSize(),
    );
    expect(instructions).toBeLessThanOrEqual(atMost);
  });

  it.each([
    { pattern: "(a{1000}){1000}", atLeast: 1_000_000 },
    { pattern: "((a{10}){10}){10}", atLeast: 1000 },
    { pattern: "(?:ab|cd){500}", atLeast: 2000 },
    { pattern: "[)]{100}", atLeast: 100 },
    { pattern: "([(]a{9}){100}", atLeast: 1000 },
    { pattern: "(\\)a{9}){100}", atLeast: 1000 },
  ])("multiplies: $pattern", ({ pattern, atLeast }) => {
    expect(patternSize(pattern)?.instructions).toBeGreaterThanOrEqual(atLeast);
  });

  it("counts the characters of classes", () => {
    expect(patternSize("a[bc][^]d\\]]e")?.classChars).toBe(11);
  });

  it.each(["\\Qa\\E", "(\\Q)(\\E){1000}", "[[:x:]", "[?-[:alpha:]a{3}]"])(
    "gives up on %s, which may hide characters",
    (pattern) => {
      expect(patternSize(pattern)).toBeNull();
    },
  );
});

function isPattern(text: string): boolean {
  if ((patternSize(text)?.instructions ?? 0) >= 5000) return false;
  try {
    RE2JS.compile(text);
    return true;
  } catch {
    return false;
  }
}
