import { describe, expect, it, vi } from "vitest";

import { decodeValue } from "../../../src/function/struct.js";
import { findValue } from "../../../src/function/struct-path.js";
import type { WireRange } from "../../../src/function/wire.js";
import { concat } from "./fixtures.js";
import {
  group,
  join,
  message,
  part,
  text,
  varint,
  type Part,
} from "./wire-parts.js";

const entry = (key: string, ...value: readonly Part[]) =>
  message(1, [text(1, key), message(2, value)]);
const struct = (...entries: readonly Part[]) => message(5, entries);
const list = (...items: readonly Part[]) =>
  message(
    6,
    items.map((item) => message(1, [item])),
  );
const str = (word: string) => text(3, word);

/** What is at `path` of a Struct in several pieces, as JSON; else where it ends. */
function find(structs: readonly Part[][], path: readonly (string | number)[]) {
  const pieces = structs.map((parts) =>
    concat(...parts.map(({ wire }) => wire)),
  );
  const bytes = concat(...pieces);
  let end = 0;
  const ranges = pieces.map(({ length }): WireRange => {
    end += length;
    return { start: end - length, end };
  });
  const lookup = findValue(bytes, ranges, path);
  if (lookup.kind === "missing") return { missingAt: lookup.at };
  const rules = { subject: "it", maxDepth: 8, maxValues: 100 };
  return JSON.stringify(decodeValue(bytes, lookup.pieces, rules));
}

describe("function/struct-path", () => {
  it.each([
    {
      name: "a field in the last piece of an object",
      structs: [[entry("a", str("x"))], [entry("b", str("y"))]],
      path: ["b"],
      want: '"y"',
    },
    {
      name: "the last of two entries, in whichever piece",
      structs: [[entry("a", str("x")), entry("a", str("y"))], []],
      path: ["a"],
      want: '"y"',
    },
    {
      name: "no field of an entry that another one replaces",
      structs: [
        [
          entry("a", struct(entry("b", str("x")))),
          entry("a", struct(entry("c", str("y")))),
        ],
      ],
      path: ["a", "b"],
      want: { missingAt: 1 },
    },
    {
      name: "a field in either piece of a value",
      structs: [
        [
          message(1, [
            message(2, [struct(entry("b", str("x")))]),
            text(1, "a"),
            message(2, [struct(entry("c", str("y")))]),
          ]),
        ],
      ],
      path: ["a", "b"],
      want: '"x"',
    },
    {
      name: "no field of an object that a text stands behind",
      structs: [[entry("a", struct(entry("b", str("x"))), str("y"), struct())]],
      path: ["a", "b"],
      want: { missingAt: 1 },
    },
    {
      name: "a field of an object that stands behind a list",
      structs: [[entry("a", list(str("x")), struct(entry("b", str("y"))))]],
      path: ["a", "b"],
      want: '"y"',
    },
    {
      name: "a field past those that are none of a value's",
      structs: [
        [
          entry(
            "a",
            struct(entry("b", str("x"))),
            group(6, varint(1, 1).wire),
            varint(3, 1),
            text(9, "?"),
          ),
        ],
      ],
      path: ["a", "b"],
      want: '"x"',
    },
    {
      name: "an element of a list in two pieces",
      structs: [[entry("a", list(str("x")), list(str("y"), str("z")))]],
      path: ["a", 1],
      want: '"y"',
    },
    {
      name: "no element of an object",
      structs: [[entry("a", struct(entry("0", str("x"))))]],
      path: ["a", 0],
      want: { missingAt: 1 },
    },
    {
      name: "no field of a list",
      structs: [[entry("a", list(str("x")))]],
      path: ["a", "0"],
      want: { missingAt: 1 },
    },
    {
      name: "no element at a fraction",
      structs: [[entry("a", list(str("x"), str("y")))]],
      path: ["a", 0.5],
      want: { missingAt: 1 },
    },
    {
      name: "no field of a null",
      structs: [[entry("a", varint(1, 0))]],
      path: ["a", "b", "c"],
      want: { missingAt: 1 },
    },
    {
      name: "the field an entry's last key names",
      structs: [
        [
          entry("a", str("x")),
          message(1, [text(1, "a"), message(2, [str("y")]), text(1, "b")]),
        ],
      ],
      path: ["a"],
      want: '"x"',
    },
    {
      name: "no field whose key only begins or ends alike",
      structs: [[entry("ab", str("x")), entry("b", str("y")), entry("aa")]],
      path: ["a"],
      want: { missingAt: 0 },
    },
    {
      name: "a field without a name, in an entry without a key too",
      structs: [[entry("", str("x")), message(1, [message(2, [str("y")])])]],
      path: [""],
      want: '"y"',
    },
    {
      name: "a field whose name is no ASCII, byte order mark and all",
      structs: [[entry("ü€😀", str("x")), entry("\ufeffü€😀", str("y"))]],
      path: ["\ufeffü€😀"],
      want: '"y"',
    },
    {
      name: "no field called half a character, which has no UTF-8",
      structs: [[entry("\ufffd", str("x"))]],
      path: ["\ud83d"],
      want: { missingAt: 0 },
    },
    {
      name: "a field past one whose name is not UTF-8",
      structs: [
        [
          part(Uint8Array.of(0x0a, 3, 0x0a, 1, 0xff)),
          entry("a", str("x")),
          part(Uint8Array.of(0x0a, 3, 0x0a, 1, 0xff)),
        ],
      ],
      path: ["a"],
      want: '"x"',
    },
    {
      name: "an entry without a value, which is null",
      structs: [[message(1, [text(1, "a")])]],
      path: ["a"],
      want: "null",
    },
  ])("finds $name", ({ structs, path, want }) => {
    expect(find(structs, path)).toEqual(want);
  });

  it("decodes the keys on the path and no other, however many there are", () => {
    const others = Array.from({ length: 1000 }, (_, i) => entry(`k${i}`));
    const inner = struct(...others, entry("b", str("x")), ...others);
    const bytes = join([...others, entry("a", inner), ...others]).wire;
    const decode = vi.spyOn(TextDecoder.prototype, "decode");
    try {
      const range = { start: 0, end: bytes.length };

      expect(findValue(bytes, [range], ["a", "b"]).kind).toBe("found");
      expect(decode).toHaveBeenCalledTimes(2);
    } finally {
      decode.mockRestore();
    }
  });
});
