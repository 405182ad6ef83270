import { createReadStream } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { extname, join } from "node:path";

import { errnoOf, errorText, escaped, quoted } from "../../errors.js";
import { FileError } from "./error.js";

/** Bytes a file may have: ten times what a cluster stores of one object. */
export const maxFileBytes = 16 * 1024 * 1024;

/**
 * The files that a location stands for: itself, or the `.yaml` and `.yml` files of a directory in
 * order of name, directories inside it left out.
 * @throws FileError file-unreadable, file-invalid when a directory has none
 */
export async function yamlFiles(location: string): Promise<string[]> {
  const files = await yamlFilesOf(location).catch((thrown: unknown) => {
    throw unreadable(location, thrown);
  });
  if (files.length > 0) return files;
  throw new FileError(
    "file-invalid",
    `${escaped(location, 4096)}: expected .yaml or .yml files in this directory, got none`,
  );
}

/**
 * A file's text, which must be UTF-8. The file may be a pipe.
 * @throws FileError file-unreadable, file-invalid
 */
export async function readFileText(location: string): Promise<string> {
  return await readStreamText(createReadStream(location), location);
}

/**
 * The text of a stream, which must be UTF-8.
 * @param name what messages call it
 * @throws FileError file-unreadable, file-invalid
 */
export async function readStreamText(
  stream: AsyncIterable<Uint8Array>,
  name: string,
): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const chunk of stream) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > maxFileBytes) break;
    }
  } catch (thrown) {
    throw unreadable(name, thrown);
  }
  const invalid = (problem: string) =>
    new FileError("file-invalid", `${escaped(name, 4096)}: ${problem}`);
  if (bytes > maxFileBytes) {
    throw invalid(`expected at most ${maxFileBytes} bytes (16 MiB), got more`);
  }
  try {
    const decoder = new TextDecoder("utf-8", { fatal: true });
    return decoder.decode(Buffer.concat(chunks));
  } catch {
    throw invalid("expected UTF-8 text");
  }
}

async function yamlFilesOf(location: string): Promise<string[]> {
  if (!(await stat(location)).isDirectory()) return [location];
  const entries = await readdir(location, { withFileTypes: true });
  return entries
    .filter(
      (entry) =>
        !entry.isDirectory() && [".yaml", ".yml"].includes(extname(entry.name)),
    )
    .map((entry) => join(location, entry.name))
    .sort();
}

function unreadable(location: string, thrown: unknown): FileError {
  const reason =
    errnoOf(thrown) === "EISDIR"
      ? "expected a file, got a directory"
      : escaped(errorText(thrown), 4096);
  return new FileError(
    "file-unreadable",
    `cannot read ${quoted(location, 4096)}: ${reason}`,
    { cause: thrown },
  );
}
