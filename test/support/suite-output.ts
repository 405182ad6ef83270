/** What the programs under test write, kept until the whole suite has run: see output-check.ts. */
import { openSync, writeSync } from "node:fs";
import { join } from "node:path";

/** The environment variable that names the directory to keep it in; without it nothing is kept. */
export const OUTPUT_DIR_VARIABLE = "SUITE_OUTPUT_DIR";
const TEST_FILE_VARIABLE = "SUITE_OUTPUT_TEST_FILE";

/**
 * Where output came from: a process, a Logger in memory, a command run in the test's own process,
 * a page of the metrics or health server.
 */
export const OUTPUT_KINDS = ["process", "log", "command", "page"] as const;
export type OutputKind = (typeof OUTPUT_KINDS)[number];

/** Begins the line that says which test file the output after it comes from. */
export const TEST_FILE_MARK = "\0test file: ";

const dir = process.env[OUTPUT_DIR_VARIABLE];

interface OpenFile {
  readonly fd: number;
  testFile: string;
}
const files = new Map<OutputKind, OpenFile>();

/** Says which test file the output from now on comes from, that of processes started here as well. */
export function beginTestFile(path: string): void {
  process.env[TEST_FILE_VARIABLE] = path;
  recordOutput("process", "");
}

/** Keeps output. Writes at once: what runs the tests is killed at the end. */
export function recordOutput(
  kind: OutputKind,
  output: string | Uint8Array,
): void {
  if (dir === undefined) return;
  let file = files.get(kind);
  if (file === undefined) {
    const fd = openSync(join(dir, `${process.pid}.${kind}`), "a", 0o600);
    file = { fd, testFile: "" };
    files.set(kind, file);
  }
  const testFile = process.env[TEST_FILE_VARIABLE] ?? "";
  if (testFile !== file.testFile) {
    file.testFile = testFile;
    writeSync(file.fd, `\n${TEST_FILE_MARK}${testFile}\n`);
  }
  if (output.length === 0) return;
  const bytes = Buffer.from(output);
  writeSync(file.fd, bytes);
  // What ends here must not run into what comes next.
  if (bytes.at(-1) !== 0x0a) writeSync(file.fd, "\n");
}
