import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";

import {
  entryHasKey,
  findEntryKey,
  readMapEntry,
} from "../../../src/function/map-entry.js";
import { maxPieces } from "../../../src/function/pieces.js";
import { concat } from "./fixtures.js";
import {
  group,
  join,
  mistyped,
  part,
  some,
  text,
  unknownField,
  varint,
  type Part,
} from "./wire-parts.js";

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

  it("refuses a key that is not UTF-8, unless another replaces it", () => {
    const broken = part(Uint8Array.of(10, 1, 0xff));

    expect(read(broken, text(1, "k")).key).toBe("k");
    expect(() => read(text(1, "k"), broken)).toThrow(
      "not a protobuf message: a string is not UTF-8",
    );
  });

  it("decodes one key of a thousand", () => {
    const keys = Array.from({ length: 1000 }, (_, i) => text(1, `k${i}`));
    const decode = vi.spyOn(TextDecoder.prototype, "decode");
    try {
      expect(read(...keys).key).toBe("k999");
      expect(decode).toHaveBeenCalledTimes(1);
    } finally {
      decode.mockRestore();
    }
  });

  it("keeps as many pieces of a value as it says", () => {
    const pieces = (count: number) => new Array<Part>(count).fill(text(2, "v"));

    expect(read(...pieces(maxPieces)).values).toHaveLength(64);
    expect(() => read(...pieces(maxPieces + 1))).toThrow(
      "the field value occurs more than 64 times in one message",
    );
  });

  describe("findEntryKey", () => {
    const find = (fields: readonly Part[], budget = { fields: 100 }) => {
      const { wire } = join(fields);
      const entry = { start: 0, end: wire.length };
      const found = findEntryKey(wire, entry, budget);
      return found && Buffer.from(wire.subarray(found.start, found.end));
    };

    it.each([
      { name: "no field", fields: [], want: "" },
      { name: "no key", fields: [text(2, "v"), varint(1, 5)], want: "" },
      {
        name: "several keys",
        fields: [text(1, "a"), text(2, "v"), text(1, "b"), text(3, "x")],
        want: "b",
      },
      {
        name: "an empty key behind another",
        fields: [text(1, "a"), text(1, "")],
        want: "",
      },
    ])("finds in an entry with $name: $want", ({ fields, want }) => {
      expect(find(fields)?.toString()).toBe(want);
    });

    it("finds what is no text as well", () => {
      const broken = part(Uint8Array.of(10, 1, 0xff));

      expect(find([broken])).toEqual(Buffer.of(0xff));
    });

    it("looks at no more fields than there are left, and takes them away", () => {
      const fields = [varint(9, 1), text(1, "a"), text(1, "b")];
      const budget = { fields: 5 };

      expect(find(fields, budget)?.toString()).toBe("b");
      expect(budget).toEqual({ fields: 2 });
      expect(find(fields, budget)).toBeUndefined();
      expect(budget).toEqual({ fields: 0 });
      expect(find([], budget)?.toString()).toBe("");
    });
  });

  describe("entryHasKey", () => {
    it.each([
      { name: "the key", fields: [text(1, "ä")], want: true },
      { name: "another key", fields: [text(1, "ö")], want: false },
      { name: "a longer key", fields: [text(1, "äa")], want: false },
      { name: "a shorter key", fields: [text(1, "a")], want: false },
      { name: "no key", fields: [text(2, "ä")], want: false },
      {
        name: "the key behind another",
        fields: [text(1, "b"), text(2, "v"), text(1, "ä")],
        want: true,
      },
      {
        name: "another behind the key",
        fields: [text(1, "ä"), text(1, "b"), text(2, "v")],
        want: false,
      },
      {
        name: "the key, past what is none",
        fields: [text(1, "ä"), varint(1, 5), group(1, text(1, "b").wire)],
        want: true,
      },
    ])("finds in an entry with $name: $want", ({ fields, want }) => {
      const { wire } = join(fields);
      const entry = { start: 0, end: wire.length };

      expect(entryHasKey(wire, entry, Buffer.from("ä"))).toBe(want);
    });

    it("takes an entry without a key for that of no name", () => {
      const none = new Uint8Array();

      expect(entryHasKey(none, { start: 0, end: 0 }, none)).toBe(true);
    });

    it("does not open an entry that is too short for the key", () => {
      const broken = Uint8Array.of(0xff);
      const entry = { start: 0, end: 1 };

      expect(entryHasKey(broken, entry, Buffer.from("ab"))).toBe(false);
      expect(() => entryHasKey(broken, entry, Buffer.from("a"))).toThrow(
        "a varint is cut off",
      );
    });

    it("agrees with readMapEntry", () => {
      const key = fc.constantFrom("", "a", "ab", "b", "ü", "\ufeff");
      const field = fc.oneof(
        key.map((name) => text(1, name)),
        fc.constant(text(2, "a")),
        mistyped(1),
        unknownField,
      );
      fc.assert(
        fc.property(some(field, 4), key, (fields, wanted) => {
          const { wire } = join(fields);
          const entry = { start: 0, end: wire.length };

          expect(entryHasKey(wire, entry, Buffer.from(wanted))).toBe(
            readMapEntry(wire, entry).key === wanted,
          );
        }),
      );
    });
  });
});
