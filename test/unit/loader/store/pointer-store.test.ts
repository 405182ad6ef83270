import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import {
  createPointerStore,
  type PointerStore,
} from "../../../../src/loader/store/pointer-store.js";
import type { OnStep } from "../../../../src/loader/store/temporary-file.js";
import { handClock, makeDir, recordingLogger, setTime } from "./fixtures.js";
import { digestOf } from "./store-content.js";

const MINUTE_MS = 60_000;
const NOW_MS = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
const KEY = "ghcr.io/acme/greeter:v1";
const FILE_NAME = `${createHash("sha256").update(`oci\0${KEY}`).digest("hex")}.json`;
const a = digestOf("a");
const b = digestOf("b");

let cacheDir: string;
let clock: ReturnType<typeof handClock>;
let log: ReturnType<typeof recordingLogger>;

beforeEach(() => {
  cacheDir = makeDir();
  clock = handClock(NOW_MS);
  log = recordingLogger();
});

function open(onStep?: OnStep): PointerStore {
  return createPointerStore(cacheDir, clock, log.logger, onStep);
}

const refs = () => path.join(cacheDir, "refs");
const filePath = () => path.join(refs(), FILE_NAME);
const record = (changed: object = {}) =>
  JSON.stringify({
    ref: KEY,
    digest: a,
    resolvedAt: "2026-01-02T03:04:05.678Z",
    ...changed,
  });

describe("loader/store/pointer-store reads", () => {
  it("knows nothing of a tag that was never resolved, and says nothing", async () => {
    expect(await open().read(KEY)).toBeNull();
    expect(log.lines).toEqual([]);
  });

  it("reads what an earlier store wrote, for this user only", async () => {
    expect(await open().write(KEY, a, NOW_MS)).toBe("written");

    expect(await open().read(KEY)).toEqual({ digest: a, resolvedAtMs: NOW_MS });
    expect(await open().read("ghcr.io/acme/greeter:V1")).toBeNull();
    expect(readFileSync(filePath(), "utf8")).toBe(record());
    expect(statSync(filePath()).mode & 0o777).toBe(0o600);
    expect(readdirSync(refs())).toEqual([FILE_NAME]);
  });

  it.each([
    { name: "with fields to come", text: record({ newer: 1 }) },
    {
      name: "five minutes ahead",
      text: record({ resolvedAt: "2026-01-02T03:09:05.678Z" }),
    },
    { name: "of 4 KiB", text: record().padEnd(4096) },
  ])("takes a record $name", async ({ text }) => {
    const store = open();
    writeFileSync(filePath(), text);

    expect(await store.read(KEY)).toMatchObject({ digest: a });
  });

  it.each([
    { name: "no JSON", text: record().slice(0, -1) },
    { name: "an empty file", text: "" },
    { name: "null", text: "null" },
    { name: "text", text: JSON.stringify(record()) },
    { name: "a list", text: `[${record()}]` },
    {
      name: "a record of another tag",
      text: record({ ref: "ghcr.io/acme/other:v1" }),
    },
    { name: "a record without a tag", text: record({ ref: undefined }) },
    { name: "a short digest", text: record({ digest: a.slice(0, -1) }) },
    {
      name: "a digest that is a path",
      text: record({ digest: "sha256:../x" }),
    },
    { name: "a digest that is a list", text: record({ digest: [a] }) },
    { name: "no digest", text: record({ digest: undefined }) },
    { name: "no time", text: record({ resolvedAt: undefined }) },
    { name: "a time in seconds", text: record({ resolvedAt: 1_767_323_045 }) },
    {
      name: "a time without milliseconds",
      text: record({ resolvedAt: "2026-01-02T03:04:05Z" }),
    },
    {
      name: "a time that does not exist",
      text: record({ resolvedAt: "2026-13-02T03:04:05.678Z" }),
    },
    {
      name: "a time more than five minutes ahead",
      text: record({ resolvedAt: "2026-01-02T03:09:05.679Z" }),
    },
    { name: "more than 4 KiB", text: record().padEnd(4097) },
  ])("takes $name for none, and can replace it", async ({ text }) => {
    const store = open();
    writeFileSync(filePath(), text);

    expect(await store.read(KEY)).toBeNull();
    expect(log.lines.map(({ level }) => level)).toEqual(["debug"]);

    expect(await store.write(KEY, b, NOW_MS)).toBe("written");
    expect(await store.read(KEY)).toMatchObject({ digest: b });
  });

  it.each([
    {
      name: "a link",
      put: () => {
        writeFileSync(path.join(cacheDir, "target"), record());
        symlinkSync(path.join(cacheDir, "target"), filePath());
      },
    },
    { name: "a directory", put: () => mkdirSync(filePath()) },
    { name: "a FIFO", put: () => execFileSync("mkfifo", [filePath()]) },
  ])("takes $name for none", async ({ put }) => {
    const store = open();
    put();

    expect(await store.read(KEY)).toBeNull();
    expect(log.lines.map(({ level }) => level)).toEqual(["debug"]);
  });
});

describe("loader/store/pointer-store writes", () => {
  it.each([
    { name: "another digest, later", digest: b, ms: 1, want: "written" },
    { name: "another digest, then", digest: b, ms: 0, want: "written" },
    { name: "another digest, earlier", digest: b, ms: -1, want: "kept" },
    { name: "the same, at once", digest: a, ms: 0, want: "kept" },
    { name: "the same, within 10 s", digest: a, ms: 9_999, want: "kept" },
    { name: "the same, after 10 s", digest: a, ms: 10_000, want: "written" },
    { name: "the same, earlier", digest: a, ms: -10_000, want: "kept" },
  ])("R20: the later one wins: $name", async ({ digest, ms, want }) => {
    await open().write(KEY, a, NOW_MS);

    expect(await open().write(KEY, digest, NOW_MS + ms)).toBe(want);

    expect(await open().read(KEY)).toEqual(
      want === "written"
        ? { digest, resolvedAtMs: NOW_MS + ms }
        : { digest: a, resolvedAtMs: NOW_MS },
    );
    expect(readdirSync(refs())).toEqual([FILE_NAME]);
  });

  it("writes of one tag one after the other, of different tags at once", async () => {
    const steps: string[] = [];
    const store = open((step) => {
      steps.push(step);
    });
    const whole = ["created", "written", "synced", "renamed"];

    await Promise.all([
      store.write(KEY, a, NOW_MS),
      store.write(KEY, b, NOW_MS + 1),
    ]);
    expect(steps).toEqual([...whole, ...whole]);

    steps.length = 0;
    await Promise.all([
      store.write("ghcr.io/acme/x:v1", a, NOW_MS),
      store.write("ghcr.io/acme/y:v1", a, NOW_MS),
    ]);
    expect(steps).toHaveLength(2 * whole.length);
    expect(steps.lastIndexOf("created")).toBeLessThan(steps.indexOf("renamed"));
  });

  it("does not undo what another process wrote meanwhile", async () => {
    const slow = open(async (step) => {
      if (step === "synced") await open().write(KEY, b, NOW_MS + 1);
    });

    expect(await slow.write(KEY, a, NOW_MS)).toBe("kept");

    expect(await slow.read(KEY)).toMatchObject({ digest: b });
    expect(readdirSync(refs())).toEqual([FILE_NAME]);
  });

  it("R12: survives a directory that cannot be written, with one warning in ten minutes for each cause", async () => {
    const store = open();
    const causes = () =>
      log.lines.flatMap(({ level, fields }) =>
        level === "warn" ? [fields["reason"]] : [],
      );
    // Not even root can write there.
    renameSync(refs(), path.join(cacheDir, "moved"));
    writeFileSync(refs(), "");

    expect(await store.write(KEY, a, NOW_MS)).toBe("failed");
    expect(await store.write(KEY, b, NOW_MS + 1)).toBe("failed");
    expect(await store.read(KEY)).toBeNull();
    expect(causes()).toEqual(["ENOTDIR"]);

    clock.advance(10 * MINUTE_MS - 1);
    await store.write(KEY, a, NOW_MS);
    expect(causes()).toEqual(["ENOTDIR"]);

    clock.advance(1);
    await store.write(KEY, a, NOW_MS);
    expect(causes()).toEqual(["ENOTDIR", "ENOTDIR"]);

    rmSync(refs());
    expect(await store.write(KEY, a, NOW_MS)).toBe("failed");
    expect(causes()).toEqual(["ENOTDIR", "ENOTDIR", "ENOENT"]);

    mkdirSync(refs());
    expect(await store.write(KEY, a, NOW_MS)).toBe("written");
  });

  it("keeps nothing of a write that fails at its end", async () => {
    const store = open();
    mkdirSync(path.join(filePath(), "x"), { recursive: true });

    expect(await store.write(KEY, a, NOW_MS)).toBe("failed");

    expect(readdirSync(refs())).toEqual([FILE_NAME]);
  });

  it("removes what was left behind more than an hour ago", () => {
    mkdirSync(refs());
    for (const name of [".tmp-old", ".tmp-young", FILE_NAME])
      writeFileSync(path.join(refs(), name), "");
    setTime(path.join(refs(), ".tmp-old"), NOW_MS - 61 * MINUTE_MS);
    setTime(path.join(refs(), ".tmp-young"), NOW_MS - 59 * MINUTE_MS);
    setTime(filePath(), 0);

    open();

    expect(readdirSync(refs()).sort()).toEqual([".tmp-young", FILE_NAME]);
  });
});
