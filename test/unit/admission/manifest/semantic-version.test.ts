import { describe, expect, it } from "vitest";

import { parseVersion } from "../../../../src/admission/manifest/semantic-version.js";

describe("admission/manifest/semantic-version", () => {
  it.each([
    { text: "1.2.3", want: "1.2.3" },
    { text: "v1.2.3", want: "1.2.3" },
    { text: "0.0.0", want: "0.0.0" },
    { text: "1.2.3-rc.1", want: "1.2.3-rc.1" },
    { text: "1.2.3+build.5", want: "1.2.3+build.5" },
    { text: "v1.2.3-a-", want: "1.2.3-a-" },
  ])("reads $text", ({ text, want }) => {
    expect(parseVersion(text)).toEqual({ kind: "ok", value: want });
  });

  it.each([
    "",
    "1",
    "1.2",
    "01.2.3",
    "1.2.3.4",
    "V1.2.3",
    "vv1.2.3",
    "=1.2.3",
    "v=1.2.3",
    " 1.2.3",
    "1.2.3 ",
    "1.2.x",
    "^1.2.3",
    "1.2.3-01",
    "1.2.3-",
    "latest",
  ])("refuses %j", (text) => {
    expect(parseVersion(text)).toEqual({
      kind: "error",
      message: `expected a semantic version such as "1.2.3", got "${text}"`,
    });
  });
});
