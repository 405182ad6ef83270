import { describe, expect, it } from "vitest";

import type { Cedar } from "../../../../src/admission/cedar/cedar.js";
import { createPreparsedPolicies } from "../../../../src/admission/cedar/preparsed.js";

describe("admission/cedar/preparsed", () => {
  it("knows what it keeps, under ids of their own", () => {
    const { policies, kept } = open();

    const a = policies.keep("hash a", "text a");
    const b = policies.keep("hash b", "text b");

    expect(policies.idOf("hash a")).toBe(a);
    expect(policies.idOf("hash b")).toBe(b);
    expect(policies.idOf("hash c")).toBeUndefined();
    expect(kept).toEqual({ [a]: "text a", [b]: "text b" });
  });

  it("gives the id of the policy that was not used for the longest to the seventeenth", () => {
    const { policies, kept } = open();
    for (let n = 0; n < 16; n++) policies.keep(`hash ${n}`, `text ${n}`);
    policies.idOf("hash 0");
    policies.keep("hash 1", "text 1");

    const id = policies.keep("hash 16", "text 16");

    expect(Object.keys(kept)).toHaveLength(16);
    expect(kept[id]).toBe("text 16");
    expect(policies.idOf("hash 2")).toBeUndefined();
    for (const n of [0, 1, 3, 15, 16])
      expect(kept[policies.idOf(`hash ${n}`) ?? ""]).toBe(`text ${n}`);
  });

  it("gives a policy that it keeps already its own id again", () => {
    const { policies } = open();

    const first = policies.keep("hash a", "text a");

    expect(policies.keep("hash a", "text a")).toBe(first);
  });

  it("throws away what does not parse", () => {
    const { policies } = open();

    expect(() => policies.keep("hash", "broken")).toThrow(
      "a policy that was vetted does not parse",
    );
    expect(policies.idOf("hash")).toBeUndefined();
  });
});

/** Cedar's memory of texts by id. */
function open() {
  const kept: Record<string, unknown> = {};
  const preparsePolicySet: Cedar["preparsePolicySet"] = (
    id,
    { staticPolicies },
  ) => {
    if (staticPolicies === "broken") return { type: "failure", errors: [] };
    kept[id] = staticPolicies;
    return { type: "success" };
  };
  const policies = createPreparsedPolicies({ preparsePolicySet } as Cedar);
  return { policies, kept };
}
