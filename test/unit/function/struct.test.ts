import { create, toBinary, type JsonObject } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { StructSchema } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";

import { decodeStruct, decodeValue } from "../../../src/function/struct.js";
import { bytesField } from "../../../src/function/wire.js";
import { RunFunctionRequestSchema } from "../../../src/gen/run_function_pb.js";
import { concat, deepStruct } from "./fixtures.js";

function decode(...parts: readonly Uint8Array[]): JsonObject {
  const bytes = concat(...parts);
  let start = 0;
  const ranges = parts.map((part) => {
    start += part.length;
    return { start: start - part.length, end: start };
  });
  return decodeStruct(bytes, ranges, rules);
}

const rules = {
  subject: "the Input",
  maxDepth: 32,
  maxValues: 1000,
  opaqueKey: "config",
};

/** What the generated encoder writes for a Struct. */
function encode(json: JsonObject): Uint8Array {
  const request = create(RunFunctionRequestSchema, { input: json });
  const bytes = toBinary(RunFunctionRequestSchema, request);
  // One field of wire type bytes: cut off its tag and length.
  let at = 1;
  while ((bytes[at] ?? 0) >= 0x80) at++;
  return bytes.slice(at + 1);
}

const text = (value: string) => new TextEncoder().encode(value);
const key = (name: string) => bytesField(1, text(name));
const value = (...parts: readonly Uint8Array[]) =>
  bytesField(2, concat(...parts));
const entry = (...parts: readonly Uint8Array[]) =>
  bytesField(1, concat(...parts));
const str = (word: string) => bytesField(3, text(word));
const struct = (...entries: readonly Uint8Array[]) =>
  bytesField(5, concat(...entries));
const list = (...items: readonly Uint8Array[]) =>
  bytesField(6, concat(...items.map((item) => bytesField(1, item))));
const num = (number: number) =>
  new BinaryWriter().tag(2, WireType.Bit64).double(number).finish();
const varint = (field: number, number: number) =>
  new BinaryWriter().tag(field, WireType.Varint).uint64(number).finish();

describe("function/struct", () => {
  it("decodes what the generated encoder wrote", () => {
    const name = fc.string({ maxLength: 6 }).filter((s) => s !== "config");
    const json = fc.dictionary(
      name.filter((s) => s !== "__proto__"),
      fc.jsonValue({ maxDepth: 4, stringUnit: "grapheme" }),
      { maxKeys: 6 },
    );
    fc.assert(
      fc.property(json, (object) => {
        const want = JSON.parse(JSON.stringify(object)) as JsonObject;
        if (JSON.stringify(want).includes("__proto__")) return;

        const got = decode(encode(want));

        expect(JSON.parse(JSON.stringify(got))).toEqual(want);
      }),
    );
  });

  it.each([
    { name: "nothing", bytes: [], want: {} },
    {
      name: "the last of two equal keys",
      bytes: [
        entry(key("a"), value(struct(entry(key("x"), value(num(1)))))),
        entry(key("a"), value(struct(entry(key("y"), value(num(2)))))),
      ],
      want: { a: { y: 2 } },
    },
    {
      name: "a value before its key",
      bytes: [entry(value(str("v")), key("a"))],
      want: { a: "v" },
    },
    {
      name: "the last key of an entry",
      bytes: [entry(key("a"), key("b"), value(num(1)))],
      want: { b: 1 },
    },
    {
      name: "an entry without a key",
      bytes: [entry(value(num(1)))],
      want: { "": 1 },
    },
    {
      name: "an entry without a value",
      bytes: [entry(key("a"))],
      want: { a: null },
    },
    {
      name: "the parts of one entry's object together",
      bytes: [
        entry(
          key("a"),
          value(struct(entry(key("x"), value(num(1))))),
          value(struct(entry(key("y"), value(num(2))))),
        ),
      ],
      want: { a: { x: 1, y: 2 } },
    },
    {
      name: "the parts of one value's list together",
      bytes: [entry(key("a"), value(list(num(1)), list(num(2))))],
      want: { a: [1, 2] },
    },
    {
      name: "the last kind of a value",
      bytes: [
        entry(
          key("a"),
          value(struct(entry(key("x"), value(num(1)))), str("s"), struct()),
        ),
      ],
      want: { a: {} },
    },
    {
      name: "every kind",
      bytes: [
        entry(key("null"), value(varint(1, 0))),
        entry(key("no"), value(varint(4, 0))),
        entry(key("yes"), value(varint(4, 1))),
        entry(key("large yes"), value(varint(4, 2 ** 40))),
        entry(key("list"), value(list(str("a"), num(1.5)))),
      ],
      want: {
        null: null,
        no: false,
        yes: true,
        "large yes": true,
        list: ["a", 1.5],
      },
    },
    {
      name: "past unknown fields, and known ones of another wire type",
      bytes: [
        bytesField(9, text("?")),
        varint(1, 5),
        entry(
          varint(1, 7),
          key("a"),
          varint(9, 1),
          value(bytesField(9, text("?")), str("v"), varint(3, 1)),
        ),
      ],
      want: { a: "v" },
    },
    {
      name: "a byte order mark as a character",
      bytes: [entry(key("a"), value(str("\ufeffv")))],
      want: { a: "\ufeffv" },
    },
  ])("decodes $name", ({ bytes, want }) => {
    expect(JSON.parse(JSON.stringify(decode(concat(...bytes))))).toEqual(want);
  });

  it("merges the parts of a Struct as if they were one", () => {
    const got = decode(
      entry(key("a"), value(num(1))),
      concat(entry(key("b"), value(num(2))), entry(key("a"), value(num(3)))),
    );

    expect({ ...got }).toEqual({ a: 3, b: 2 });
  });

  it("takes __proto__ for a key like any other, at every depth", () => {
    const evil = entry(
      key("__proto__"),
      value(struct(entry(key("polluted"), value(varint(4, 1))))),
    );

    const got = decode(concat(evil, entry(key("o"), value(struct(evil)))));

    expect(Object.keys(got)).toEqual(["__proto__", "o"]);
    expect(Object.keys(got["o"] as JsonObject)).toEqual(["__proto__"]);
    expect(got["polluted"]).toBeUndefined();
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });

  it("never looks into config, wherever its key stands", () => {
    const garbage = value(bytesField(5, Uint8Array.of(0xff, 0xff)));

    const got = decode(
      concat(
        entry(key("config"), garbage),
        entry(garbage, key("a"), key("config")),
        entry(key("a"), value(num(1))),
      ),
    );

    expect(JSON.stringify(got)).toBe('{"config":{},"a":1}');
  });

  it.each([
    { name: "an object", config: struct(), want: {} },
    { name: "a list", config: bytesField(6, new Uint8Array()), want: [] },
    { name: "a number", config: num(1), want: 1 },
  ])("says that config is $name", ({ config, want }) => {
    const got = decode(entry(key("config"), value(config)));

    expect(got["config"]).toEqual(want);
  });

  it("lets config nest 100,000 levels deep", () => {
    const deep = value(bytesField(5, deepStruct(100_000)));

    const got = decode(
      concat(entry(key("config"), deep), entry(key("a"), value(num(1)))),
    );

    expect(JSON.stringify(got)).toBe('{"config":{},"a":1}');
  });

  it("looks inside an object that is called config further down", () => {
    const object = struct(entry(key("x"), value(num(1))));
    const inner = entry(key("config"), value(object));

    const got = decode(entry(key("a"), value(struct(inner))));

    expect(JSON.stringify(got)).toBe('{"a":{"config":{"x":1}}}');
  });

  it("follows as many levels as it is told", () => {
    expect(() => decode(deepStruct(32))).not.toThrow();
    for (const levels of [33, 100_000]) {
      expect(() => decode(deepStruct(levels))).toThrow(
        "cannot read the Input: it nests deeper than 32 levels outside config",
      );
    }
  });

  it("refuses lists that nest too deep", () => {
    let nested = list();
    for (let i = 0; i < 40; i++) nested = list(nested);

    expect(() => decode(entry(key("a"), value(nested)))).toThrow(
      "it nests deeper than 32 levels outside config",
    );
  });

  it.each([
    { name: "NaN", bytes: num(NaN), want: "it holds NaN, which is no JSON" },
    {
      name: "infinity",
      bytes: num(-Infinity),
      want: "it holds -Infinity, which is no JSON",
    },
    {
      name: "a string that is not UTF-8",
      bytes: bytesField(3, Uint8Array.of(0xc3)),
      want: "not a protobuf message: a string is not UTF-8",
    },
    {
      name: "a value that is no message",
      bytes: Uint8Array.of(0xff),
      want: "not a protobuf message: a varint is cut off",
    },
  ])("refuses $name", ({ bytes, want }) => {
    expect(() => decode(entry(key("a"), value(bytes)))).toThrow(want);
  });

  it("decodes as many values as it is told, those of replaced keys included", () => {
    const item = bytesField(1, num(1));
    // The list itself is one, and so is a value that another one of the same key replaces.
    const listOf = (count: number) =>
      value(bytesField(6, Buffer.alloc(item.length * count, item)));
    const replaced = entry(key("a"), value(num(1)));

    const most = entry(key("a"), listOf(rules.maxValues - 2));

    expect(decode(concat(replaced, most))["a"]).toHaveLength(998);
    expect(() => decode(concat(replaced, replaced, most))).toThrow(
      "cannot read the Input: it has more than 1000 values outside config",
    );
  });

  it("decodes one text of the thousands that a value may have", () => {
    const texts = Array.from({ length: 1000 }, (_, i) => str(`v${i}`));
    const bytes = entry(key("a"), value(...texts));
    const decodeText = vi.spyOn(TextDecoder.prototype, "decode");
    try {
      expect(decode(bytes)["a"]).toBe("v999");
      // The key is the other one.
      expect(decodeText).toHaveBeenCalledTimes(2);
    } finally {
      decodeText.mockRestore();
    }
  });

  it("does not look at what another kind replaces", () => {
    const garbage = [
      num(NaN),
      bytesField(3, Uint8Array.of(0xff)),
      bytesField(5, Uint8Array.of(0xff)),
      bytesField(6, deepStruct(100)),
    ];

    const got = decode(entry(key("a"), value(...garbage, str("v"))));

    expect({ ...got }).toEqual({ a: "v" });
  });

  describe("decodeValue", () => {
    const whole = (bytes: Uint8Array) =>
      decodeValue(bytes, [{ start: 0, end: bytes.length }], {
        subject: "config",
        maxDepth: 3,
        maxValues: 10,
      });

    it.each([
      { name: "nothing", bytes: [], want: "null" },
      { name: "a null", bytes: [varint(1, 0)], want: "null" },
      { name: "a text", bytes: [str("v")], want: '"v"' },
      {
        name: "the parts of an object together",
        bytes: [
          struct(entry(key("config"), value(struct(entry(key("a")))))),
          struct(entry(key("b"), value(varint(4, 1)))),
        ],
        want: '{"config":{"a":null},"b":true}',
      },
    ])("decodes $name", ({ bytes, want }) => {
      expect(JSON.stringify(whole(concat(...bytes)))).toBe(want);
    });

    it("merges its pieces", () => {
      const bytes = concat(list(num(1)), list(num(2)));
      const pieces = [
        { start: 0, end: bytes.length / 2 },
        { start: bytes.length / 2, end: bytes.length },
      ];

      const few = { subject: "x", maxDepth: 1, maxValues: 3 };
      expect(decodeValue(bytes, pieces, few)).toEqual([1, 2]);
      expect(() =>
        decodeValue(bytes, pieces, { ...few, maxValues: 2 }),
      ).toThrow(/^cannot read x: it has more than 2 values$/);
    });

    it("follows as many levels as it is told, itself not counted", () => {
      expect(whole(bytesField(5, deepStruct(3)))).toEqual({
        a: { a: { a: {} } },
      });
      expect(() => whole(bytesField(5, deepStruct(4)))).toThrow(
        "cannot read config: it nests deeper than 3 levels",
      );
      expect(() => whole(list(list(list(list(num(1))))))).toThrow(
        "cannot read config: it nests deeper than 3 levels",
      );
    });
  });

  it("agrees with the generated decoder about an empty Struct", () => {
    const empty = toBinary(StructSchema, create(StructSchema));

    expect({ ...decode(empty) }).toEqual({});
  });
});
