import type { Logger } from "../../ports.js";
import { escaped } from "../../errors.js";
import { silentLogger } from "../silent.js";
import type { Say } from "./outcome.js";

const MAX_FIELDS_CHARS = 500;

/** A logger that says warnings and nothing else: what a Docker config lacks, for example. */
export function warningLogger(say: Say): Logger {
  const logger: Logger = {
    ...silentLogger,
    warn: (fields, message) =>
      say(`${message} (${escaped(fieldsText(fields), MAX_FIELDS_CHARS)})`),
    child: () => logger,
  };
  return logger;
}

function fieldsText(fields: Readonly<Record<string, unknown>>): string {
  return Object.entries(fields)
    .map(([name, value]) => `${name} ${String(value)}`)
    .join(", ");
}
