import {
  chmodSync,
  existsSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";

import { expect, vi } from "vitest";

/** A shell script that is started in the compiler's place; `$1` is the job. Returns its path. */
export function writeStandIn(dir: string, script: string): string {
  const program = join(dir, "stand-in");
  // A file that runs cannot be written to.
  rmSync(program, { force: true });
  writeFileSync(program, `#!/bin/sh\n${script}\n`);
  chmodSync(program, 0o700);
  return program;
}

/**
 * A script that writes its number to `<path>.started` and then takes as long as it may. `path` is
 * that of the job's artifact or module.
 */
export function scriptThatWaits(
  path: "artifactPath" | "modulePath" = "artifactPath",
): string {
  return `path=\${1#*'"${path}":"'}; echo $$ > "\${path%%'"'*}.started"; exec sleep 600`;
}

export function hasStarted(path: string): boolean {
  const file = `${path}.started`;
  // The shell makes the file before it writes to it.
  return existsSync(file) && readFileSync(file, "utf8").endsWith("\n");
}

export function pidOf(path: string): number {
  return Number(readFileSync(`${path}.started`, "utf8"));
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

export async function until(condition: () => boolean): Promise<void> {
  await vi.waitFor(() => expect(condition()).toBe(true), {
    timeout: 20_000,
    interval: 5,
  });
}
