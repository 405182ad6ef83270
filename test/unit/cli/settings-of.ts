import { Command } from "commander";

import { readSettings, type Settings } from "../../../src/cli/settings.js";
import { addFlags, type Environment } from "../../../src/config.js";

/** What `serve` would go by with this command line and environment. */
export function settingsOf(
  argv: readonly string[],
  env: Environment = {},
): Settings {
  const command = addFlags(new Command()).exitOverride();
  command.parse(argv, { from: "user" });
  return readSettings(command, env);
}
