import { describe, expect, it } from "vitest";

import { maxPieces } from "../../../src/function/pieces.js";
import { contentOf } from "../../../src/function/value-content.js";
import {
  double,
  group,
  join,
  message,
  text,
  varint,
  type Part,
} from "./wire-parts.js";

/** The kind of a Value, and where in it that is. */
function content(...fields: readonly Part[]) {
  const { wire } = join(fields);
  const found = contentOf(wire, [{ start: 0, end: wire.length }]);
  const ranges = "pieces" in found ? found.pieces : [found.scalar];
  return {
    kind: found.kind,
    at: ranges.map(({ start, end }) => [start, end]),
  };
}

describe("function/value-content", () => {
  it.each([
    { name: "nothing", fields: [], want: { kind: "null", at: [[0, 0]] } },
    {
      name: "a null behind a text",
      fields: [text(3, "a"), varint(1, 0)],
      want: { kind: "null", at: [[4, 5]] },
    },
    {
      name: "a number",
      fields: [double(2, 1)],
      want: { kind: "number", at: [[1, 9]] },
    },
    {
      name: "a truth",
      fields: [varint(4, 1)],
      want: { kind: "bool", at: [[1, 2]] },
    },
    {
      name: "the last of several texts",
      fields: [text(3, "a"), text(3, "bc")],
      want: { kind: "string", at: [[5, 7]] },
    },
    {
      name: "both pieces of an object, past what is no kind",
      fields: [message(5, []), group(6, varint(1, 1).wire), message(5, [])],
      want: {
        kind: "struct",
        at: [
          [2, 2],
          [8, 8],
        ],
      },
    },
    {
      name: "the pieces of a list behind the last text",
      fields: [message(6, []), text(3, ""), message(6, []), message(6, [])],
      want: {
        kind: "list",
        at: [
          [6, 6],
          [8, 8],
        ],
      },
    },
  ])("finds $name", ({ fields, want }) => {
    expect(content(...fields)).toEqual(want);
  });

  it.each([
    {
      name: "objects",
      fields: [message(5, []), message(5, [])],
      field: "struct_value",
    },
    {
      name: "lists",
      fields: [message(6, []), message(6, [])],
      field: "list_value",
    },
    {
      name: "objects and lists in turn",
      fields: [message(6, []), message(5, [])],
      field: "list_value",
    },
    {
      name: "objects between texts",
      fields: [message(5, []), text(3, ""), message(5, [])],
      field: "struct_value",
    },
  ])("keeps a bounded number of $name", ({ fields, field }) => {
    const repeated = new Array<Part[]>(maxPieces / 2).fill(fields).flat();
    const [first = text(9, "")] = fields;

    expect(() => content(...repeated)).not.toThrow();
    expect(() => content(...repeated, first)).toThrow(
      `the field ${field} occurs more than 64 times in one message`,
    );
  });

  it("reads over any number of texts", () => {
    const texts = new Array<Part>(1000).fill(text(3, "a"));

    expect(content(...texts).kind).toBe("string");
  });
});
