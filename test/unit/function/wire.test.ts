import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

import { FunctionError } from "../../../src/function/error.js";
import {
  bytesField,
  bytesValues,
  decodeText,
  varintField,
  WireReader,
  type WireRange,
} from "../../../src/function/wire.js";
import { concat } from "./fixtures.js";

interface Field {
  readonly number: number;
  readonly type: WireType;
  readonly value: bigint | Uint8Array | readonly Field[];
}

const fieldNumber = fc.oneof(
  fc.integer({ min: 1, max: 20 }),
  fc.integer({ min: 1, max: 2 ** 29 - 1 }),
);
const anyU64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });

const { field } = fc.letrec<{ field: Field }>((tie) => ({
  field: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.record({
      number: fieldNumber,
      type: fc.constant(WireType.Varint),
      value: anyU64,
    }),
    fc.record({
      number: fieldNumber,
      type: fc.constant(WireType.LengthDelimited),
      value: fc.uint8Array({ maxLength: 300 }),
    }),
    fc.record({
      number: fieldNumber,
      type: fc.constant(WireType.Bit64),
      value: fc.uint8Array({ minLength: 8, maxLength: 8 }),
    }),
    fc.record({
      number: fieldNumber,
      type: fc.constant(WireType.Bit32),
      value: fc.uint8Array({ minLength: 4, maxLength: 4 }),
    }),
    fc.record({
      number: fieldNumber,
      type: fc.constant(WireType.StartGroup),
      value: fc.array(tie("field"), { maxLength: 4 }),
    }),
  ),
}));

const message = fc.array(field, { maxLength: 12 });

function write(fields: readonly Field[], writer = new BinaryWriter()) {
  for (const { number, type, value } of fields) {
    writer.tag(number, type);
    if (typeof value === "bigint") {
      writer.uint64(value);
    } else if (!(value instanceof Uint8Array)) {
      write(value, writer).tag(number, WireType.EndGroup);
    } else if (type === WireType.LengthDelimited) {
      writer.bytes(value);
    } else {
      writer.raw(value);
    }
  }
  return writer;
}

interface Seen {
  readonly number: number;
  readonly type: number;
  readonly field: WireRange;
  readonly value: WireRange;
}

function readAll(bytes: Uint8Array, range?: WireRange): Seen[] {
  const seen: Seen[] = [];
  const reader = new WireReader(bytes, range);
  while (reader.next()) {
    seen.push({
      number: reader.fieldNumber,
      type: reader.wireType,
      field: { start: reader.start, end: reader.end },
      value: reader.value(),
    });
  }
  return seen;
}

function slice(bytes: Uint8Array, { start, end }: WireRange): Uint8Array {
  return bytes.slice(start, end);
}

function isWireMalformed(thrown: unknown): boolean {
  return thrown instanceof FunctionError && thrown.code === "wire-malformed";
}

describe("function/wire", () => {
  it("sees the fields an encoder wrote, in order and without gaps", () => {
    fc.assert(
      fc.property(message, (fields) => {
        const bytes = write(fields).finish();

        const seen = readAll(bytes);

        expect(seen.map(({ number, type }) => ({ number, type }))).toEqual(
          fields.map(({ number, type }) => ({ number, type })),
        );
        expect(concat(...seen.map((each) => slice(bytes, each.field)))).toEqual(
          new Uint8Array(bytes),
        );
        for (const [i, { type, value }] of fields.entries()) {
          const got = slice(bytes, seen[i]?.value ?? { start: 0, end: 0 });
          if (value instanceof Uint8Array) expect(got).toEqual(value);
          else if (type === WireType.StartGroup) {
            const inner = write(value as readonly Field[]).finish();
            expect(got).toEqual(new Uint8Array(inner));
          }
        }
      }),
    );
  });

  it("reads a part of some bytes as it reads that part alone", () => {
    fc.assert(
      fc.property(
        message,
        fc.uint8Array({ maxLength: 9 }),
        fc.uint8Array({ maxLength: 9 }),
        (fields, before, after) => {
          const bytes = write(fields).finish();
          const around = concat(before, bytes, after);
          const start = before.length;

          const seen = readAll(around, { start, end: start + bytes.length });

          expect(seen.map((each) => slice(around, each.field))).toEqual(
            readAll(bytes).map((each) => slice(bytes, each.field)),
          );
        },
      ),
    );
  });

  it("reads a message cut off anywhere as fewer fields or refuses it", () => {
    fc.assert(
      fc.property(message, (fields) => {
        const bytes = write(fields).finish();
        const whole = readAll(bytes);
        const boundaries = new Set([0, ...whole.map((each) => each.field.end)]);
        for (let length = 0; length < bytes.length; length++) {
          const cut = bytes.subarray(0, length);
          if (boundaries.has(length)) {
            expect(readAll(cut).length).toBeLessThan(whole.length);
          } else {
            expect(() => readAll(cut)).toThrow(FunctionError);
          }
        }
      }),
      { numRuns: 50 },
    );
  });

  it("throws nothing but its own error, whatever the bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          readAll(bytes);
        } catch (thrown) {
          expect(isWireMalformed(thrown)).toBe(true);
        }
      }),
      { numRuns: 2000 },
    );
  });

  const overlong = [0x8a, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0];

  it.each([
    { name: "nothing", bytes: [], want: [] },
    { name: "a varint of ten bytes", bytes: [8, ...fill(9), 1], want: [1] },
    { name: "a tag padded to ten bytes", bytes: [...overlong, 0], want: [1] },
    { name: "an empty group", bytes: [0x0b, 0x0c], want: [1] },
    {
      name: "the largest field number",
      bytes: [0xf8, 0xff, 0xff, 0xff, 0x0f, 0],
      want: [2 ** 29 - 1],
    },
    {
      name: "a field 1 in a group 2",
      bytes: [0x13, 8, 1, 0x14],
      want: [2],
    },
  ])("reads $name", ({ bytes, want }) => {
    expect(readAll(Uint8Array.from(bytes)).map((each) => each.number)).toEqual(
      want,
    );
  });

  it.each([
    { name: "field number 0", bytes: [0, 0], want: "a field has number 0" },
    { name: "wire type 6", bytes: [0x0e], want: "wire type 6 does not exist" },
    { name: "wire type 7", bytes: [0x0f], want: "wire type 7 does not exist" },
    { name: "a lone end", bytes: [0x0c], want: "a group ends that did not" },
    { name: "an open group", bytes: [0x0b], want: "a varint is cut off" },
    {
      name: "crossed groups",
      bytes: [0x0b, 0x13, 0x0c, 0x14],
      want: "a group ends as another one",
    },
    {
      name: "wire type 6 in a group",
      bytes: [0x0b, 0x0e, 0x0c],
      want: "wire type 6 does not exist",
    },
    {
      name: "a varint of eleven bytes",
      bytes: [8, ...fill(10), 0],
      want: "a varint is longer than 10 bytes",
    },
    {
      name: "a varint of 65 bits",
      bytes: [8, ...fill(9), 2],
      want: "a varint exceeds 64 bits",
    },
    {
      name: "a tag that is credentials in its lower 32 bits only",
      bytes: [0xba, 0x80, 0x80, 0x80, 0x10, 0],
      want: "a tag exceeds 32 bits",
    },
    {
      name: "a length beyond the end",
      bytes: [0x0a, 2, 0],
      want: "a field is cut off",
    },
    {
      name: "a length that is 1 in its lower 32 bits only",
      bytes: [0x0a, 0x81, 0x80, 0x80, 0x80, 0x10, 0],
      want: "a field is cut off",
    },
    {
      name: "a length of 2^64-1",
      bytes: [0x0a, ...fill(9), 1, 0],
      want: "a field is cut off",
    },
    { name: "half a fixed64", bytes: [9, 0, 0, 0, 0], want: "is cut off" },
    { name: "half a fixed32", bytes: [0x0d, 0, 0], want: "is cut off" },
  ])("refuses $name", ({ bytes, want }) => {
    expect(() => readAll(Uint8Array.from(bytes))).toThrow(want);
  });

  it("skips a million nested groups", () => {
    const depth = 1_000_000;
    const bytes = new Uint8Array(2 * depth);
    bytes.fill(0x0b, 0, depth).fill(0x0c, depth);

    expect(readAll(bytes)).toHaveLength(1);
    expect(() => readAll(bytes.subarray(0, -1))).toThrow("is cut off");
  });

  it("lists the values of one field", () => {
    fc.assert(
      fc.property(message, fc.integer({ min: 1, max: 5 }), (fields, number) => {
        const bytes = write(fields).finish();
        const whole = { start: 0, end: bytes.length };

        const got = [...bytesValues(bytes, whole, number)];

        const wanted = fields.filter(
          (each) =>
            each.number === number && each.type === WireType.LengthDelimited,
        );
        expect(got.map(({ start, end }) => bytes.slice(start, end))).toEqual(
          wanted.map(({ value }) => value),
        );
      }),
    );
  });

  it("lists the values of a part of the bytes, and refuses what is broken in it", () => {
    const bytes = Uint8Array.of(0xff, 10, 1, 7, 10, 9);

    const list = (end: number) => [...bytesValues(bytes, { start: 1, end }, 1)];

    expect(list(4)).toEqual([{ start: 3, end: 4 }]);
    expect(() => list(6)).toThrow("a field is cut off");
  });

  it("decodes text, of which it drops nothing", () => {
    const text = "\ufeffä€\0\u{1f600}";
    const bytes = concat(Uint8Array.of(0xff), Buffer.from(text));

    expect(decodeText(bytes, { start: 1, end: bytes.length })).toBe(text);
    expect(() => decodeText(bytes, { start: 0, end: 1 })).toThrow(
      "not a protobuf message: a string is not UTF-8",
    );
  });

  it("writes fields an encoder would write", () => {
    fc.assert(
      fc.property(
        fieldNumber,
        fc.uint8Array({ maxLength: 20_000 }),
        (number, value) => {
          const want = new BinaryWriter()
            .tag(number, WireType.LengthDelimited)
            .bytes(value)
            .finish();

          expect(bytesField(number, value)).toEqual(Buffer.from(want));
        },
      ),
    );
    fc.assert(
      fc.property(fieldNumber, fc.maxSafeNat(), (number, value) => {
        const want = new BinaryWriter()
          .tag(number, WireType.Varint)
          .uint64(value)
          .finish();

        expect(varintField(number, value)).toEqual(Buffer.from(want));
      }),
    );
  });
});

function fill(count: number): number[] {
  return new Array<number>(count).fill(0xff);
}
