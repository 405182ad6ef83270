import { Command } from "commander";
import { describe, expect, it } from "vitest";

import { createTestPolicyEngine } from "../support/policy-engine.js";
import { addValidateCommand } from "../../src/cli/validate.js";
import { jsonReport } from "../../src/cli/validate/report.js";
import { createEngine } from "../../src/engine/index.js";
import { textOf } from "./committed-files.js";

const DOC = textOf("docs/validate.md");

/** The names in the first column of a section's table. */
function documented(section: string): string[] {
  const text =
    DOC.split(/^## /m).find((part) => part.startsWith(section)) ?? "";
  const cells = Array.from(text.matchAll(/^\| (?<cell>`[^|]*`) +\|/gm));
  return cells.flatMap((row) =>
    Array.from(row[0].matchAll(/`(?<name>[\w-]+)/g), (match) => match[1] ?? ""),
  );
}

describe("docs/validate.md", () => {
  it("lists every field of the JSON report, in its order", () => {
    const line = jsonReport.verdict({
      subject: { file: "f", document: 0, step: null, name: "", input: null },
      refusal: null,
      module: null,
      from: null,
      limits: null,
      compositionPolicy: false,
      grants: null,
      warnings: [],
    });

    expect(Object.keys(JSON.parse(line) as object).sort()).toEqual(
      documented("JSON").sort(),
    );
  });

  it("lists every warning", () => {
    const source = textOf("src/cli/validate/warning.ts");
    const union = /type WarningCode =(?<union>[^;]*);/.exec(source)?.[1] ?? "";
    const codes = Array.from(union.matchAll(/"([a-z-]+)"/g), (m) => m[1]);

    expect(codes.length).toBeGreaterThan(0);
    expect(documented("Warnings").sort()).toEqual(codes.sort());
  });

  it("names every flag", () => {
    const program = new Command();
    addValidateCommand(program, {
      env: {},
      clock: { nowMs: () => 0, monotonicMs: () => 0 },
      createEngine,
      createPolicyEngine: createTestPolicyEngine,
      stdin: () => process.stdin,
    });
    const flags = (program.commands[0]?.options ?? [])
      .filter(({ hidden }) => !hidden)
      .map(({ long }) => long ?? "");

    expect(flags.length).toBeGreaterThan(10);
    expect(flags.filter((flag) => !DOC.includes(`\`${flag}`))).toEqual([]);
  });
});
