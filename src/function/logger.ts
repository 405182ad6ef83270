import { pino, type DestinationStream, type Logger as Pino } from "pino";

import type { Clock, LogFields, Logger } from "../ports.js";

/** Where the log goes and how much of it. */
export interface LoggerOptions {
  /** Write `debug` lines too. */
  readonly debug: boolean;
  readonly destination: DestinationStream;
}

/** A log of JSON lines with `level` (text), `ts` (Unix seconds) and `msg`. */
export function createLogger(options: LoggerOptions, clock: Clock): Logger {
  const logger = pino(
    {
      level: options.debug ? "debug" : "info",
      base: null,
      timestamp: () => `,"ts":${clock.nowMs() / 1000}`,
      formatters: { level: (level) => ({ level }) },
    },
    options.destination,
  );
  return new BoundLogger(logger, {});
}

/** Every request has a child, and most write nothing: fields meet when there is a line. */
class BoundLogger implements Logger {
  readonly #logger: Pino;
  readonly #bound: LogFields;

  constructor(logger: Pino, bound: LogFields) {
    this.#logger = logger;
    this.#bound = bound;
  }

  debug(fields: LogFields, message: string): void {
    if (!this.#logger.isLevelEnabled("debug")) return;
    this.#logger.debug({ ...this.#bound, ...fields }, message);
  }

  info(fields: LogFields, message: string): void {
    this.#logger.info({ ...this.#bound, ...fields }, message);
  }

  warn(fields: LogFields, message: string): void {
    this.#logger.warn({ ...this.#bound, ...fields }, message);
  }

  error(fields: LogFields, message: string): void {
    this.#logger.error({ ...this.#bound, ...fields }, message);
  }

  child(fields: LogFields): Logger {
    return new BoundLogger(this.#logger, { ...this.#bound, ...fields });
  }
}
