import { createLogger } from "../../src/function/logger.js";
import type { LogFields, Logger } from "../../src/ports.js";
import { recordOutput } from "./suite-output.js";

/** One line that was logged. */
export interface LogLine {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly message: string;
  /** With those of the loggers above. */
  readonly fields: LogFields;
}

/** Write as the program does, in either way, to what is searched for secrets when the suite has run. */
const searched = [false, true].map((debug) =>
  createLogger(
    { debug, destination: { write: (line) => recordOutput("log", line) } },
    { nowMs: () => 0, monotonicMs: () => 0 },
  ),
);

/** A logger and what it was told. */
export function recordingLogger(): { logger: Logger; lines: LogLine[] } {
  const lines: LogLine[] = [];
  const loggerWith = (bound: LogFields): Logger => {
    const log =
      (level: LogLine["level"]) => (fields: LogFields, message: string) => {
        const line = { level, message, fields: { ...bound, ...fields } };
        lines.push(line);
        for (const each of searched) each[level](line.fields, message);
      };
    return {
      debug: log("debug"),
      info: log("info"),
      warn: log("warn"),
      error: log("error"),
      child: (fields) => loggerWith({ ...bound, ...fields }),
    };
  };
  return { logger: loggerWith({}), lines };
}
