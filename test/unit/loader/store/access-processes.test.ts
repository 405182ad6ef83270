import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import pLimit from "p-limit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { AccessKey } from "../../../../src/loader/store/access-name.js";
import {
  type AccessStore,
  createAccessStore,
} from "../../../../src/loader/store/access-store.js";
import type { AccessAnswer, AccessJob } from "./access-process.js";
import { handClock, recordingLogger } from "./fixtures.js";
import { digestOf } from "./store-content.js";
import {
  killPrograms,
  runProgram,
  runUntilStopped,
  type StoppedProgram,
} from "./stopping-program.js";

const PROGRAM = fileURLToPath(new URL("access-process.ts", import.meta.url));
const HOUR_MS = 3_600_000;
/** No more than there are cores. */
const AT_ONCE = 2;

/** The place is a secret, its query. */
const key: AccessKey = {
  place: "https://example.com/m.wasm?token=hunter2",
  digest: digestOf("module"),
  identity: digestOf("user:hunter2").slice("sha256:".length),
};
const another: AccessKey = { ...key, place: "https://example.com/" };

const FIRST_MS = Date.now() - 3000;
const SECOND_MS = FIRST_MS + 1000;
const THIRD_MS = FIRST_MS + 2000;

/**
 * What a process does that has an empty volume, records twice and forgets; and what is there when it
 * is killed in front of that: a salt, what a restart believes, a temporary file.
 */
const STEPS = [
  ["mkdirSync cache", "no salt", null, "nothing"],
  ["mkdirSync access", "no salt", null, "nothing"],
  ["create .tmp", "no salt", null, "nothing"],
  ["write half of .tmp", "no salt", null, "a leftover"],
  ["write the rest of .tmp", "no salt", null, "a leftover"],
  ["sync .tmp", "no salt", null, "a leftover"],
  ["linkSync salt", "no salt", null, "a leftover"],
  ["rmSync .tmp", "a salt", null, "a leftover"],
  ["create .tmp", "a salt", null, "nothing"],
  ["write half of .tmp", "a salt", null, "a leftover"],
  ["write the rest of .tmp", "a salt", null, "a leftover"],
  ["sync .tmp", "a salt", null, "a leftover"],
  ["rename record", "a salt", null, "a leftover"],
  ["create .tmp", "a salt", FIRST_MS, "nothing"],
  ["write half of .tmp", "a salt", FIRST_MS, "a leftover"],
  ["write the rest of .tmp", "a salt", FIRST_MS, "a leftover"],
  ["sync .tmp", "a salt", FIRST_MS, "a leftover"],
  ["rename record", "a salt", FIRST_MS, "a leftover"],
  ["rm record", "a salt", SECOND_MS, "nothing"],
] as const;
const LINK_SALT = 6;
const RENAME_RECORD = 12;

let root: string;
beforeAll(() => {
  root = mkdtempSync(path.join(tmpdir(), "function-wasm-access-"));
});
afterAll(() => {
  killPrograms();
  rmSync(root, { recursive: true, force: true });
});

/** One directory, and what uses it. */
function volume(name: string) {
  const cacheDir = path.join(root, name, "cache");
  const log = recordingLogger();
  const job: AccessJob = {
    cacheDir,
    key,
    timesMs: [FIRST_MS],
    forgets: false,
    stopAt: null,
    maxFileBytes: null,
  };
  return {
    cacheDir,
    lines: log.lines,
    saltPath: path.join(cacheDir, "access", "salt"),
    leftovers: () =>
      readdirSync(path.join(cacheDir, "access")).filter((file) =>
        file.startsWith(".tmp-"),
      ).length,
    /** A process that starts now, or later. */
    open: (laterMs = 0): AccessStore =>
      createAccessStore(cacheDir, handClock(Date.now() + laterMs), log.logger),
    run: async (changes: Partial<AccessJob> = {}) =>
      (await runProgram(PROGRAM, { ...job, ...changes })) as AccessAnswer,
    runUntil: async (stopAt: number, changes: Partial<AccessJob> = {}) =>
      runUntilStopped(PROGRAM, { ...job, ...changes, stopAt }),
  };
}

async function endOf(program: StoppedProgram): Promise<AccessAnswer> {
  return (await program.goOn()) as AccessAnswer;
}

describe("loader/store/access-store after a process was killed", () => {
  const job = { timesMs: [FIRST_MS, SECOND_MS], forgets: true };
  let steps: readonly string[];

  beforeAll(async () => {
    ({ steps } = await volume("whole").run(job));
    const limit = pLimit(AT_ONCE);
    await Promise.all(
      steps.map((_, at) =>
        limit(async () => {
          const stopped = await volume(`killed-${at}`).runUntil(at, job);
          await stopped.kill();
        }),
      ),
    );
  });

  it("knows every step at which it can be", () => {
    expect(steps).toEqual(STEPS.map(([step]) => step));
  });

  it.each(
    STEPS.map(([step, salt, provedAtMs, left], at) => ({
      at,
      step,
      salt,
      provedAtMs,
      left,
    })),
  )(
    "in front of step $at, $step, there is $salt and $left, and the next one goes on from there",
    async ({ at, salt, provedAtMs, left }) => {
      const { saltPath, open, leftovers, lines } = volume(`killed-${at}`);
      const saltBefore = existsSync(saltPath) ? readFileSync(saltPath) : null;
      expect(saltBefore === null ? "no salt" : "a salt").toBe(salt);

      const store = open();
      const believedAtMs = await store.provedAt(key);
      await store.record(key, THIRD_MS);

      expect(believedAtMs).toBe(provedAtMs);
      expect(await open().provedAt(key)).toBe(THIRD_MS);
      const saltNow = readFileSync(saltPath);
      expect(saltNow).toEqual(saltBefore ?? saltNow);
      expect(saltNow).toHaveLength(32);
      // Somebody could be writing to it yet, until it is an hour old.
      expect(leftovers()).toBe(left === "nothing" ? 0 : 1);
      expect(await open(HOUR_MS + 1000).provedAt(key)).toBe(THIRD_MS);
      expect(leftovers()).toBe(0);
      expect(readFileSync(saltPath)).toEqual(saltNow);
      // Nothing was there and found wrong.
      expect(lines).toEqual([]);
    },
  );
});

describe("loader/store/access-store with two processes at once", () => {
  it.each([1, 4, LINK_SALT, 7].map((at) => ({ at, step: STEPS[at]?.[0] })))(
    "has one salt when another process starts in front of $step",
    async ({ at }) => {
      const { runUntil, open, leftovers, lines } = volume(`salt-${at}`);
      const slow = await runUntil(at);

      await open().record(another, SECOND_MS);
      const { warnings } = await endOf(slow);

      const store = open();
      expect(await store.provedAt(key)).toBe(FIRST_MS);
      expect(await store.provedAt(another)).toBe(SECOND_MS);
      expect(leftovers()).toBe(0);
      expect([...lines, ...warnings]).toEqual([]);
    },
  );

  it("believes the whole of what was written last, when both write one record", async () => {
    const { runUntil, open, leftovers, lines } = volume("record");
    const slow = await runUntil(RENAME_RECORD);

    const quick = open();
    await quick.record(key, SECOND_MS);
    expect(await open().provedAt(key)).toBe(SECOND_MS);
    const { provedAtMs, warnings } = await endOf(slow);

    // An older proof is asked again sooner, no more.
    expect(await open().provedAt(key)).toBe(FIRST_MS);
    expect(await quick.provedAt(key)).toBe(SECOND_MS);
    expect(provedAtMs).toBe(FIRST_MS);
    expect(leftovers()).toBe(0);
    expect([...lines, ...warnings]).toEqual([]);
  });

  it.each(
    [LINK_SALT, RENAME_RECORD].map((at) => ({ at, step: STEPS[at]?.[0] })),
  )(
    "goes on in memory when another process takes its file for a leftover in front of $step",
    async ({ at }) => {
      const { runUntil, open, leftovers } = volume(`swept-${at}`);
      const suspended = await runUntil(at);
      expect(leftovers()).toBe(1);

      open(HOUR_MS + 1000);
      expect(leftovers()).toBe(0);
      const { provedAtMs, warnings } = await endOf(suspended);

      expect(provedAtMs).toBe(FIRST_MS);
      expect(warnings).toMatchObject([{ reason: "ENOENT" }]);
      const store = open();
      expect(await store.provedAt(key)).toBeNull();
      await store.record(key, SECOND_MS);
      expect(await open().provedAt(key)).toBe(SECOND_MS);
    },
  );
});

describe("loader/store/access-store on a disk that is full half-way", () => {
  it("names nothing that has half a salt, and goes on in memory", async () => {
    const { run, open, cacheDir } = volume("full");

    const { provedAtMs, warnings } = await run({ maxFileBytes: 16 });

    expect(provedAtMs).toBe(FIRST_MS);
    expect(warnings).toMatchObject([{ reason: "EFBIG" }]);
    expect(readdirSync(path.join(cacheDir, "access"))).toEqual([]);
    expect(await open().provedAt(key)).toBeNull();
  });
});
