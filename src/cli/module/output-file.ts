import { randomBytes } from "node:crypto";
import { link, lstat, open, realpath, rename, rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";

import { errorText, escaped, quoted } from "../../errors.js";
import { FileError } from "../files/error.js";

const MAX_SHOWN_CHARS = 1_000;

/**
 * Refuses to write what would replace a file.
 * @param advice what else could be done, such as `--force replaces it`
 * @throws FileError file-invalid
 */
export async function refuseExisting(
  file: string,
  advice: string,
): Promise<void> {
  const isThere = await lstat(file).then(
    () => true,
    () => false,
  );
  if (isThere) throw exists(file, advice);
}

/**
 * Whether writing to one would replace the other. What the last name of a path is a link to does not
 * matter: the link itself would be replaced.
 */
export async function isSameOutputFile(a: string, b: string): Promise<boolean> {
  return (await placeOf(a)) === (await placeOf(b));
}

/**
 * Writes all of a file or nothing.
 * @param options.replaces whether it may take the place of another
 * @throws FileError file-unreadable, file-invalid when it is there and may not be replaced; what the
 * chunks throw
 */
export async function writeOutputFile(
  file: string,
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  options: { readonly replaces: boolean; readonly advice: string },
): Promise<void> {
  const suffix = randomBytes(6).toString("hex");
  const temporary = join(dirname(file), `.${basename(file)}.${suffix}`);
  const handle = await open(temporary, "wx").catch((thrown: unknown) => {
    throw unwritable(file, thrown);
  });
  try {
    try {
      for await (const chunk of chunks)
        await handle.writeFile(chunk).catch((thrown: unknown) => {
          throw unwritable(file, thrown);
        });
      await handle.sync();
    } finally {
      await handle.close();
    }
    await (
      options.replaces ? rename(temporary, file) : link(temporary, file)
    ).catch((thrown: unknown) => {
      throw isExisting(thrown)
        ? exists(file, options.advice)
        : unwritable(file, thrown);
    });
  } finally {
    await rm(temporary, { force: true });
  }
}

async function placeOf(file: string): Promise<string> {
  const path = resolve(file);
  // Where no directory is nothing can be written either.
  const dir = await realpath(dirname(path)).catch(() => dirname(path));
  return join(dir, basename(path));
}

function isExisting(thrown: unknown): boolean {
  return (
    thrown instanceof Error && "code" in thrown && thrown.code === "EEXIST"
  );
}

function exists(file: string, advice: string): FileError {
  return new FileError(
    "file-invalid",
    `${quoted(file, MAX_SHOWN_CHARS)} is there already: ${advice}`,
  );
}

function unwritable(file: string, thrown: unknown): FileError {
  return new FileError(
    "file-unreadable",
    `cannot write ${quoted(file, MAX_SHOWN_CHARS)}: ${escaped(errorText(thrown), 1000)}`,
    { cause: thrown },
  );
}
