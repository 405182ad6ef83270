import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

const TIMEOUT_MS = 5_000;
const POLL_MS = 5;

/** Every request that a handler takes is logged so before it is answered. */
const BEGUN = /"msg":"authorizing request"/gu;
/** And once more, in Apache's format, when its handler has ended. */
const ENDED =
  /^\S+ \S+ \S+ \[[^\]]+\] "(?<method>[A-Z]+) (?<path>\S+) HTTP\/[\d.]+" (?<status>\d{3}) /gmu;

/** A request that was answered. */
export interface LoggedRequest {
  readonly method: string;
  /** As sent, with its query. */
  readonly path: string;
  readonly status: number;
}

/** What docker-registry wrote to its log, from a place in it that was its length before. */
export function readLog(logFile: string, start = 0): string {
  return readFileSync(logFile, "utf8").slice(start);
}

/** The requests in a log, in the order in which they ended. */
export function requestsIn(log: string): readonly LoggedRequest[] {
  return Array.from(log.matchAll(ENDED), ({ groups = {} }) => {
    const { method = "", path = "", status } = groups;
    return { method, path, status: Number(status) };
  });
}

/**
 * Waits until all requests are in the log: whoever reads an answer can have its end before the
 * registry has written its line.
 * @throws Error when one is still under way after 5 seconds
 */
export async function waitForRequests(readNow: () => string): Promise<void> {
  const deadlineAtMs = performance.now() + TIMEOUT_MS;
  for (;;) {
    const log = readNow();
    const begun = log.match(BEGUN)?.length ?? 0;
    if (requestsIn(log).length >= begun) return;
    if (performance.now() > deadlineAtMs) {
      throw new Error(`docker-registry is still answering: ${log}`);
    }
    await delay(POLL_MS);
  }
}
