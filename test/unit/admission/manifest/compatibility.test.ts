import { describe, expect, it } from "vitest";

import {
  isRuntimeTooOld,
  runtimeCompatibility,
} from "../../../../src/admission/manifest/compatibility.js";

describe("admission/manifest/compatibility", () => {
  it("states a level", () => {
    expect(runtimeCompatibility).toBe("1.0.0");
  });

  it.each([
    { minRuntime: "0.3.0", want: false },
    { minRuntime: "0.99.0", want: false },
    { minRuntime: "1.0.0-rc.1", want: false },
    { minRuntime: "1.0.0", want: false },
    { minRuntime: "1.0.0+build", want: false },
    { minRuntime: "1.0.1-rc.1", want: true },
    { minRuntime: "1.0.1", want: true },
    { minRuntime: "1.1.0", want: true },
    { minRuntime: "10.0.0", want: true },
  ])("minRuntime $minRuntime: too old is $want", ({ minRuntime, want }) => {
    expect(isRuntimeTooOld(minRuntime)).toBe(want);
  });
});
