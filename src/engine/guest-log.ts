import type { Logger } from "../ports.js";
import type { GuestLine } from "./native.js";

/** Writes what a guest said to the step's logger. The texts are printable and bounded already. */
export function logGuestLines(
  lines: readonly GuestLine[],
  droppedLines: number,
  logger: Logger,
): void {
  for (const { source, message, pairs } of lines) {
    // A Map, so that no key a guest chooses means anything to an object.
    const fields = {
      guest: message,
      ...(pairs.length > 0 && { kv: Object.fromEntries(new Map(pairs)) }),
    };
    switch (source) {
      case "debug":
        logger.debug(fields, "guest log");
        break;
      case "info":
        logger.info(fields, "guest log");
        break;
      case "warn":
        logger.warn(fields, "guest log");
        break;
      case "error":
        logger.error(fields, "guest log");
        break;
      case "stdout":
        logger.info(fields, "guest stdout");
        break;
      case "stderr":
        logger.warn(fields, "guest stderr");
        break;
    }
  }
  if (droppedLines > 0) logger.warn({ droppedLines }, "guest output truncated");
}
