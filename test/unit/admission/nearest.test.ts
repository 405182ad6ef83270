import { describe, expect, it } from "vitest";
import { nearestName } from "../../../src/admission/nearest.js";

const NAMES = ["timeout", "memory", "concurrency", "url"];

describe("admission/nearest", () => {
  it.each([
    { name: "timout", want: "timeout", reason: "a letter left out" },
    { name: "timeoutt", want: "timeout", reason: "a letter too many" },
    { name: "nemory", want: "memory", reason: "a letter replaced" },
    { name: "meomry", want: "memory", reason: "two letters swapped" },
    { name: "Concurrency", want: "concurrency", reason: "another case" },
    { name: "uri", want: "url", reason: "one letter of three" },
    { name: "xyz", want: undefined, reason: "nothing in common" },
    { name: "mem", want: undefined, reason: "half the letters" },
    { name: "", want: undefined, reason: "nothing at all" },
    {
      name: `timeout${"t".repeat(60)}`,
      want: undefined,
      reason: "too long to compare",
    },
  ])("$name: $reason", ({ name, want }) => {
    expect(nearestName(name, NAMES)).toBe(want);
  });

  it("prefers the nearer of two", () => {
    expect(
      nearestName("manifestURI", [
        "manifestDigest",
        "manifestURLs",
        "manifestURL",
      ]),
    ).toBe("manifestURL");
  });
});
