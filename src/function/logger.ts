import { pino, type DestinationStream } from "pino";

import type { Clock, LogFields, Logger } from "../ports.js";
import { readableEntry, type LogLevel } from "./readable-log.js";

/** Where the log goes and how much of it. */
export interface LoggerOptions {
  /** Write `debug` lines too, and all of them for people. */
  readonly debug: boolean;
  readonly destination: DestinationStream;
}

/**
 * A log of JSON lines with `level` (text), `ts` (Unix seconds) and `msg`; with `debug` of lines as
 * {@link readableEntry} makes them.
 */
export function createLogger(options: LoggerOptions, clock: Clock): Logger {
  const { debug, destination } = options;
  const sink = debug
    ? readableSink(destination, clock)
    : jsonSink(destination, clock);
  return new BoundLogger(sink, {});
}

interface Sink {
  readonly takesDebug: boolean;
  write(level: LogLevel, fields: LogFields, message: string): void;
}

function jsonSink(destination: DestinationStream, clock: Clock): Sink {
  const logger = pino(
    {
      level: "info",
      base: null,
      timestamp: () => `,"ts":${clock.nowMs() / 1000}`,
      formatters: { level: (level) => ({ level }) },
    },
    destination,
  );
  return {
    takesDebug: false,
    write(level, fields, message) {
      logger[level](fields, message);
    },
  };
}

function readableSink(destination: DestinationStream, clock: Clock): Sink {
  return {
    takesDebug: true,
    write(level, fields, message) {
      destination.write(readableEntry(clock.nowMs(), level, message, fields));
    },
  };
}

/** Every request has a child, and most write nothing: fields meet when there is a line. */
class BoundLogger implements Logger {
  readonly #sink: Sink;
  readonly #bound: LogFields;

  constructor(sink: Sink, bound: LogFields) {
    this.#sink = sink;
    this.#bound = bound;
  }

  debug(fields: LogFields, message: string): void {
    if (!this.#sink.takesDebug) return;
    this.#sink.write("debug", { ...this.#bound, ...fields }, message);
  }

  info(fields: LogFields, message: string): void {
    this.#sink.write("info", { ...this.#bound, ...fields }, message);
  }

  warn(fields: LogFields, message: string): void {
    this.#sink.write("warn", { ...this.#bound, ...fields }, message);
  }

  error(fields: LogFields, message: string): void {
    this.#sink.write("error", { ...this.#bound, ...fields }, message);
  }

  child(fields: LogFields): Logger {
    return new BoundLogger(this.#sink, { ...this.#bound, ...fields });
  }
}
