import { describe, expect, it } from "vitest";

import { textOf } from "./committed-files.js";

const doc = textOf("docs/tls.md").replace(/\s+/g, " ");

describe("docs/tls.md", () => {
  it.each([
    { file: "tls.ts", atLeast: 9 },
    { file: "tls-refusal.ts", atLeast: 6 },
    { file: "tls-reload.ts", atLeast: 1 },
    { file: "tls-expiry.ts", atLeast: 2 },
    { file: "tls-files.ts", atLeast: 5 },
  ])("has every sentence of $file", ({ file, atLeast }) => {
    const sentences = [
      ...textOf(`src/function/${file}`).matchAll(
        /"(?<text>[a-z][^"\n]* [^"\n]* [^"\n]+)"/g,
      ),
    ].map((match) => match.groups?.["text"] ?? "");

    expect(sentences.length).toBeGreaterThanOrEqual(atLeast);
    expect(sentences.filter((text) => !doc.includes(text))).toEqual([]);
  });
});
