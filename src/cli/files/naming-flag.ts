import { FileError } from "./error.js";

/**
 * Reads a file that a flag names; what is wrong with it begins with the flag.
 * @throws what `read` throws
 */
export async function namingFlag<T>(
  flag: string,
  read: () => Promise<T>,
): Promise<T> {
  try {
    return await read();
  } catch (thrown) {
    if (!(thrown instanceof FileError)) throw thrown;
    const { cause, code, message } = thrown;
    throw new FileError(code, `${flag}: ${message}`, { cause });
  }
}
