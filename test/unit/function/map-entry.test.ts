import { describe, expect, it } from "vitest";

import { readMapEntry } from "../../../src/function/map-entry.js";
import { concat } from "./fixtures.js";
import { group, text, varint, type Part } from "./wire-parts.js";

/** Key and values as text. */
function read(...fields: readonly Part[]) {
  const bytes = concat(...fields.map(({ wire }) => wire));
  const { key, values } = readMapEntry(bytes, { start: 0, end: bytes.length });
  const shown = values.map(({ start, end }) =>
    Buffer.from(bytes.subarray(start, end)).toString(),
  );
  return { key, values: shown };
}

describe("function/map-entry", () => {
  it.each([
    { name: "nothing", fields: [], want: { key: "", values: [] } },
    {
      name: "a key and a value",
      fields: [text(1, "k"), text(2, "v")],
      want: { key: "k", values: ["v"] },
    },
    {
      name: "a value before its key",
      fields: [text(2, "v"), text(1, "k")],
      want: { key: "k", values: ["v"] },
    },
    {
      name: "the last of several keys, and every value",
      fields: [text(1, "a"), text(2, "v"), text(1, "b"), text(2, "w")],
      want: { key: "b", values: ["v", "w"] },
    },
    {
      name: "an empty key after another",
      fields: [text(1, "a"), text(1, "")],
      want: { key: "", values: [] },
    },
    {
      name: "past fields that are neither",
      fields: [
        varint(1, 5),
        text(3, "x"),
        group(1, text(1, "x").wire),
        group(1023, text(2, "x").wire),
        text(1, "k"),
        varint(2, 5),
      ],
      want: { key: "k", values: [] },
    },
  ])("reads $name", ({ fields, want }) => {
    expect(read(...fields)).toEqual(want);
  });

  it("refuses a key that is not UTF-8, even one that another replaces", () => {
    const broken = { ...text(1, ""), wire: Uint8Array.of(10, 1, 0xff) };

    expect(() => read(broken, text(1, "k"))).toThrow(
      "not a protobuf message: a string is not UTF-8",
    );
  });
});
