import { ESLint, Linter } from "eslint";
import { beforeAll, describe, expect, it } from "vitest";

import { root } from "./committed-files.js";

/** One of each group of files that has rules of its own. */
const files = [
  "src/main.ts",
  "src/cli/serve.ts",
  "src/engine/engine.ts",
  "src/engine/native.ts",
  "src/loader/loader.ts",
  "scripts/demo.mjs",
  "scripts/docs.ts",
  "bench/main.ts",
  "test/repo/lint.test.ts",
  "vitest.config.ts",
  "eslint.config.js",
];

describe.each(files)("repo/lint of %s", (file) => {
  let restrictedSyntax: Linter.RuleEntry;
  beforeAll(async () => {
    const eslint = new ESLint({ cwd: root });
    const config = (await eslint.calculateConfigForFile(file)) as Linter.Config;
    restrictedSyntax = config.rules?.["no-restricted-syntax"] ?? "off";
  });

  function messagesFor(code: string): string[] {
    const rules = { "no-restricted-syntax": restrictedSyntax };
    return new Linter().verify(code, { rules }).map(({ message }) => message);
  }

  const refusal = expect.stringMatching(
    /the first guest trap would hang/,
  ) as unknown;
  const signals = ["SIGSEGV", "SIGILL", "SIGFPE", "SIGBUS"];
  const methods = [
    "on",
    "once",
    "addListener",
    "prependListener",
    "prependOnceListener",
  ];
  it.each(signals)("refuses every way to listen for %s", (signal) => {
    for (const method of methods) {
      expect(messagesFor(`process.${method}("${signal}", f);`)).toEqual([
        refusal,
      ]);
    }
  });

  it.each([
    {
      name: "a quoted method",
      code: (s: string) => `process["on"]("${s}", f)`,
    },
    { name: "a template", code: (s: string) => `process.on(\`${s}\`, f)` },
    { name: "an optional call", code: (s: string) => `process?.on("${s}", f)` },
    {
      name: "an alias",
      code: (s: string) => `const p = process; p.on("${s}")`,
    },
    {
      name: "a chain",
      code: (s: string) => `process.on("SIGTERM", f).once("${s}", f)`,
    },
  ])("refuses it by $name", ({ code }) => {
    expect(messagesFor(code("SIGSEGV"))).toEqual([refusal]);
  });

  it.each([
    'process.on("SIGTERM", f);',
    'process.once("SIGINT", f);',
    'process.off("SIGSEGV", f);',
    'const crashed = signal === "SIGSEGV";',
  ])("allows %s", (code) => {
    expect(messagesFor(code)).toEqual([]);
  });
});
