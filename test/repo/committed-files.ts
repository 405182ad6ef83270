import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";

/** The clone these tests look at. */
export const root = path.resolve(import.meta.dirname, "../..");

/** Paths of all files that are committed or could be, relative to the root. */
export function committedFiles(): string[] {
  const args = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
  const deleted = ["ls-files", "-z", "--deleted"];
  const gone = new Set(listed(deleted));
  return listed(args).filter((file) => !gone.has(file));
}

/** The text of a committed file. */
export function textOf(file: string): string {
  return readFileSync(path.join(root, file), "utf8");
}

function listed(args: string[]): string[] {
  const output = execFileSync("git", args, { cwd: root, encoding: "utf8" });
  return output.split("\0").filter((file) => file !== "");
}
