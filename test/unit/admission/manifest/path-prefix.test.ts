import fc from "fast-check";
import { describe, expect, it } from "vitest";

import { parsePathPrefix } from "../../../../src/admission/manifest/path-prefix.js";

describe("admission/manifest/path-prefix", () => {
  it.each([
    "/",
    "/v1",
    "/v1/",
    "/v1/prices.json",
    "/.well-known/x",
    "/a..b/...",
    "/a//b",
    "/~user/a;b=c,d!$&'()*+:@",
    "/a..;b/...;c/.d;",
    "/caf%C3%A9",
  ])("reads %s", (text) => {
    expect(parsePathPrefix(text)).toEqual({ kind: "ok", value: text });
  });

  it.each([
    { text: "v1", problem: 'it does not start with "/"' },
    { text: "/v1?x=1", problem: "it has a query or a fragment" },
    { text: "/v1#x", problem: "it has a query or a fragment" },
    { text: "/a/../b", problem: 'it has a segment "." or ".."' },
    { text: "/a/.", problem: 'it has a segment "." or ".."' },
    { text: "/..", problem: 'it has a segment "." or ".."' },
    { text: "/a/..;/b", problem: 'it has a segment "." or ".."' },
    { text: "/a/..;x=y", problem: 'it has a segment "." or ".."' },
    { text: "/a/.;/b", problem: 'it has a segment "." or ".."' },
    { text: "/a/..%3b/b", problem: 'it has a segment "." or ".."' },
    { text: "/a/..%3Bx", problem: 'it has a segment "." or ".."' },
    {
      text: "/a/%2e%2e;x/b",
      problem: "it has an escaped slash, backslash or dot",
    },
    { text: "/a%2Fb", problem: "it has an escaped slash, backslash or dot" },
    { text: "/a%5cb", problem: "it has an escaped slash, backslash or dot" },
    { text: "/%2e%2E/b", problem: "it has an escaped slash, backslash or dot" },
    { text: "/a b", problem: "it has characters that a URL escapes" },
    { text: "/café", problem: "it has characters that a URL escapes" },
    { text: "/a%", problem: "it has characters that a URL escapes" },
    { text: "/a%zz", problem: "it has characters that a URL escapes" },
    { text: "/{id}", problem: "it has characters that a URL escapes" },
  ])("refuses $text", ({ text, problem }) => {
    expect(parsePathPrefix(text)).toEqual({
      kind: "error",
      message: `expected a path such as "/v1/", got "${text}": ${problem}`,
    });
  });

  it("refuses a backslash", () => {
    expect(parsePathPrefix("/a\\b")).toMatchObject({
      message: expect.stringMatching(/: it has a backslash$/) as unknown,
    });
  });

  it("yields only what a URL parser leaves as it is", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme-ascii" }), (text) => {
        const parsed = parsePathPrefix(`/${text}`);
        if (parsed.kind === "error") return;
        expect(new URL(`https://h${parsed.value}`).pathname).toBe(`/${text}`);
      }),
    );
  });
});
