import type { Command } from "commander";

/**
 * Has a command refuse `--name` together with `--no-name`, in whichever order: the last one would
 * win, and what the other one asks for would be dropped without a word.
 * @param name of an option that the command declares in both forms, without its dashes
 */
export function refuseOptionWithItsNo(command: Command, name: string): void {
  const forms = [name, `no-${name}`];
  const given = new Set<string>();
  for (const form of forms)
    command.on(`option:${form}`, () => {
      given.add(form);
      if (given.size < forms.length) return;
      command.error(
        `error: option '--${name}' cannot be used with option '--no-${name}'`,
      );
    });
}
