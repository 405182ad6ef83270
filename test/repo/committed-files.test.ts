import { describe, expect, it } from "vitest";

import { committedFiles, textOf } from "./committed-files.js";

interface Rule {
  name: string;
  reason: string;
  pattern: RegExp;
  /** Must match, so that the rule is known to work. */
  example: string;
  in?: RegExp;
}

const rules: Rule[] = [
  {
    name: "a path of one machine",
    reason: "it exists nowhere else",
    pattern: /(?<![\w.])\/(?:work|root|Users|home\/\w+)\//,
    example: ["", "home", "me", "src"].join("/"),
  },
  {
    name: "a package registry's host",
    reason: "the user's own configuration names the registry",
    pattern:
      /registry\.(?:npmjs\.org|yarnpkg\.com)|(?:index|static)\.crates\.io|proxy\.golang\.org|deb\.debian\.org/,
    example: ["https://registry", "npmjs", "org/x"].join("."),
  },
  {
    name: "a crash-signal handler",
    reason: "libuv would replace wasmtime's, and the first trap would hang",
    pattern:
      /\.(?:on|once|(?:prepend)?\w*[lL]istener)\(\s*["'`]SIG(?:SEGV|ILL|FPE|BUS)/,
    example: ["process.on('SIG", "SEGV', f)"].join(""),
    in: /\.[cm]?[jt]sx?$/,
  },
  {
    name: "a suppression without a reason",
    reason: "the next reader cannot tell whether it still holds",
    pattern: /(?:eslint-disable(?!.* -- )|@ts-(?:ignore|nocheck))/,
    example: ["// eslint", "disable-next-line no-console"].join("-"),
    in: /^(?:src\/(?!gen\/)|bench\/|scripts\/|test\/).*\.[cm]?[jt]s$/,
  },
  {
    name: "a registry address in an npm lock file",
    reason: "installing would go around the user's registry",
    pattern: /"resolved": "(?!file:)/,
    example: ["", "resolved", ": ", "https://example.test/x.tgz"].join(`"`),
    in: /(?:^|\/)package-lock\.json$/,
  },
];

describe("repo/committed-files", () => {
  it.each(rules)("hold nowhere $name: $reason", (rule) => {
    const found = committedFiles()
      .filter((file) => rule.in?.test(file) ?? isText(file))
      .flatMap((file) =>
        textOf(file)
          .split("\n")
          .map((line, index) => ({ line, where: `${file}:${index + 1}` })),
      )
      .filter(({ line }) => rule.pattern.test(line))
      .map(({ line, where }) => `${where}: ${line.trim().slice(0, 120)}`);

    expect(found).toEqual([]);
  });

  it.each(rules)("would be noticed if they held $name", (rule) => {
    expect(rule.example).toMatch(rule.pattern);
  });
});

function isText(file: string): boolean {
  return !/\.(?:wasm|png|gz|tar|zst)$/.test(file);
}
