import { writeFile } from "node:fs/promises";
import { join } from "node:path";

import type { Guest, Guests } from "./guests.js";
import type { LoadClient } from "./load-client.js";
import { runFunctionRequest, type RequestParts } from "./request.js";
import type { Row } from "./table.js";

/** What a case gets. */
export interface Bench {
  readonly client: LoadClient;
  readonly guests: Guests;
  readonly moduleDir: string;
  /** Holds requests and caches; removed after the run. */
  readonly workDir: string;
  /** Fewer calls: figures for a first look, not for the record. */
  readonly quick: boolean;
  /** Tells the person who waits what goes on. */
  say(line: string): void;
}

/** One benchmark: measures, and says what it found. */
export interface Case {
  readonly name: string;
  run(bench: Bench): Promise<readonly Row[]>;
}

/** Limits of every request that should succeed; only the Go guests need more. */
export const TINY_TIMEOUT = "100ms";

/** For guests that take milliseconds to start. */
export const BIG_TIMEOUT = "10s";

/** How long a call may take that waits for a compile: as long as the engine's own load budget. */
export const FIRST_CALL_MS = 600_000;

/** Config that the example modules answer with a ConfigMap. */
export const EXAMPLE_CONFIG = { greeting: "hello" };

/** Writes a request for `guest` and returns its path. */
export async function requestFile(
  bench: Bench,
  name: string,
  guest: Guest,
  parts: Partial<RequestParts> = {},
): Promise<string> {
  const path = join(bench.workDir, `${name}.request`);
  await writeFile(
    path,
    runFunctionRequest({
      modulePath: guest.path,
      timeout: TINY_TIMEOUT,
      ...parts,
    }),
  );
  return path;
}
