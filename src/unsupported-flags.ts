import { Option, type Command } from "commander";

import { ConfigError, type Environment } from "./config.js";

/** A flag of the Rust function-wasm whose feature is missing here. */
export interface UnsupportedFlag {
  readonly name: string;
  /** `null` = it has none. */
  readonly env: string | null;
  /** Its value that asks for nothing, and so is honoured; `null` = it has none. */
  readonly off: string | null;
  /** Completes "not supported: ". */
  readonly why: string;
}

/**
 * What may stand in a configuration that was written for it. None of these is ignored: whoever
 * sets one to more than its `off` relies on it.
 */
// prettier-ignore
export const unsupportedFlags: readonly UnsupportedFlag[] = [
  { name: "cosign-key", env: "COSIGN_KEY", off: null, why: "signatures are not verified; to refuse modules that would need one, use requireSignature in --sandbox-policy-file" },
  { name: "egress-rate-limit-per-minute", env: "EGRESS_RATE_LIMIT_PER_MINUTE", off: "0", why: "no module is granted egress, so there is nothing to limit" },
  { name: "egress-rate-limit-burst", env: "EGRESS_RATE_LIMIT_BURST", off: "0", why: "no module is granted egress, so there is nothing to limit" },
  { name: "profile-guests", env: null, off: null, why: "modules are not profiled" },
];

/** Declares them on a command, hidden, so that they can be refused by name. */
export function addUnsupportedFlags(command: Command): Command {
  for (const { name } of unsupportedFlags) command.addOption(optionOf(name));
  return command;
}

/**
 * Refuses those that a parsed command or the environment sets.
 * @throws ConfigError flag-invalid
 */
export function refuseUnsupportedFlags(
  command: Command,
  env: Environment,
): void {
  for (const { name, env: variable, off, why } of unsupportedFlags) {
    const given: unknown = command.getOptionValue(
      optionOf(name).attributeName(),
    );
    const value = given ?? textOf(variable, env);
    if (value === undefined || value === off) continue;
    const origin = given === undefined ? ` (${variable ?? ""})` : "";
    throw refusal(`--${name}${origin}`, why);
  }
}

function textOf(variable: string | null, env: Environment): string | undefined {
  const text = variable === null ? undefined : env[variable];
  return text === "" ? undefined : text;
}

function optionOf(name: string): Option {
  return new Option(`--${name} [value]`).hideHelp();
}

function refusal(flag: string, why: string): ConfigError {
  return new ConfigError("flag-invalid", `${flag}: not supported: ${why}`);
}
