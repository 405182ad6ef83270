import { describe, expect, it } from "vitest";

import { layerOfFile } from "../../../../src/admission/manifest/layer-of-file.js";

describe("admission/manifest/layer-of-file", () => {
  it("writes the fields of the file as JSON, in their order", () => {
    const text = `\
# A comment.
version: v1.2.3
abi: 2
requires: { credentials: [yes, "1"] }
config: { schema: { minimum: 1.5, const: null } }
`;

    const read = layerOfFile(Buffer.from(text));

    expect(read).toMatchObject({
      kind: "ok",
      value: {
        manifest: { version: "1.2.3", requires: { credentials: ["yes", "1"] } },
      },
    });
    expect(read.kind === "ok" && String(read.value.layerBytes)).toBe(
      '{"version":"v1.2.3","abi":2,"requires":{"credentials":["yes","1"]},"config":{"schema":{"minimum":1.5,"const":null}}}',
    );
  });

  it.each([
    { name: "no abi", text: "name: a", want: "abi is required" },
    {
      name: "a field that a layer may have, and a file may not",
      text: "abi: 1\nnew: 1",
      want: "unknown field new, expected one of name, version, description, abi, source, minRuntime, requires, config",
    },
    { name: "no object", text: "[]", want: "expected an object, got a list" },
  ])("refuses a file with $name", ({ text, want }) => {
    expect(layerOfFile(Buffer.from(text))).toEqual({
      kind: "error",
      message: want,
    });
  });

  it("refuses a file that is too long as JSON only", () => {
    // Each of these characters is one byte in YAML and six in JSON.
    const text = `abi: 1\nconfig:\n  schema:\n    const: "${"\\a".repeat(12_000)}"\n`;

    expect(layerOfFile(Buffer.from(text))).toEqual({
      kind: "error",
      message: expect.stringMatching(
        /^as JSON, it is \d+ bytes long, expected at most 65536/,
      ) as string,
    });
  });
});
