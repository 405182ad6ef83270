import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  startSweeper,
  type Sweeper,
  type SweeperOptions,
} from "../../../../src/loader/store/sweeper.js";
import type { Digest } from "../../../../src/ports.js";
import { handClock, makeDir, recordingLogger, setTime } from "./fixtures.js";
import { digestOf, fileNameOf } from "./store-content.js";

const HOUR_MS = 3_600_000;
const TEN_MINUTES_MS = 600_000;

let cacheDir: string;
let clock: ReturnType<typeof handClock>;
let log: ReturnType<typeof recordingLogger>;
let swept: [string, number][];
let sweepers: Sweeper[];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  cacheDir = makeDir();
  // Older than every file is when it is written.
  clock = handClock();
  clock.advance(10 * HOUR_MS);
  log = recordingLogger();
  swept = [];
  sweepers = [];
});

afterEach(async () => {
  for (const sweeper of sweepers) await sweeper.close();
  vi.useRealTimers();
});

const at = (name: string) => path.join(cacheDir, name);

/** A file of 100 bytes that was last used `ageMs` ago. */
function put(directory: string, name: string, ageMs = 5 * HOUR_MS): string {
  const filePath = path.join(at(directory), name);
  mkdirSync(path.dirname(filePath), { recursive: true });
  writeFileSync(filePath, Buffer.alloc(100));
  setTime(filePath, clock.nowMs() - ageMs);
  return filePath;
}

function start(
  changed: Partial<SweeperOptions> = {},
  metrics = {
    cacheSwept: (cache: string, bytes: number) => {
      swept.push([cache, bytes]);
    },
  },
): Sweeper {
  const sweeper = startSweeper(
    {
      cacheDir,
      directories: () => [
        { kind: "blob", directory: at("blobs") },
        { kind: "manifest", directory: at("manifests") },
      ],
      maxBytes: 0,
      compiledDir: at("compiled/current"),
      usedSince: () => [],
      ...changed,
    },
    clock,
    log.logger,
    metrics,
  );
  sweepers.push(sweeper);
  return sweeper;
}

/** Waits for so many sweeps in all; `expect.poll` would move the faked time on. */
async function sweeps(count: number): Promise<void> {
  // The second of the two metrics ends one.
  while (swept.length < 2 * count) await setImmediate();
}

async function loggedLines(count: number): Promise<readonly unknown[]> {
  while (log.lines.length < count) await setImmediate();
  return log.lines;
}

describe("loader/store/sweeper", () => {
  it("counts at once what is there, manifests aside", async () => {
    put("blobs", fileNameOf("a"));
    put("blobs", fileNameOf("b"));
    put("manifests", fileNameOf("c"));
    put("compiled/current", fileNameOf("a"));

    start();
    await sweeps(1);

    expect(swept).toEqual([
      ["blob", 200],
      ["compiled-disk", 100],
    ]);
    expect(log.lines).toEqual([]);
  });

  it("counts nothing where there is no cache yet", async () => {
    start();
    await sweeps(1);

    expect(swept).toEqual([
      ["blob", 0],
      ["compiled-disk", 0],
    ]);
  });

  it("removes above --max-cache-size what was used the longest time ago, and says so", async () => {
    const oldest = put("blobs", fileNameOf("a"), 7 * HOUR_MS);
    const older = put("manifests", fileNameOf("b"), 6 * HOUR_MS);
    const old = put("compiled/current", fileNameOf("c"), 5 * HOUR_MS);

    start({ maxBytes: 250 });
    await sweeps(1);

    expect([oldest, older, old].map((file) => existsSync(file))).toEqual([
      false,
      true,
      true,
    ]);
    expect(log.lines).toEqual([
      {
        level: "info",
        message: "cache swept",
        fields: { removedBytes: 100, removedFiles: 1 },
      },
    ]);
  });

  it("keeps what was used within the hour, and its artifact and variants of it", async () => {
    const used = put("blobs", fileNameOf("used"));
    const artifact = put("compiled/current", fileNameOf("used"));
    const variant = put("compiled/current", `${fileNameOf("used")}-v2`);
    const other = put("blobs", fileNameOf("other"));
    const since: number[] = [];

    start({
      maxBytes: 1,
      usedSince(atMs): Digest[] {
        since.push(atMs);
        return [digestOf("used")];
      },
    });
    await sweeps(1);

    expect([used, artifact, variant].map((file) => existsSync(file))).toEqual([
      true,
      true,
      true,
    ]);
    expect(existsSync(other)).toBe(false);
    expect(since).toEqual([9 * HOUR_MS]);
  });

  it("keeps what was written within the hour", async () => {
    const young = put("blobs", fileNameOf("young"), HOUR_MS - 1);
    const old = put("blobs", fileNameOf("old"), HOUR_MS);

    start({ maxBytes: 1 });
    await sweeps(1);

    expect([young, old].map((file) => existsSync(file))).toEqual([true, false]);
  });

  it("removes what another engine version left, not what this one writes", async () => {
    const mine = put("compiled/current", fileNameOf("a"), 48 * HOUR_MS);
    const other = put("compiled/other", fileNameOf("a"), 48 * HOUR_MS);
    setTime(at("compiled/current"), clock.nowMs() - 48 * HOUR_MS);
    setTime(at("compiled/other"), clock.nowMs() - 48 * HOUR_MS);

    start();
    await sweeps(1);

    expect([mine, other].map((file) => existsSync(file))).toEqual([
      true,
      false,
    ]);
  });

  it("sweeps again every ten minutes, until it is closed", async () => {
    const sweeper = start();
    await sweeps(1);

    vi.advanceTimersByTime(TEN_MINUTES_MS - 1);
    // Time enough for a sweep of an empty directory.
    for (let turn = 0; turn < 100; turn += 1) await setImmediate();
    expect(swept).toHaveLength(2);
    put("blobs", fileNameOf("new"), 0);
    vi.advanceTimersByTime(1);
    await sweeps(2);
    await sweeper.close();
    vi.advanceTimersByTime(10 * TEN_MINUTES_MS);

    // The second, and that of the end, which marks what was used and removes nothing.
    expect(swept.slice(2)).toEqual([
      ["blob", 100],
      ["compiled-disk", 0],
      ["blob", 100],
      ["compiled-disk", 0],
    ]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("counts what lies in a directory that came later, too", async () => {
    const blobs = [{ kind: "blob", directory: at("blobs") }];
    put("blobs", fileNameOf("a"));
    put("elsewhere", fileNameOf("b"));
    start({ directories: () => blobs });
    await sweeps(1);

    blobs.push({ kind: "blob", directory: at("elsewhere") });
    vi.advanceTimersByTime(TEN_MINUTES_MS);
    await sweeps(2);

    expect(swept.filter(([cache]) => cache === "blob")).toEqual([
      ["blob", 100],
      ["blob", 200],
    ]);
  });

  it("logs a fault and goes on", async () => {
    start(
      {},
      {
        cacheSwept() {
          throw new Error("no\nsuch label");
        },
      },
    );

    const line = {
      level: "error",
      message: "cannot sweep the cache",
      fields: { reason: "no such label" },
    };
    expect(await loggedLines(1)).toEqual([line]);
    vi.advanceTimersByTime(TEN_MINUTES_MS);
    expect(await loggedLines(2)).toEqual([line, line]);
  });
});
