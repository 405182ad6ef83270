import { mkdtempSync, rmSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { onTestFinished } from "vitest";
import type { Clock } from "../../../../src/ports.js";

export { recordingLogger } from "../../../support/recorded-log.js";

/** A clock that goes when it is told; it starts at the time of the machine, which stamps files. */
export function handClock(startMs = Date.now()) {
  let passedMs = 0;
  return {
    nowMs: () => startMs + passedMs,
    monotonicMs: () => passedMs,
    advance(ms: number) {
      passedMs += ms;
    },
  } satisfies Clock & { advance(ms: number): void };
}

/** An empty directory that is gone after the test. */
export function makeDir(): string {
  const dir = mkdtempSync(path.join(tmpdir(), "function-wasm-store-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** Makes a file look as if it was last written to then. */
export function setTime(filePath: string, unixMs: number): void {
  utimesSync(filePath, unixMs / 1000, unixMs / 1000);
}
