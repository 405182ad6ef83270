import { describe, expect, it } from "vitest";

import { addPiece, maxPieces, piecesOf } from "../../../src/function/pieces.js";
import type { WireRange } from "../../../src/function/wire.js";
import { join, text, varint, type Part } from "./wire-parts.js";

/** The pieces of field 1 in messages of these fields. */
function pieces(...messages: readonly Part[][]): string[] {
  const { wire } = join(messages.flat());
  let end = 0;
  const ranges = messages.map((fields): WireRange => {
    const start = end;
    end += join(fields).wire.length;
    return { start, end };
  });
  return piecesOf(wire, ranges, 1, "part").map((piece) =>
    Buffer.from(wire.subarray(piece.start, piece.end)).toString(),
  );
}

describe("function/pieces", () => {
  it("finds the pieces of a field in all those of its message, in order", () => {
    expect(
      pieces(
        [text(1, "a"), text(2, "x"), text(1, "b")],
        [],
        [varint(1, 5), text(1, "c")],
      ),
    ).toEqual(["a", "b", "c"]);
  });

  it("keeps as many as it says, of all messages together", () => {
    const half = new Array<Part>(maxPieces / 2).fill(text(1, ""));

    expect(pieces(half, half)).toHaveLength(64);
    expect(() => pieces(half, half, [text(1, "")])).toThrow(
      expect.objectContaining({
        code: "wire-malformed",
        message: "the field part occurs more than 64 times in one message",
      }),
    );
  });

  it("adds up to a bound of its caller's", () => {
    const found: WireRange[] = [];
    const add = () => addPiece(found, { start: 1, end: 2 }, "part", 2);

    add();
    add();

    expect(add).toThrow("the field part occurs more than 2 times");
    expect(found).toHaveLength(2);
  });
});
