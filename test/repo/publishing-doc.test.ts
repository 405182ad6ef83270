import { Command } from "commander";
import { describe, expect, it } from "vitest";

import { addModuleCommand } from "../../src/cli/module.js";
import { createEngine } from "../../src/engine/index.js";
import { textOf } from "./committed-files.js";

const DOC = textOf("docs/publishing.md");

describe("docs/publishing.md", () => {
  it.each(["push", "pull", "inspect"])("names every flag of %s", (name) => {
    const program = new Command();
    addModuleCommand(program, {
      env: {},
      clock: { nowMs: () => 0, monotonicMs: () => 0 },
      createEngine,
    });
    const command = program.commands[0]?.commands.find(
      (each) => each.name() === name,
    );
    const flags = (command?.options ?? [])
      .filter(({ hidden }) => !hidden)
      .map(({ long }) => long ?? "");

    expect(flags.length).toBeGreaterThan(6);
    expect(flags.filter((flag) => !DOC.includes(`\`${flag}`))).toEqual([]);
  });

  it("shows commands that there are", () => {
    const named = [...DOC.matchAll(/dist\/main\.js module (?<name>\w+)/g)].map(
      ({ groups }) => groups?.["name"],
    );

    expect(new Set(named)).toEqual(new Set(["push", "pull", "inspect"]));
  });
});
