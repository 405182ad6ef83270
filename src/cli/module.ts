import type { Command } from "commander";

import type { ModuleHost } from "./module/host.js";
import { addInspectCommand } from "./module/inspect.js";
import { addPullCommand } from "./module/pull.js";
import { addPushCommand } from "./module/push.js";

/**
 * Adds `module`, the commands for those who publish modules. Each sets `process.exitCode`: 0 done,
 * 1 the module or its manifest is refused, 2 anything else.
 */
export function addModuleCommand(program: Command, host: ModuleHost): void {
  const group = program
    .command("module")
    .description("publish, pull and inspect modules");
  addPushCommand(group, host);
  addPullCommand(group, host);
  addInspectCommand(group, host);
}
