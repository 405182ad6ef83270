import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { PathSegment } from "../../../src/admission/composite.js";
import {
  formatFieldPath,
  parseFieldPath,
} from "../../../src/admission/field-path.js";

describe("admission/field-path", () => {
  describe("reads", () => {
    it.each([
      { text: "spec.module", want: ["spec", "module"] },
      { text: "status.module", want: ["status", "module"] },
      { text: "spec.a_b-c.D9._", want: ["spec", "a_b-c", "D9", "_"] },
      { text: 'spec["a.b"]', want: ["spec", "a.b"] },
      { text: 'spec["a.b"].c[0]', want: ["spec", "a.b", "c", 0] },
      {
        text: 'status["a"]["b"][3][9999]',
        want: ["status", "a", "b", 3, 9999],
      },
      { text: "spec[0]", want: ["spec", 0] },
      { text: 'spec["0"]', want: ["spec", "0"] },
      { text: 'spec[""]', want: ["spec", ""] },
      { text: 'spec["]"].x', want: ["spec", "]", "x"] },
      { text: String.raw`spec["a\"\\\/\n\u0041"]`, want: ["spec", 'a"\\/\nA'] },
      { text: 'spec["é😀"]', want: ["spec", "é😀"] },
      { text: "spec.__proto__", want: ["spec", "__proto__"] },
      { text: "spec.spec.status", want: ["spec", "spec", "status"] },
      {
        text: `spec${".a".repeat(31)}`,
        want: ["spec", ...Array<string>(31).fill("a")],
      },
      {
        text: `spec.${"a".repeat(1019)}`,
        want: ["spec", "a".repeat(1019)],
      },
    ])("$text", ({ text, want }) => {
      expect(parseFieldPath(text)).toEqual({ kind: "ok", value: want });
    });
  });

  describe("refuses", () => {
    const ROOT = "expected spec.… or status.…, got ";
    const NAME =
      'expected a name of letters, digits, "_" and "-" (others are written ["…"]) at character ';
    const INDEX =
      'expected a name in double quotes, or an index from 0 to 9999, and "]" at character ';
    const QUOTED =
      "expected a name in double quotes, escaped as in JSON at character ";

    it.each([
      { text: "", want: `${ROOT}""` },
      { text: "metadata.name", want: `${ROOT}"metadata.name"` },
      { text: "specs.a", want: `${ROOT}"specs.a"` },
      { text: "spec-a.b", want: `${ROOT}"spec-a.b"` },
      { text: "Spec.a", want: `${ROOT}"Spec.a"` },
      { text: " spec.a", want: `${ROOT}" spec.a"` },
      { text: ".spec.a", want: `${ROOT}".spec.a"` },
      { text: '["spec"].a', want: `${ROOT}"[\\"spec\\"].a"` },
      { text: "__proto__.a", want: `${ROOT}"__proto__.a"` },
      { text: "spec", want: "expected a field of spec, got spec as a whole" },
      {
        text: "status",
        want: "expected a field of status, got status as a whole",
      },
      { text: "spec.", want: `${NAME}6, got the end` },
      { text: "spec..a", want: `${NAME}6, got ".a"` },
      { text: "spec.a.", want: `${NAME}8, got the end` },
      { text: "spec.1", want: `${NAME}6, got "1"` },
      { text: "spec.-a", want: `${NAME}6, got "-a"` },
      { text: "spec.é", want: `${NAME}6, got "é"` },
      { text: 'spec.["a"]', want: `${NAME}6, got "[\\"a\\"]"` },
      {
        text: "spec.a/b",
        want: 'expected "." or "[" at character 7, got "/b"',
      },
      { text: "spec a", want: 'expected "." or "[" at character 5, got " a"' },
      {
        text: "spec.a\n",
        want: 'expected "." or "[" at character 7, got "\\u000a"',
      },
      {
        text: 'spec["a"]b',
        want: 'expected "." or "[" at character 10, got "b"',
      },
      { text: "spec[", want: `${INDEX}6, got the end` },
      { text: "spec[]", want: `${INDEX}6, got "]"` },
      { text: "spec[a.b]", want: `${INDEX}6, got "a.b]"` },
      { text: "spec['a']", want: `${INDEX}6, got "'a']"` },
      { text: "spec[01]", want: `${INDEX}6, got "01]"` },
      { text: "spec[-1]", want: `${INDEX}6, got "-1]"` },
      { text: "spec[1.0]", want: `${INDEX}6, got "1.0]"` },
      { text: "spec[*]", want: `${INDEX}6, got "*]"` },
      { text: "spec[0", want: `${INDEX}6, got "0"` },
      { text: "spec[10000]", want: `${INDEX}6, got "10000]"` },
      { text: 'spec["a', want: `${QUOTED}6, got "\\"a"` },
      { text: 'spec["a\\x"]', want: `${QUOTED}6, got "\\"a\\\\x\\"]"` },
      { text: 'spec["\\u12"]', want: `${QUOTED}6, got "\\"\\\\u12\\"]"` },
      { text: 'spec["a\nb"]', want: `${QUOTED}6, got "\\"a\\u000ab\\"]"` },
      { text: 'spec["a"', want: 'expected "]" at character 9, got the end' },
      {
        text: 'spec["a".b',
        want: 'expected "]" at character 9, got ".b"',
      },
      {
        text: `spec${".a".repeat(32)}`,
        want: "the path has 33 segments, expected at most 32",
      },
      {
        text: `spec.${"a".repeat(1020)}`,
        want: "the path is 1025 characters long, expected at most 1024",
      },
    ])("$text", ({ text, want }) => {
      expect(parseFieldPath(text)).toEqual({ kind: "error", message: want });
    });
  });

  it("reads what it writes", () => {
    const segment = fc.oneof(
      fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_-]{0,10}$/),
      fc.string({ unit: "binary", maxLength: 10 }),
      fc.nat({ max: 9999 }),
    );
    const path = fc
      .tuple(
        fc.constantFrom("spec", "status"),
        fc.array(segment, { minLength: 1, maxLength: 10 }),
      )
      .map(([root, rest]): PathSegment[] => [root, ...rest]);

    fc.assert(
      fc.property(path, (value) => {
        const text = formatFieldPath(value);

        expect(parseFieldPath(text)).toEqual({ kind: "ok", value });
        expect(text).toMatch(/^[^\p{C}\p{Zl}\p{Zp}]+$/u);
      }),
    );
  });

  it("never throws and stays on one short line, whatever the text", () => {
    const text = fc
      .tuple(
        fc.constantFrom("", "spec", "spec.", "spec[", 'spec["', "status[1"),
        fc.string({ unit: "binary", maxLength: 200 }),
      )
      .map((parts) => parts.join(""));

    fc.assert(
      fc.property(text, (any) => {
        const result = parseFieldPath(any);

        if (result.kind === "error")
          expect(result.message).toMatch(/^[^\p{C}]{1,1000}$/u);
      }),
    );
  });
});
