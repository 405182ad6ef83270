import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readFileSync,
} from "node:fs";

/**
 * The bytes of a file that a flag names. Never waits for a FIFO's writer, and never reads a device,
 * which has no end.
 * @throws Error that says what is wrong with it
 */
export function readSettingsFile(file: string, maxBytes: number): Buffer {
  const handle = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = fstatSync(handle);
    if (!stats.isFile())
      throw new Error(`expected a regular file, got ${file}`);
    if (stats.size > maxBytes) {
      throw new Error(
        `expected at most ${maxBytes} bytes in ${file}, got ${stats.size}`,
      );
    }
    return readFileSync(handle);
  } finally {
    closeSync(handle);
  }
}
