import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { describe, expect, it } from "vitest";

import { outcomeOf, sum } from "../../../../bench/soak/load.js";

const target = {
  name: "digest-1",
  codes: { OK: 10 },
  firstError: "",
  differentAnswers: 0,
};
const answer = Buffer.alloc(0);

describe("bench/soak/load", () => {
  it.each([
    {
      name: "all answered alike",
      seen: target,
      firstAnswer: answer,
      want: { calls: 10, errors: 0, firstError: "" },
    },
    {
      name: "no call at all",
      seen: { ...target, codes: {} },
      firstAnswer: null,
      want: { calls: 0, errors: 0, firstError: "" },
    },
    {
      name: "some not answered",
      seen: {
        ...target,
        codes: { OK: 7, Unavailable: 3 },
        firstError: "gone",
        differentAnswers: 2,
      },
      firstAnswer: answer,
      want: {
        calls: 10,
        errors: 5,
        firstError: 'digest-1: {"OK":7,"Unavailable":3}: gone',
      },
    },
    {
      name: "some answered otherwise",
      seen: { ...target, differentAnswers: 2 },
      firstAnswer: answer,
      want: {
        calls: 10,
        errors: 2,
        firstError: "digest-1: 2 answers are not like the first",
      },
    },
    {
      name: "all refused",
      seen: target,
      firstAnswer: fatalAnswer("no such module"),
      want: { calls: 10, errors: 10, firstError: "digest-1: no such module" },
    },
  ])("judges a target: $name", ({ seen, firstAnswer, want }) => {
    expect(outcomeOf(seen, firstAnswer)).toEqual(want);
  });

  it("keeps the first error of two outcomes", () => {
    const ok = { calls: 1, errors: 0, firstError: "" };
    const first = { calls: 2, errors: 1, firstError: "first" };
    const second = { calls: 4, errors: 2, firstError: "second" };

    expect([ok, first, second].reduce(sum)).toEqual({
      calls: 7,
      errors: 3,
      firstError: "first",
    });
  });
});

/** A RunFunctionResponse with one fatal result. */
function fatalAnswer(message: string): Uint8Array {
  const result = new BinaryWriter()
    .tag(1, WireType.Varint)
    .int32(1)
    .tag(2, WireType.LengthDelimited)
    .string(message)
    .finish();
  return new BinaryWriter()
    .tag(3, WireType.LengthDelimited)
    .bytes(result)
    .finish();
}
