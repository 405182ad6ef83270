import { Command } from "commander";

/**
 * Has a program with a default command say that a command is unknown, as commander does without a
 * default, where the default command would complain of an argument it does not take.
 */
export function refuseUnknownCommands(program: Command): void {
  program.hook("preSubcommand", ({ args }, command) => {
    const [word] = args;
    const isOption = word !== undefined && /^-./u.test(word);
    // Only the default command is dispatched to without being named.
    if (word === undefined || isOption || word === command.name()) return;
    withoutDefault(program).parse([word], { from: "user" });
  });
}

/** The same names, none of which the word is. */
function withoutDefault(program: Command): Command {
  const names = new Command(program.name()).copyInheritedSettings(program);
  for (const command of program.commands) names.command(command.name());
  return names;
}
