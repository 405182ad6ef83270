import { pino, type DestinationStream, type Logger as Pino } from "pino";

import type { Clock, Logger } from "../ports.js";

/** Where the log goes and how much of it. */
export interface LoggerOptions {
  /** Write `debug` lines too. */
  readonly debug: boolean;
  readonly destination: DestinationStream;
}

/** A log of JSON lines with `level` (text), `ts` (Unix seconds) and `msg`. */
export function createLogger(options: LoggerOptions, clock: Clock): Logger {
  return wrap(
    pino(
      {
        level: options.debug ? "debug" : "info",
        base: null,
        timestamp: () => `,"ts":${clock.nowMs() / 1000}`,
        formatters: { level: (level) => ({ level }) },
      },
      options.destination,
    ),
  );
}

function wrap(logger: Pino): Logger {
  return {
    debug: (fields, message) => logger.debug(fields, message),
    info: (fields, message) => logger.info(fields, message),
    warn: (fields, message) => logger.warn(fields, message),
    error: (fields, message) => logger.error(fields, message),
    child: (fields) => wrap(logger.child(fields)),
  };
}
