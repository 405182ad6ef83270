import { mkdtempSync, rmSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { onTestFinished } from "vitest";
import type { Clock, LogFields, Logger } from "../../../../src/ports.js";

export interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly fields: LogFields;
}

/** A logger and what it was told. */
export function recordingLogger(): { logger: Logger; lines: LogLine[] } {
  const lines: LogLine[] = [];
  const at = (level: string) => (fields: LogFields, message: string) => {
    lines.push({ level, message, fields });
  };
  const logger: Logger = {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    child: () => logger,
  };
  return { logger, lines };
}

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
