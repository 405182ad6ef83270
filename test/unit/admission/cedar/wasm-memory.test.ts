import fc from "fast-check";
import { describe, expect, it } from "vitest";

import { withMemoryMaximum } from "../../../../src/admission/cedar/wasm-memory.js";

const header = [0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0];
/** A custom section of 200 bytes, whose size takes two bytes; it is full of memory sections. */
const custom = [0, 0xc8, 0x01, 1, 0x78, ...Array<number>(198).fill(5)];

describe("admission/cedar/wasm-memory", () => {
  it("puts a maximum to the memory and leaves everything else", () => {
    const memory = [5, 3, 1, 0, 2];
    const wasm = bytes(header, custom, memory, custom);

    expect([...withMemoryMaximum(wasm, 3)]).toEqual([
      ...header,
      ...custom,
      ...[5, 4, 1, 1, 2, 3],
      ...custom,
    ]);
  });

  it("writes numbers of any length", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 65_536 }),
        fc.integer({ min: 0, max: 65_536 }),
        (min, max) => {
          const body = [1, 0, ...uint(min)];
          const wasm = bytes(header, [5, body.length], body);
          const limited = [1, 1, ...uint(min), ...uint(max)];

          expect([...withMemoryMaximum(wasm, max)]).toEqual([
            ...header,
            5,
            limited.length,
            ...limited,
          ]);
        },
      ),
    );
  });

  it.each([
    {
      name: "no memory",
      sections: custom,
      want: "expected a WebAssembly binary with a memory, got none",
    },
    {
      name: "a memory with a maximum",
      sections: [5, 4, 1, 1, 2, 9],
      want: "expected one memory without a maximum",
    },
    {
      name: "two memories",
      sections: [5, 5, 2, 0, 1, 0, 1],
      want: "expected one memory without a maximum",
    },
    {
      name: "an end in the middle of a number",
      sections: [5, 0x80],
      want: "the WebAssembly binary is cut off",
    },
  ])("refuses a binary with $name", ({ sections, want }) => {
    expect(() => withMemoryMaximum(bytes(header, sections), 1)).toThrow(want);
  });
});

function bytes(...parts: readonly number[][]): Uint8Array {
  return Uint8Array.from(parts.flat());
}

/** LEB128, the long way round. */
function uint(value: number): number[] {
  const groups = value.toString(2).padStart(35, "0").match(/.{7}/g) ?? [];
  const low = groups.reverse().map((group) => parseInt(group, 2));
  while (low.length > 1 && low.at(-1) === 0) low.pop();
  return low.map((group, i) => (i < low.length - 1 ? group | 0x80 : group));
}
