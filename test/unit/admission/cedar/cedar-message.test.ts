import type { DetailedError } from "@cedar-policy/cedar-wasm";
import { describe, expect, it } from "vitest";

import { cedarMessage } from "../../../../src/admission/cedar/cedar-message.js";

describe("admission/cedar/cedar-message", () => {
  it.each([
    {
      name: "the message alone when Cedar names no place",
      error: error({}),
      want: "it is wrong",
    },
    {
      name: "the line of the place",
      error: error({ sourceLocations: [place(4)] }),
      want: "line 2: it is wrong",
    },
    {
      name: "what was expected there",
      error: error({ sourceLocations: [place(4, "expected `;`")] }),
      want: "line 2: it is wrong (expected `;`)",
    },
    {
      name: "Cedar's help",
      error: error({ help: "did you mean `x`?" }),
      want: "it is wrong; did you mean `x`?",
    },
    {
      name: "everything",
      error: error({
        sourceLocations: [place(0, "expected `;`")],
        help: "did you mean `x`?",
      }),
      want: "line 1: it is wrong (expected `;`); did you mean `x`?",
    },
    {
      name: "several lines on one",
      error: error({ message: "it is\r\n  wrong\n" }),
      want: "it is wrong ",
    },
    {
      name: "control characters made visible",
      error: error({ message: "a\u001b[31m\u202eb\u2028" }),
      want: "a\\u{1b}[31m\\u{202e}b\\u{2028}",
    },
  ])("says $name", ({ error: given, want }) => {
    expect(cedarMessage([given], "abc\ndef")).toBe(want);
  });

  it("cuts a long message", () => {
    const message = cedarMessage([error({ message: "x".repeat(9_999) })], "");

    expect(message).toBe(`${"x".repeat(600)}…`);
  });

  describe("counts lines", () => {
    it.each([
      {
        name: "before the first line break",
        text: "ab\ncd",
        start: 2,
        want: 1,
      },
      { name: "after it", text: "ab\ncd", start: 3, want: 2 },
      { name: "with CRLF", text: "a\r\nb\r\nc", start: 6, want: 3 },
      { name: "with empty lines", text: "\n\n\nx", start: 3, want: 4 },
      // Cedar counts bytes: é has 2, € has 3, 𝄞 has 4.
      { name: "by bytes, not characters", text: "é€𝄞\nx", start: 9, want: 1 },
      { name: "by bytes, after the break", text: "é€𝄞\nx", start: 10, want: 2 },
      { name: "at the text's end", text: "a\nb", start: 3, want: 2 },
    ])("$name", ({ text, start, want }) => {
      const given = error({ sourceLocations: [place(start)] });

      expect(cedarMessage([given], text)).toBe(`line ${want}: it is wrong`);
    });

    it("from where the part starts that the error is about", () => {
      const given = error({ sourceLocations: [place(2)] });

      expect(cedarMessage([given], "é\nb\nc", 3)).toBe("line 3: it is wrong");
    });

    it("not at all without the text", () => {
      const given = error({ sourceLocations: [place(2)] });

      expect(cedarMessage([given], null)).toBe("it is wrong");
    });
  });

  it("takes the first of several in the text, and the first by message at one place", () => {
    const errors = [
      error({ message: "no place" }),
      error({ message: "third", sourceLocations: [place(5)] }),
      error({ message: "b second", sourceLocations: [place(4)] }),
      error({ message: "a first", sourceLocations: [place(4)] }),
    ];

    expect(cedarMessage(errors, "abc\ndef")).toBe("line 2: a first");
    expect(cedarMessage(errors.reverse(), "abc\ndef")).toBe("line 2: a first");
  });

  it("has words for an error that is none", () => {
    expect(cedarMessage([], "")).toBe("Cedar refuses it and does not say why");
  });
});

function error(parts: Partial<DetailedError>): DetailedError {
  return {
    message: "it is wrong",
    help: null,
    code: null,
    url: null,
    severity: null,
    ...parts,
  };
}

function place(start: number, label: string | null = null) {
  return { start, end: start + 1, label };
}
