import { lstat, realpath } from "node:fs/promises";
import { errnoOf, escaped } from "../errors.js";
import type { ModuleFile, RequestScope } from "../ports.js";
import { LoaderError, type LoaderErrorCode } from "./error.js";
import { hashFile } from "./hash-file.js";

const MAX_SHOWN_CHARS = 1_000;

/**
 * A module in a file that whoever started the program names, wherever it lies, links followed.
 * @throws LoaderError module-not-found, module-not-regular, module-empty, module-too-large,
 * module-unreadable, module-changed, resolve-cancelled
 */
export async function findModuleFile(
  location: string,
  maxModuleBytes: number,
  scope: RequestScope,
): Promise<ModuleFile> {
  const description = escaped(location, MAX_SHOWN_CHARS);
  const refuse = (code: LoaderErrorCode, reason: string, cause?: unknown) =>
    new LoaderError(code, `module ${description}: ${reason}`, { cause });
  const unreachable = (cause: unknown): never => {
    const errno = errnoOf(cause);
    throw errno === "ENOENT" || errno === "ENOTDIR"
      ? refuse("module-not-found", "no such file", cause)
      : refuse(
          "module-unreadable",
          `the file cannot be read (${errno})`,
          cause,
        );
  };
  const filePath = await realpath(location).catch(unreachable);
  const stats = await lstat(filePath, { bigint: true }).catch(unreachable);
  if (!stats.isFile())
    throw refuse("module-not-regular", "expected a regular file");
  if (stats.size === 0n) throw refuse("module-empty", "the file is empty");
  if (stats.size > maxModuleBytes) {
    throw refuse(
      "module-too-large",
      `the file has ${String(stats.size)} bytes, --max-module-size allows ${maxModuleBytes}`,
    );
  }
  const hashed = await hashFile(filePath, stats, scope.signal);
  if (hashed.kind === "refused")
    throw refuse(hashed.code, hashed.reason, hashed.cause);
  const sizeBytes = Number(stats.size);
  return { digest: hashed.digest, filePath, sizeBytes, description };
}
