import {
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  statSync,
} from "node:fs";
import path from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import {
  sweepCache,
  type SweepOptions,
} from "../../../../src/loader/store/sweep-cache.js";
import { handClock, makeDir, recordingLogger, setTime } from "./fixtures.js";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

let cacheDir: string;
let clock: ReturnType<typeof handClock>;
let log: ReturnType<typeof recordingLogger>;

beforeEach(() => {
  cacheDir = makeDir();
  clock = handClock();
  log = recordingLogger();
  for (const name of ["blobs", "compiled/current"])
    mkdirSync(at(name), { recursive: true });
});

const at = (name: string) => path.join(cacheDir, name);

/** Writes a file that was last used `ageMs` ago. */
function put(name: string, sizeBytes: number, ageMs: number): void {
  mkdirSync(path.dirname(at(name)), { recursive: true });
  writeFileSync(at(name), Buffer.alloc(sizeBytes));
  setTime(at(name), clock.nowMs() - ageMs);
}

function sweep(changed: Partial<SweepOptions> = {}) {
  const options: SweepOptions = {
    directories: [
      { kind: "blobs", directory: at("blobs") },
      { kind: "compiled", directory: at("compiled"), recursive: true },
    ],
    maxBytes: 0,
    inUse: () => false,
    keepMs: HOUR_MS,
    currentCompiledDir: at("compiled/current"),
    ...changed,
  };
  return sweepCache(options, clock, log.logger);
}

describe("loader/store/sweep-cache by size", () => {
  beforeEach(() => {
    put("blobs/sha256-oldest", 40, 5 * HOUR_MS);
    put("compiled/current/sha256-older", 30, 4 * HOUR_MS);
    put("blobs/sha256-old", 20, 3 * HOUR_MS);
    put("compiled/current/sha256-new.fast", 10, 2 * HOUR_MS);
  });

  it.each([
    { name: "no bound", maxBytes: 0, left: ["new", "old", "older", "oldest"] },
    {
      name: "just enough",
      maxBytes: 100,
      left: ["new", "old", "older", "oldest"],
    },
    { name: "one byte too few", maxBytes: 99, left: ["new", "old", "older"] },
    // Nine tenths of it are what two files have; of one byte less, they are not.
    {
      name: "nine tenths reached",
      maxBytes: 67,
      left: ["new", "old", "older"],
    },
    { name: "nine tenths missed", maxBytes: 66, left: ["new", "old"] },
    { name: "room for nothing", maxBytes: 1, left: [] },
  ])("removes what was used longest ago: $name", async ({ maxBytes, left }) => {
    const report = await sweep({ maxBytes });

    const files = [
      ...readdirSync(at("blobs")),
      ...readdirSync(at("compiled/current")),
    ].map((name) => name.replace(/^sha256-|\.fast$/g, ""));
    expect(files.sort()).toEqual(left);
    const bytes = (...names: readonly [string, number][]) =>
      names.reduce((sum, [n, size]) => sum + (left.includes(n) ? size : 0), 0);
    const bytesByKind = {
      blobs: bytes(["oldest", 40], ["old", 20]),
      compiled: bytes(["older", 30], ["new", 10]),
    };
    expect(report).toEqual({
      bytesByKind,
      removedFiles: 4 - left.length,
      removedBytes: 100 - bytesByKind.blobs - bytesByKind.compiled,
    });
    expect(log.lines).toEqual([]);
  });

  it("passes over what is in use and what is young", async () => {
    put("blobs/sha256-young", 5, HOUR_MS - 1000);
    put("blobs/sha256-ripe", 5, HOUR_MS + 1000);
    const asked: string[] = [];

    const report = await sweep({
      maxBytes: 45,
      inUse: (name) => asked.push(name) > 0 && name === "sha256-oldest",
    });

    expect(readdirSync(at("blobs")).sort()).toEqual([
      "sha256-oldest",
      "sha256-young",
    ]);
    expect(asked).toContain("sha256-new.fast");
    expect(report.bytesByKind).toEqual({ blobs: 45, compiled: 0 });
    expect(log.lines).toEqual([]);
  });

  it("marks what is in use as used now, where this process writes", async () => {
    put("compiled/other/sha256-old", 1, 5 * HOUR_MS);

    await sweep({ inUse: (name) => name === "sha256-old" });

    expect(statSync(at("blobs/sha256-old")).mtimeMs).toBeCloseTo(
      clock.nowMs(),
      -1,
    );
    for (const name of ["blobs/sha256-oldest", "compiled/other/sha256-old"])
      expect(statSync(at(name)).mtimeMs).toBeCloseTo(
        clock.nowMs() - 5 * HOUR_MS,
        -1,
      );
  });

  it("says so once when what must stay is too much", async () => {
    const report = await sweep({
      maxBytes: 39,
      inUse: (name) => name === "sha256-oldest" || name === "sha256-old",
    });

    expect(report).toMatchObject({ removedFiles: 2, removedBytes: 40 });
    expect(log.lines).toMatchObject([
      { level: "warn", fields: { bytes: 60, maxBytes: 39 } },
    ]);
  });

  it("leaves a file that was put to use meanwhile, counts one that vanished", async () => {
    const report = await sweep({
      maxBytes: 90,
      inUse: (name) => {
        if (name === "sha256-oldest") setTime(at(`blobs/${name}`), 1_000);
        if (name === "sha256-older") rmSync(at(`compiled/current/${name}`));
        return false;
      },
    });

    expect(readdirSync(at("blobs"))).toEqual(["sha256-old", "sha256-oldest"]);
    expect(report).toEqual({
      bytesByKind: { blobs: 60, compiled: 10 },
      removedFiles: 0,
      removedBytes: 0,
    });
    expect(log.lines).toEqual([]);
  });

  it("looks at no other file and follows no link", async () => {
    const outside = makeDir();
    writeFileSync(path.join(outside, "sha256-x"), "outside");
    setTime(path.join(outside, "sha256-x"), 0);
    symlinkSync(path.join(outside, "sha256-x"), at("blobs/sha256-link"));
    symlinkSync(outside, at("compiled/linked"));
    symlinkSync(outside, at("manifests"));
    put("blobs/notes", 1000, 10 * DAY_MS);
    put("blobs/deeper/sha256-x", 1000, 10 * DAY_MS);
    put("compiled/current/deeper/sha256-x", 1000, 10 * DAY_MS);

    const report = await sweep({
      maxBytes: 1,
      directories: [
        { kind: "blobs", directory: at("blobs") },
        { kind: "compiled", directory: at("compiled"), recursive: true },
        { kind: "manifests", directory: at("manifests"), recursive: true },
        { kind: "missing", directory: at("missing") },
      ],
    });

    expect(report).toEqual({
      bytesByKind: { blobs: 0, compiled: 0, manifests: 0, missing: 0 },
      removedFiles: 4,
      removedBytes: 100,
    });
    expect(existsSync(path.join(outside, "sha256-x"))).toBe(true);
    expect(readdirSync(at("blobs")).sort()).toEqual([
      "deeper",
      "notes",
      "sha256-link",
    ]);
    expect(existsSync(at("blobs/deeper/sha256-x"))).toBe(true);
    expect(existsSync(at("compiled/current/deeper/sha256-x"))).toBe(true);
    expect(log.lines).toEqual([]);
  });
});

describe("loader/store/sweep-cache of leftovers", () => {
  it("removes temporary files older than an hour, whatever the bound", async () => {
    for (const dir of ["blobs", "compiled", "compiled/current"]) {
      put(`${dir}/.tmp-old`, 10, HOUR_MS + 1000);
      put(`${dir}/.tmp-young`, 10, HOUR_MS - 1000);
    }

    const report = await sweep();

    for (const dir of ["blobs", "compiled", "compiled/current"]) {
      expect(existsSync(at(`${dir}/.tmp-old`))).toBe(false);
      expect(existsSync(at(`${dir}/.tmp-young`))).toBe(true);
    }
    expect(report).toMatchObject({ removedFiles: 3, removedBytes: 30 });
  });

  it.each([
    {
      name: "was written to within a day",
      fileMs: DAY_MS - 1000,
      dirMs: 9 * DAY_MS,
    },
    {
      name: "got or lost a file within a day",
      fileMs: 9 * DAY_MS,
      dirMs: DAY_MS - 1000,
    },
  ])(
    "leaves the directory of another version that $name",
    async ({ fileMs, dirMs }) => {
      put("compiled/other/sha256-a", 10, fileMs);
      put("compiled/other/sha256-b", 10, 9 * DAY_MS);
      setTime(at("compiled/other"), clock.nowMs() - dirMs);

      const report = await sweep();

      expect(readdirSync(at("compiled/other"))).toHaveLength(2);
      expect(report.bytesByKind).toEqual({ blobs: 0, compiled: 20 });
    },
  );

  it("removes the directory of another version that is out of use", async () => {
    put("compiled/other/sha256-a", 10, DAY_MS + 1000);
    put("compiled/other/.tmp-old", 10, DAY_MS + 1000);
    setTime(at("compiled/other"), clock.nowMs() - DAY_MS - 1000);
    put("compiled/current/sha256-a", 5, 9 * DAY_MS);
    setTime(at("compiled/current"), clock.nowMs() - 9 * DAY_MS);

    const report = await sweep();

    expect(readdirSync(at("compiled"))).toEqual(["current"]);
    expect(readdirSync(at("compiled/current"))).toEqual(["sha256-a"]);
    expect(report).toEqual({
      bytesByKind: { blobs: 0, compiled: 5 },
      removedFiles: 2,
      removedBytes: 20,
    });
  });

  it("leaves what is not its own in a directory that is out of use", async () => {
    put("compiled/other/sha256-a", 10, 9 * DAY_MS);
    put("compiled/other/notes", 10, 9 * DAY_MS);
    setTime(at("compiled/other"), clock.nowMs() - 9 * DAY_MS);

    await sweep();

    expect(readdirSync(at("compiled/other"))).toEqual(["notes"]);
  });

  it("leaves all of them when it is not known which is in use", async () => {
    put("compiled/other/sha256-a", 10, 9 * DAY_MS);
    setTime(at("compiled/other"), clock.nowMs() - 9 * DAY_MS);

    const report = await sweep({ currentCompiledDir: null });

    expect(readdirSync(at("compiled/other"))).toEqual(["sha256-a"]);
    expect(report.bytesByKind).toEqual({ blobs: 0, compiled: 10 });
  });
});
