import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import fc, { type Arbitrary } from "fast-check";

import { bytesField } from "../../../src/function/wire.js";
import { concat } from "./fixtures.js";

/** A piece of a message, in two spellings. */
export interface Part {
  readonly wire: Uint8Array;
  /**
   * The same for a decoder that does not look at wire types: without the fields that another one
   * skips because theirs is not the declared one.
   */
  readonly typed: Uint8Array;
}

/** A field that every decoder reads alike. */
export function part(bytes: Uint8Array): Part {
  return { wire: bytes, typed: bytes };
}

export function join(parts: readonly Part[]): Part {
  return {
    wire: concat(...parts.map(({ wire }) => wire)),
    typed: concat(...parts.map(({ typed }) => typed)),
  };
}

/** A field of wire type bytes that holds a message. */
export function message(fieldNumber: number, parts: readonly Part[]): Part {
  const { wire, typed } = join(parts);
  return {
    wire: bytesField(fieldNumber, wire),
    typed: bytesField(fieldNumber, typed),
  };
}

export function text(fieldNumber: number, value: string): Part {
  return part(bytesField(fieldNumber, new TextEncoder().encode(value)));
}

export function varint(fieldNumber: number, value: number): Part {
  const writer = new BinaryWriter().tag(fieldNumber, WireType.Varint);
  return part(writer.uint64(value).finish());
}

export function double(fieldNumber: number, value: number): Part {
  const writer = new BinaryWriter().tag(fieldNumber, WireType.Bit64);
  return part(writer.double(value).finish());
}

export function group(fieldNumber: number, content: Uint8Array): Part {
  const writer = new BinaryWriter().tag(fieldNumber, WireType.StartGroup);
  writer.raw(content).tag(fieldNumber, WireType.EndGroup);
  return part(writer.finish());
}

/** Fields that no message here declares, groups within groups among them. */
export const unknownField: Arbitrary<Part> = fc.letrec<{ field: Part }>(
  (tie) => {
    const number = fc.oneof(
      fc.integer({ min: 100, max: 2000 }),
      fc.integer({ min: 100, max: 2 ** 29 - 1 }),
    );
    const content = fc.uint8Array({ maxLength: 12 });
    const fields = fc.array(tie("field"), { maxLength: 3 });
    return {
      field: fc.oneof(
        { depthSize: "small", withCrossShrink: true },
        fc.tuple(number, fc.nat()).map((args) => varint(...args)),
        fc.tuple(number, fc.double()).map((args) => double(...args)),
        fc.tuple(number, content).map((args) => part(bytesField(...args))),
        fc
          .tuple(number, fields)
          .map(([n, parts]) => group(n, join(parts).wire)),
      ),
    };
  },
).field;

/** Fields with the number of one of type bytes and another wire type; decoders skip them. */
export function mistyped(fieldNumber: number): Arbitrary<Part> {
  const content = fc.constantFrom(new Uint8Array(), varint(1, 5).wire);
  return fc
    .oneof(
      fc.nat().map((value) => varint(fieldNumber, value)),
      fc.double().map((value) => double(fieldNumber, value)),
      content.map((inner) => group(fieldNumber, inner)),
    )
    .map(({ wire }) => ({ wire, typed: new Uint8Array() }));
}

/** The parts of all `lists`, in any order. */
export function shuffled(...lists: Arbitrary<Part[]>[]): Arbitrary<Part[]> {
  return fc.tuple(...lists).chain((generated) => {
    const parts = generated.flat();
    return fc.shuffledSubarray(parts, { minLength: parts.length });
  });
}

/** Up to `maxLength` of `arbitrary`, 3 unless told. */
export function some(
  arbitrary: Arbitrary<Part>,
  maxLength = 3,
): Arbitrary<Part[]> {
  return fc.array(arbitrary, { maxLength });
}

/** Keys, some of which every JavaScript object seems to have. */
export const anyKey = fc.constantFrom(
  ..."kind metadata namespace spec status a.b 0 ü __proto__ constructor".split(
    " ",
  ),
  "",
);

/** Fields of a map entry: mostly one key and one value, in any order, and anything between. */
function entryFields(value: Arbitrary<Part[]>): Arbitrary<Part[]> {
  const key = anyKey.map((name) => text(1, name));
  const piece = value.map((parts) => message(2, parts));
  const stray = fc.oneof(unknownField, mistyped(1), mistyped(2));
  const usually = (arbitrary: Arbitrary<Part>) =>
    fc.oneof(
      { weight: 4, arbitrary: arbitrary.map((only) => [only]) },
      { weight: 1, arbitrary: some(arbitrary) },
    );
  return shuffled(usually(key), usually(piece), some(stray, 1));
}

/** The fields of a `google.protobuf.Struct`, with all that a decoder puts up with. */
export const structFields: Arbitrary<Part[]> = fc.letrec<{
  struct: Part[];
  value: Part[];
}>((tie) => {
  const value = tie("value");
  const entry = entryFields(value).map((parts) => message(1, parts));
  const item = value.map((parts) => message(1, parts));
  const stray = fc.oneof(unknownField, mistyped(1));
  const list = shuffled(some(item), some(stray, 1));
  const strayKind = fc.oneof(
    unknownField,
    ...[3, 5, 6].map((fieldNumber) => mistyped(fieldNumber)),
    ...[1, 2, 4].map((fieldNumber) =>
      fc.constant({ ...text(fieldNumber, "x"), typed: new Uint8Array() }),
    ),
  );
  const kind = fc.oneof(
    { depthSize: "medium", withCrossShrink: true },
    fc.constant(varint(1, 0)),
    fc
      .double({ noNaN: true, noDefaultInfinity: true })
      .map((number) => double(2, number)),
    fc.constantFrom("", "x", "ü\0", "team-a").map((word) => text(3, word)),
    fc.constantFrom(0, 1).map((truth) => varint(4, truth)),
    tie("struct").map((parts) => message(5, parts)),
    list.map((parts) => message(6, parts)),
  );
  return {
    struct: shuffled(some(entry, 5), some(stray, 1)),
    value: fc.oneof(
      { weight: 3, arbitrary: kind.map((only) => [only]) },
      { weight: 1, arbitrary: shuffled(some(kind), some(strayKind, 1)) },
    ),
  };
}).struct;
