import {
  type BigIntStats,
  lstatSync,
  mkdtempSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  createDigestCache,
  type DigestCache,
} from "../../../src/loader/digest-cache.js";
import {
  createRequestScope,
  type CancellableScope,
} from "../../../src/request-scope.js";

const HOUR_MS = 3_600_000;
/** Takes so long to hash that a test can get between. */
const LARGE_BYTES = 128 * 1024 * 1024;
const OK = { kind: "ok" };
const CANCELLED = { kind: "refused", code: "resolve-cancelled" };
/** What a file that is not there gives: proof that it was looked for, not remembered. */
const READ_AGAIN = { kind: "refused", code: "module-changed" };

let dir: string;
let file: string;
let nowMs: number;
let cache: DigestCache;
let hashed: number[];

describe("loader/digest-cache", () => {
  beforeEach(() => {
    dir = mkdtempSync(path.join(tmpdir(), "function-wasm-digests-"));
    file = path.join(dir, "a.wasm");
    nowMs = Date.now() + HOUR_MS;
    hashed = [];
    cache = createDigestCache(
      { nowMs: () => nowMs, monotonicMs: () => nowMs },
      (seconds) => hashed.push(seconds),
    );
  });
  afterEach(() => {
    rmSync(dir, { recursive: true });
  });

  it("reads an unchanged file once", async () => {
    const stats = writeFile("a");

    const first = await cache.digestOf(file, stats, caller());
    const second = await cache.digestOf(missing(), stats, caller());

    expect(first).toMatchObject(OK);
    expect(second).toEqual(first);
  });

  it.each([
    { name: "just written", ageMs: 0 },
    { name: "written half a second ago", ageMs: 500 },
    { name: "stamped by a clock a little ahead", ageMs: -500 },
  ])(
    "reads a file $name again: its stamps prove nothing yet",
    async ({ ageMs }) => {
      const stats = writeFile("a");
      nowMs = Number(stats.ctimeMs) + ageMs;

      const first = await cache.digestOf(file, stats, caller());
      const second = await cache.digestOf(missing(), stats, caller());

      expect(first).toMatchObject(OK);
      expect(second).toMatchObject(READ_AGAIN);
    },
  );

  it("remembers a file stamped by a clock far ahead", async () => {
    const stats = writeFile("a");
    nowMs = Number(stats.ctimeMs) - HOUR_MS;

    await cache.digestOf(file, stats, caller());

    expect(await cache.digestOf(missing(), stats, caller())).toMatchObject(OK);
  });

  it("tells how long a file took that was read, and of no other", async () => {
    const stats = writeFile("a");

    const first = cache.digestOf(file, stats, caller());
    const shared = cache.digestOf(file, stats, caller());
    nowMs += 250;
    await Promise.all([first, shared]);
    await cache.digestOf(file, stats, caller());
    await cache.digestOf(missing(), writeFile("bb"), caller());

    expect(hashed).toEqual([0.25]);
  });

  it("says of a file whether it is remembered", async () => {
    const settled = writeFile("a");
    expect(cache.remembers(settled)).toBe(false);
    await cache.digestOf(file, settled, caller());
    const fresh = writeFile("bb");
    nowMs = Number(fresh.ctimeMs);
    await cache.digestOf(file, fresh, caller());

    expect(cache.remembers(settled)).toBe(true);
    expect(cache.remembers(fresh)).toBe(false);
  });

  it("does not remember a failure", async () => {
    const stats = writeFile("a");

    const first = await cache.digestOf(missing(), stats, caller());
    const second = await cache.digestOf(file, stats, caller());

    expect(first).toMatchObject(READ_AGAIN);
    expect(second).toMatchObject(OK);
  });

  it("forgets the file used longest ago beyond 1024", async () => {
    const first = writeFile("a");
    await cache.digestOf(file, first, caller());
    for (let i = 0; i < 1024; i++) {
      file = path.join(dir, String(i));
      await cache.digestOf(file, writeFile("a"), caller());
    }

    expect(await cache.digestOf(missing(), first, caller())).toMatchObject(
      READ_AGAIN,
    );
  });

  it("shares one hash among those who ask at once", async () => {
    const stats = writeLargeFile();

    const first = cache.digestOf(file, stats, caller());
    const second = cache.digestOf(missing(), stats, caller());

    expect(await second).toMatchObject(OK);
    expect(await second).toEqual(await first);
  });

  it("goes on for the others when one has gone", async () => {
    const stats = writeLargeFile();
    const gone = caller();

    const first = cache.digestOf(file, stats, gone);
    const second = cache.digestOf(missing(), stats, caller());
    await sleep(2);
    gone.cancel();

    expect(await first).toMatchObject(CANCELLED);
    expect(await second).toMatchObject(OK);
  });

  it("gives up, and starts anew for the next, when all have gone", async () => {
    const stats = writeLargeFile();
    const gone = caller();

    const first = cache.digestOf(file, stats, gone);
    const second = cache.digestOf(file, stats, gone);
    await sleep(2);
    gone.cancel();

    expect(await first).toMatchObject(CANCELLED);
    expect(await second).toMatchObject(CANCELLED);
    expect(await cache.digestOf(missing(), stats, caller())).toMatchObject(
      READ_AGAIN,
    );
    expect(await cache.digestOf(file, stats, caller())).toMatchObject(OK);
  });

  it("answers a caller who has gone already", async () => {
    const stats = writeFile("a");
    const gone = caller();
    gone.cancel();

    expect(await cache.digestOf(file, stats, gone)).toMatchObject(CANCELLED);
  });
});

function writeFile(content: string): BigIntStats {
  writeFileSync(file, content);
  return lstatSync(file, { bigint: true });
}

function writeLargeFile(): BigIntStats {
  writeFileSync(file, "");
  truncateSync(file, LARGE_BYTES);
  return lstatSync(file, { bigint: true });
}

function missing(): string {
  return path.join(dir, "missing.wasm");
}

function caller(): CancellableScope {
  return createRequestScope({ deadlineAtMs: Infinity });
}
