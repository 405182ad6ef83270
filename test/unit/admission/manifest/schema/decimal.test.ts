import fc from "fast-check";
import { describe, expect, it } from "vitest";

import { isMultiple } from "../../../../../src/admission/manifest/schema/decimal.js";

describe("admission/manifest/schema/decimal", () => {
  it.each([
    { value: 6, divisor: 3, want: true },
    { value: 7, divisor: 3, want: false },
    { value: -6, divisor: 3, want: true },
    { value: 0, divisor: 3, want: true },
    { value: -0, divisor: 0.5, want: true },
    { value: 0.3, divisor: 0.1, want: true },
    { value: 0.35, divisor: 0.1, want: false },
    { value: 19.99, divisor: 0.01, want: true },
    { value: 4.5, divisor: 1.5, want: true },
    { value: 1, divisor: 1.5, want: false },
    { value: 1e308, divisor: 0.5, want: true },
    { value: 1e308, divisor: 0.123456789, want: false },
    { value: 1.5e300, divisor: 1e299, want: true },
    { value: 1, divisor: 5e-324, want: true },
    { value: 7.5e-10, divisor: 2.5e-10, want: true },
    { value: 7.5e-10, divisor: 1e-9, want: false },
  ])("$value of $divisor: $want", ({ value, divisor, want }) => {
    expect(isMultiple(value, divisor)).toBe(want);
  });

  it("agrees with the remainder of integers", () => {
    fc.assert(
      fc.property(fc.integer(), fc.integer({ min: 1 }), (value, divisor) => {
        expect(isMultiple(value, divisor)).toBe(value % divisor === 0);
      }),
    );
  });
});
