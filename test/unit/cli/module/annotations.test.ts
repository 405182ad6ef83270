import { describe, expect, it } from "vitest";

import { readManifest } from "../../../../src/admission/index.js";
import {
  annotationsOf,
  parseAnnotations,
} from "../../../../src/cli/module/annotations.js";

const PREFIX = "org.opencontainers.image.";
const created = new Date(Date.UTC(2026, 0, 2, 3, 4, 5));

describe("cli/module/annotations", () => {
  it("reads keys up to the first =, and anything after it", () => {
    expect(parseAnnotations(["a.b/c=d=e f", "empty=", "x=\n"])).toEqual({
      kind: "ok",
      value: new Map([
        ["a.b/c", "d=e f"],
        ["empty", ""],
        ["x", "\n"],
      ]),
    });
  });

  it.each([
    { name: "no =", texts: ["key"], want: 'expected key=value, got "key"' },
    { name: "no key", texts: ["=v"], want: 'expected key=value, got "=v"' },
    { name: "a blank in a key", texts: ["a b=c"], want: 'got "a b=c"' },
    {
      name: "a control character in a key",
      texts: ["a\u202e=c"],
      want: 'got "a\\u202e=c"',
    },
    { name: "a key twice", texts: ["a=1", "a=2"], want: '"a" comes twice' },
    {
      name: "the time of publication",
      texts: [`${PREFIX}created=1970-01-01T00:00:00Z`],
      want: "SOURCE_DATE_EPOCH",
    },
    {
      name: "more than 64 Ki characters",
      texts: [`a=${"x".repeat(32_768)}`, `b=${"x".repeat(32_768)}`],
      want: "expected at most 65536 characters, got 65538",
    },
  ])("refuses $name", ({ texts, want }) => {
    const parsed = parseAnnotations(texts);

    expect(parsed).toMatchObject({
      kind: "error",
      message: expect.stringContaining(want) as string,
    });
  });

  it("takes 64 Ki characters", () => {
    const texts = [`a=${"x".repeat(65_535)}`];

    expect(parseAnnotations(texts).kind).toBe("ok");
  });

  it("says when, which file, and what the manifest says", () => {
    const annotations = annotationsOf({
      given: new Map([["mine", "1"]]),
      created,
      wasmFile: "out/greeter.wasm",
      manifest: manifest("version: v1.2.3\nsource: https://example.com\n"),
    });

    expect(Object.fromEntries(annotations)).toEqual({
      [`${PREFIX}created`]: "2026-01-02T03:04:05.000Z",
      [`${PREFIX}title`]: "greeter.wasm",
      [`${PREFIX}version`]: "1.2.3",
      [`${PREFIX}source`]: "https://example.com",
      mine: "1",
    });
  });

  it.each([
    { name: "no manifest", of: null },
    { name: "a manifest that says neither", of: manifest("") },
  ])("says nothing of version and source with $name", ({ of }) => {
    const annotations = annotationsOf({
      given: new Map([[`${PREFIX}title`, "given wins"]]),
      created,
      wasmFile: "greeter.wasm",
      manifest: of,
    });

    expect(Object.fromEntries(annotations)).toEqual({
      [`${PREFIX}created`]: "2026-01-02T03:04:05.000Z",
      [`${PREFIX}title`]: "given wins",
    });
  });
});

function manifest(text: string) {
  const read = readManifest("file", Buffer.from(`abi: 1\n${text}`));
  if (read.kind === "ok") return read.value;
  throw new Error(read.message);
}
