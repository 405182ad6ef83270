import { beforeAll, describe, expect, it } from "vitest";

import {
  loadCedar,
  type LoadedCedar,
} from "../../../../src/admission/cedar/cedar.js";

const MEMORY_BYTES = 8 * 1024 * 1024;
const ANSWER_BYTES = 100_000;

// One for all tests here, because a thread can have but one. The last test breaks it.
let loaded: LoadedCedar;
beforeAll(async () => {
  loaded = await loadCedar({
    memoryBytes: MEMORY_BYTES,
    answerBytes: ANSWER_BYTES,
  });
});

describe("admission/cedar/cedar", () => {
  it("loads Cedar", () => {
    expect(parse("permit (principal, action, resource);")).toEqual({
      type: "success",
      policies: ["permit (principal, action, resource);"],
      policy_templates: [],
    });
    expect(loaded.memoryBytes()).toBeLessThan(MEMORY_BYTES / 2);
  });

  it("takes an answer of the longest allowed and no longer one", () => {
    const emptyBytes = JSON.stringify(parse(annotated(0))).length;
    const longest = ANSWER_BYTES - emptyBytes;

    expect(parse(annotated(longest))).toMatchObject({ type: "success" });
    expect(() => parse(annotated(longest + 1))).toThrow(
      "Cedar's answer is too long",
    );
  });

  it("keeps its memory below the maximum", () => {
    expect(() =>
      parse(
        `permit (principal, action, resource) when { [${"1,".repeat(50_000)}1] == [] };`,
      ),
    ).toThrow("unreachable");
    expect(loaded.memoryBytes()).toBeGreaterThan(MEMORY_BYTES / 2);
    expect(loaded.memoryBytes()).toBeLessThanOrEqual(MEMORY_BYTES);
  });
});

function parse(text: string): unknown {
  return loaded.cedar.policySetTextToParts(text);
}

function annotated(length: number): string {
  return `@a("${"x".repeat(length)}") permit (principal, action, resource);`;
}
