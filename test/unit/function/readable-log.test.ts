import fc from "fast-check";
import { describe, expect, it } from "vitest";

import { readableEntry } from "../../../src/function/readable-log.js";
import type { LogFields } from "../../../src/ports.js";
import { readLogLine } from "../../support/log-lines.js";

const AT_MS = 1_700_000_000_250;
const TIME = "22:13:20.250";

function entry(fields: LogFields, message = "message"): string {
  return readableEntry(AT_MS, "info", message, fields);
}

describe("function/readable-log", () => {
  it.each([
    { level: "debug", want: `${TIME} DEBUG a message\n` },
    { level: "info", want: `${TIME} INFO  a message\n` },
    { level: "warn", want: `${TIME} WARN  a message\n` },
    { level: "error", want: `${TIME} ERROR a message\n` },
  ] as const)("begins with time and level: $level", ({ level, want }) => {
    expect(readableEntry(AT_MS, level, "a message", {})).toBe(want);
  });

  it.each([
    { name: "text", value: "greeter.wasm", want: "greeter.wasm" },
    { name: "an address", value: "[::]:9443", want: "[::]:9443" },
    { name: "a URL", value: "https://h/?a=b", want: "https://h/?a=b" },
    { name: "letters of any alphabet", value: "grüße", want: "grüße" },
    { name: "a number", value: 5.5, want: "5.5" },
    { name: "a switch", value: false, want: "false" },
    { name: "nothing", value: null, want: "null" },
    {
      name: "an object",
      value: { a: "b c", d: [1] },
      want: '{"a":"b c","d":[1]}',
    },
    { name: "no text", value: "", want: '""' },
    { name: "blanks", value: "a b", want: '"a b"' },
    { name: "a blank of another width", value: "a\u2003b", want: '"a\u2003b"' },
    { name: "a quote", value: 'a"b', want: String.raw`"a\"b"` },
    { name: "a backslash", value: "a\\b", want: String.raw`"a\\b"` },
    { name: "a newline", value: "a\nb", want: String.raw`"a\nb"` },
    { name: "a return", value: "a\rb", want: String.raw`"a\rb"` },
    { name: "an escape", value: "\x1b[2J", want: String.raw`"\u001b[2J"` },
    { name: "a C1 control", value: "\x9b2J", want: String.raw`"\u009b2J"` },
    { name: "a deletion", value: "a\x7f", want: String.raw`"a\u007f"` },
    {
      name: "a line separator",
      value: "a\u2028b",
      want: String.raw`"a\u2028b"`,
    },
    {
      name: "one in an object",
      value: { a: "\u2028" },
      want: String.raw`{"a":"\u2028"}`,
    },
    {
      name: "one in a name in an object",
      value: { "\u2029": 1 },
      want: String.raw`{"\u2029":1}`,
    },
    {
      name: "another direction",
      value: "a\u202eb",
      want: String.raw`"a\u202eb"`,
    },
    { name: "half a character", value: "\ud800", want: String.raw`"\ud800"` },
    {
      name: "an invisible one of two units",
      value: "\u{e0041}",
      want: String.raw`"\udb40\udc41"`,
    },
    { name: "text that reads like a number", value: "5", want: '"5"' },
    { name: "text that reads like nothing", value: "null", want: '"null"' },
    { name: "text that reads like a list", value: "[1]", want: '"[1]"' },
    {
      name: "what JSON does not have",
      value: { n: 1n },
      want: '"{ n: 1n }"',
    },
  ])("shows $name", ({ value, want }) => {
    expect(entry({ field: value })).toBe(
      `${TIME} INFO  message field=${want}\n`,
    );
  });

  it("leaves out what is undefined, as JSON does", () => {
    expect(entry({ a: undefined, b: () => 1, c: 1 })).toBe(
      `${TIME} INFO  message c=1\n`,
    );
  });

  it("takes what leads back to itself", () => {
    const circle: Record<string, unknown> = {};
    circle["self"] = circle;

    expect(entry({ circle })).toContain("[Circular");
  });

  it("quotes names that could be misread", () => {
    expect(entry({ "a=b c": 1, "x\n": 2 })).toBe(
      `${TIME} INFO  message "a=b c"=1 ${String.raw`"x\n"`}=2\n`,
    );
  });

  it("keeps a message on its line", () => {
    expect(entry({}, `a "b"\n${TIME} INFO  c`)).toBe(
      `${TIME} INFO  a "b"${String.raw`\u000a`}${TIME} INFO  c\n`,
    );
  });

  it("shows an error with its causes, what else it has, and where it came from", () => {
    const err = Object.assign(
      new TypeError("boom", { cause: new Error("because") }),
      { code: "E_BOOM" },
    );

    const [line, ...below] = entry({ err, tag: "t" }).split("\n");

    expect(line).toBe(
      `${TIME} INFO  message err.type=TypeError err.message="boom: because" err.code=E_BOOM tag=t`,
    );
    expect(below.pop()).toBe("");
    expect(below[0]).toBe("    | TypeError: boom");
    expect(below[1]).toMatch(/^ {4}\| at .*readable-log\.test\.ts/);
    expect(below).toContain("    | caused by: Error: because");
  });

  it("shows an error wherever it is, and anything else that was thrown", () => {
    const reason = new Error("boom");
    reason.stack = "";

    expect(entry({ reason, err: "thrown" })).toBe(
      `${TIME} INFO  message reason.type=Error reason.message=boom err=thrown\n`,
    );
  });

  it("has no error forge an entry", () => {
    const forged = `${TIME} ERROR forged`;
    const err = new Error(`boom\n${forged}\r\n\x1b[A${forged}`);

    const lines = entry({ err }).split("\n");

    expect(lines.filter((line) => readLogLine(line) !== null)).toHaveLength(1);
    expect(lines.join("")).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u);
    for (const line of lines.slice(1, -1)) expect(line).toMatch(/^ {4}\| /);
  });

  it("loses no field, whatever is in it", () => {
    const name = fc
      .string({ unit: "binary" })
      .filter((key) => !["time", "level", "msg"].includes(key));
    const value = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.stringMatching(/^[\w[\]{}.:,"=-]+$/),
      fc.jsonValue(),
    );

    fc.assert(
      fc.property(fc.dictionary(name, value), (fields) => {
        const text = entry(fields);

        expect(text).toMatch(/^[^\p{C}\p{Zl}\p{Zp}]*\n$/u);
        expect(readLogLine(text.slice(0, -1))).toEqual({
          ...(JSON.parse(JSON.stringify(fields)) as LogFields),
          ...{ time: TIME, level: "info", msg: "message" },
        });
      }),
    );
  });
});
