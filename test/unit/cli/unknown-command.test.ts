import { Command, CommanderError } from "commander";
import { describe, expect, it } from "vitest";

import { refuseUnknownCommands } from "../../../src/cli/unknown-command.js";
import { captureWrites } from "../../support/captured-writes.js";

/** What a program with a default command said, and ran. */
async function parse(...argv: string[]) {
  const ran: string[] = [];
  const program = new Command("program").exitOverride();
  program
    .command("serve", { isDefault: true })
    .option("--insecure")
    .action(() => void ran.push("serve"));
  program
    .command("validate")
    .argument("[files...]")
    .action(() => void ran.push("validate"));
  program
    .command("module")
    .command("push")
    .action(() => undefined);
  refuseUnknownCommands(program);
  const { written, restore } = captureWrites();
  try {
    await program.parseAsync(argv, { from: "user" });
    return { ran, stderr: written.stderr };
  } catch (thrown) {
    if (!(thrown instanceof CommanderError)) throw thrown;
    return { ran, stderr: written.stderr };
  } finally {
    restore();
  }
}

describe("cli/unknown-command", () => {
  it.each([
    { argv: ["validat"], like: "validate" },
    { argv: ["validat", "f.yaml", "--xr", "x.yaml"], like: "validate" },
    { argv: ["servee", "--insecure"], like: "serve" },
    { argv: ["modul", "push"], like: "module" },
  ])("says that $argv is none, and what it is like", async ({ argv, like }) => {
    expect(await parse(...argv)).toEqual({
      ran: [],
      stderr: `error: unknown command '${argv[0]}'\n(Did you mean ${like}?)\n`,
    });
  });

  it.each(["version", "-", ""])("says that '%s' is none", async (word) => {
    expect(await parse(word)).toEqual({
      ran: [],
      stderr: `error: unknown command '${word}'\n`,
    });
  });

  it.each([
    { argv: ["serve", "extra"] },
    { argv: ["--insecure", "extra"] },
    { argv: ["serve", "--", "extra"] },
  ])("leaves an argument too many, as in $argv, to serve", async ({ argv }) => {
    expect(await parse(...argv)).toEqual({
      ran: [],
      stderr:
        "error: too many arguments for 'serve'. Expected 0 arguments but got 1.\n",
    });
  });

  it.each([
    { argv: [], want: "serve" },
    { argv: ["--insecure"], want: "serve" },
    { argv: ["serve"], want: "serve" },
    { argv: ["validate", "validat"], want: "validate" },
  ])("runs $want for $argv", async ({ argv, want }) => {
    expect(await parse(...argv)).toEqual({ ran: [want], stderr: "" });
  });
});
