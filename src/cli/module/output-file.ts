import { randomBytes } from "node:crypto";
import type { Stats } from "node:fs";
import {
  link,
  lstat,
  open,
  realpath,
  rename,
  rm,
  stat,
} from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";

import { errnoOf, errorText, escaped, quoted } from "../../errors.js";
import { FileError } from "../files/error.js";

/** A file that is to be written. */
export interface OutputFile {
  readonly path: string;
  /** The flag that names it, for messages. */
  readonly flag: string;
  /** Whether it may take the place of another. */
  readonly replaces: boolean;
  /** What else could be done where it may not, such as `--force replaces it`. */
  readonly advice: string;
}

/** What a file is to hold. */
export interface OutputContent {
  readonly file: OutputFile;
  readonly chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
}

const MAX_SHOWN_CHARS = 1_000;
/** Of the final name, so that one that is as long as names may be has a temporary one, too. */
const MAX_NAME_CHARS = 40;

/**
 * Looks whether a file could be written, and leaves nothing: its directory is there and can be written
 * to, and nothing is in its place that it may not replace.
 * @throws FileError file-unreadable, file-invalid
 */
export async function requireWritable(file: OutputFile): Promise<void> {
  const { path } = file;
  if (path === "" || path.endsWith("/"))
    throw new FileError(
      "file-invalid",
      `${file.flag}: expected the path of a file, got ${quoted(path, MAX_SHOWN_CHARS)}`,
    );
  await requireDirectory(file);
  const there = await lookAt(file);
  if (there === null) return;
  // A device would be replaced, too.
  if (!there.isFile() && !there.isSymbolicLink())
    throw new FileError(
      "file-invalid",
      `${nameOf(file)}: expected a file or nothing in that place, got ${there.isDirectory() ? "a directory" : "something else"}`,
    );
  if (!file.replaces) throw isThere(file);
}

/**
 * Whether writing to one would replace the other. What the last name of a path is a link to does not
 * matter: the link itself would be replaced.
 */
export async function isSameOutputFile(a: string, b: string): Promise<boolean> {
  return (await placeOf(a)) === (await placeOf(b));
}

/**
 * Writes files, each whole or not at all: all of them are complete beside their places before the
 * first one gets its name. So only what somebody else does in between can keep a later one out.
 * @param onWritten is told of each that has its name
 * @throws FileError file-unreadable, file-invalid when one is there and may not be replaced; what the
 * chunks throw
 */
export async function writeOutputFiles(
  contents: readonly OutputContent[],
  onWritten: (path: string, sizeBytes: number) => void,
): Promise<void> {
  const staged: StagedFile[] = [];
  try {
    for (const content of contents) staged.push(await stage(content));
    for (const each of staged) {
      await giveName(each);
      onWritten(each.file.path, each.sizeBytes);
    }
  } finally {
    for (const { temporary } of staged) await rm(temporary, { force: true });
  }
}

/** A file that is complete but for its name. */
interface StagedFile {
  readonly file: OutputFile;
  /** Beside its place, where a rename is all that is missing. */
  readonly temporary: string;
  readonly sizeBytes: number;
}

/** Leaves nothing when it fails. */
async function stage({ chunks, file }: OutputContent): Promise<StagedFile> {
  const fail = (thrown: unknown): never => {
    throw unwritable(file, thrown);
  };
  const temporary = temporaryFor(file);
  const handle = await open(temporary, "wx").catch(fail);
  let sizeBytes = 0;
  try {
    try {
      for await (const chunk of chunks) {
        await handle.writeFile(chunk).catch(fail);
        sizeBytes += chunk.length;
      }
      await handle.sync().catch(fail);
    } finally {
      await handle.close();
    }
  } catch (thrown) {
    await rm(temporary, { force: true });
    throw thrown;
  }
  return { file, temporary, sizeBytes };
}

/** A name beside the file's that nothing has. */
function temporaryFor({ path }: OutputFile): string {
  const suffix = randomBytes(6).toString("hex");
  const name = `.${basename(path).slice(0, MAX_NAME_CHARS)}.${suffix}`;
  return join(dirname(path), name);
}

async function giveName({ file, temporary }: StagedFile): Promise<void> {
  const { path, replaces } = file;
  // A link takes nobody's place.
  const naming = replaces ? rename(temporary, path) : link(temporary, path);
  await naming.catch((thrown: unknown) => {
    throw errnoOf(thrown) === "EEXIST"
      ? isThere(file)
      : unwritable(file, thrown);
  });
}

async function requireDirectory(file: OutputFile): Promise<void> {
  const dir = dirname(file.path);
  const shown = quoted(dir, MAX_SHOWN_CHARS);
  const refuse = (problem: string, cause?: unknown) =>
    new FileError(
      "file-unreadable",
      `${nameOf(file)}: expected a directory to write to, ${problem}`,
      { cause },
    );
  try {
    const found = await stat(dir);
    if (!found.isDirectory()) throw refuse(`${shown} is none`);
    // Only trying tells: a mount may be read-only, a quota used up.
    const temporary = temporaryFor(file);
    await (await open(temporary, "wx")).close();
    await rm(temporary);
  } catch (thrown) {
    if (thrown instanceof FileError) throw thrown;
    const code = errnoOf(thrown);
    throw code === "ENOENT" || code === "ENOTDIR"
      ? refuse(`there is no ${shown}`, thrown)
      : refuse(`${shown} cannot be written to (${code})`, thrown);
  }
}

/** What has the place of a file, a link as it is; null = nothing. */
async function lookAt(file: OutputFile): Promise<Stats | null> {
  try {
    return await lstat(file.path);
  } catch (thrown) {
    if (errnoOf(thrown) === "ENOENT") return null;
    throw unwritable(file, thrown);
  }
}

async function placeOf(file: string): Promise<string> {
  const path = resolve(file);
  // Where no directory is nothing can be written either.
  const dir = await realpath(dirname(path)).catch(() => dirname(path));
  return join(dir, basename(path));
}

function nameOf({ flag, path }: OutputFile): string {
  return `${flag} ${quoted(path, MAX_SHOWN_CHARS)}`;
}

function isThere({ advice, path }: OutputFile): FileError {
  return new FileError(
    "file-invalid",
    `${quoted(path, MAX_SHOWN_CHARS)} is there already: ${advice}`,
  );
}

function unwritable({ flag, path }: OutputFile, thrown: unknown): FileError {
  return new FileError(
    "file-unreadable",
    `${flag}: cannot write ${quoted(path, MAX_SHOWN_CHARS)}: ${escaped(errorText(thrown), 1000)}`,
    { cause: thrown },
  );
}
