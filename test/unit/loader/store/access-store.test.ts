import { createHmac, scryptSync } from "node:crypto";
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
import type { AccessKey } from "../../../../src/loader/store/access-name.js";
import {
  type AccessStore,
  createAccessStore,
} from "../../../../src/loader/store/access-store.js";
import { handClock, makeDir, recordingLogger, setTime } from "./fixtures.js";
import { digestOf } from "./store-content.js";

const DAY_MS = 86_400_000;
/** The place is a secret, its query. */
const key: AccessKey = {
  place: "https://example.com/m.wasm?token=hunter2",
  digest: digestOf("module"),
  identity: "anonymous",
};
const identity = digestOf("user:hunter2").slice("sha256:".length);
const withCredential: AccessKey = { ...key, identity };

let cacheDir: string;
let clock: ReturnType<typeof handClock>;
let log: ReturnType<typeof recordingLogger>;
let nowMs: number;

beforeEach(() => {
  cacheDir = makeDir();
  clock = handClock();
  nowMs = clock.nowMs();
  log = recordingLogger();
});

function open(): AccessStore {
  return createAccessStore(cacheDir, clock, log.logger);
}

const at = (name: string) => path.join(cacheDir, "access", name);
const records = () => readdirSync(at("")).filter((name) => name !== "salt");
const warnings = () => log.lines.filter(({ level }) => level === "warn");

/** The path of the only record. */
function onlyRecord(): string {
  const [name, ...rest] = records();
  expect(rest).toEqual([]);
  return at(String(name));
}

/** Puts a file where the directory was: not even root can write to it then. */
function breakDirectory(): void {
  renameSync(at(""), path.join(cacheDir, "moved"));
  writeFileSync(path.join(cacheDir, "access"), "");
}

function mendDirectory(): void {
  rmSync(path.join(cacheDir, "access"));
  renameSync(path.join(cacheDir, "moved"), path.join(cacheDir, "access"));
}

describe("loader/store/access-store", () => {
  it.each([
    { name: "a credential", given: withCredential },
    { name: "anybody", given: key },
  ])("knows after a restart what was recorded for $name", async ({ given }) => {
    const store = open();
    expect(await store.provedAt(given)).toBeNull();

    await store.record(given, nowMs);

    expect(await store.provedAt(given)).toBe(nowMs);
    expect(await open().provedAt(given)).toBe(nowMs);
    expect(statSync(onlyRecord()).mode & 0o777).toBe(0o600);
    expect(log.lines).toEqual([]);
  });

  it.each([
    { name: "another place", other: { place: "https://example.com/" } },
    { name: "other bytes", other: { digest: digestOf("other") } },
    { name: "another credential", other: { identity: "0".repeat(64) } },
    { name: "anybody", other: { identity: "anonymous" } },
  ])("does not take it for $name", async ({ other }) => {
    const store = open();

    await store.record(withCredential, nowMs);

    const asked = { ...withCredential, ...other };
    expect(await store.provedAt(asked)).toBeNull();
    expect(await open().provedAt(asked)).toBeNull();
  });

  it("does not take anybody for who has a credential", async () => {
    const store = open();

    await store.record(key, nowMs);

    expect(await store.provedAt(withCredential)).toBeNull();
  });

  it("does not take the end of a place for the beginning of a digest", async () => {
    const store = open();
    await store.record({ ...key, place: "asha256:x", digest: "sha256:y" }, 1);

    const shifted = { ...key, place: "a", digest: "sha256:xsha256:y" } as const;
    expect(await store.provedAt(shifted)).toBeNull();
  });

  it("names the file by what takes long to guess, and shows nothing else", async () => {
    await open().record(withCredential, nowMs);

    const salt = readFileSync(at("salt"));
    const who = scryptSync(identity, salt, 32, { N: 4096, r: 8, p: 1 });
    const hmac = createHmac("sha256", salt);
    for (const part of [Buffer.from(key.place), Buffer.from(key.digest), who])
      hmac.update(Buffer.from([0, 0, 0, 0, 0, 0, 0, part.length])).update(part);
    expect(onlyRecord()).toBe(at(hmac.digest("hex")));
    expect(readFileSync(onlyRecord(), "utf8")).toBe(
      JSON.stringify({ provedAt: new Date(nowMs).toISOString() }),
    );
  });

  it("moves a record on, not back", async () => {
    const store = open();
    await store.record(key, nowMs);

    await store.record(key, nowMs - 1);
    expect(await open().provedAt(key)).toBe(nowMs);

    await store.record(key, nowMs + 1);
    expect(await store.provedAt(key)).toBe(nowMs + 1);
    expect(await open().provedAt(key)).toBe(nowMs + 1);
  });

  it("holds in memory what it knows, not what it does not know", async () => {
    const [one, two] = [open(), open()];
    expect(await two.provedAt(key)).toBeNull();

    await one.record(key, nowMs);
    expect(await two.provedAt(key)).toBe(nowMs);

    rmSync(onlyRecord());
    expect(await one.provedAt(key)).toBe(nowMs);
    expect(await two.provedAt(key)).toBe(nowMs);
    expect(await open().provedAt(key)).toBeNull();
  });

  it("forgets, on the disk too, and can be told again", async () => {
    const store = open();
    await store.record(key, nowMs);

    await store.forget(key);
    expect(await store.provedAt(key)).toBeNull();
    expect(await open().provedAt(key)).toBeNull();
    await store.forget(key);

    await store.record(key, nowMs);
    expect(await store.provedAt(key)).toBe(nowMs);
    expect(log.lines).toEqual([]);
  });

  it("forgets what is being recorded", async () => {
    const store = open();
    await Promise.all([store.record(key, nowMs), store.forget(key)]);

    expect(await store.provedAt(key)).toBeNull();
    expect(records()).toEqual([]);
  });

  it("forgets what cannot be removed from the disk while it runs", async () => {
    const store = open();
    await store.record(key, nowMs);
    const file = onlyRecord();
    const content = readFileSync(file);
    rmSync(file);
    mkdirSync(file);

    await store.forget(key);

    rmSync(file, { recursive: true });
    writeFileSync(file, content);
    expect(await store.provedAt(key)).toBeNull();
    expect(await open().provedAt(key)).toBe(nowMs);
    expect(warnings()).toHaveLength(1);
  });

  it.each([
    { name: "no JSON", text: "{" },
    { name: "no time", text: "{}" },
    { name: "a number", text: '{"provedAt":1}' },
    {
      name: "a time far ahead",
      text: '{"provedAt":"9999-01-01T00:00:00.000Z"}',
    },
  ])("does not believe a record with $name", async ({ text }) => {
    await open().record(key, nowMs);
    writeFileSync(onlyRecord(), text);

    expect(await open().provedAt(key)).toBeNull();
    expect(log.lines.map(({ level }) => level)).toEqual(["debug"]);
  });

  it("goes on in memory when the disk cannot be written, and says so once", async () => {
    const store = open();
    breakDirectory();

    await store.record(key, nowMs);
    await store.record({ ...key, place: "another" }, nowMs);

    expect(await store.provedAt(key)).toBe(nowMs);
    expect(warnings()).toMatchObject([{ fields: { reason: "ENOTDIR" } }]);
    mendDirectory();
    expect(await open().provedAt(key)).toBeNull();
  });
});

describe("loader/store/access-store salt", () => {
  it("is made once, for this user only", () => {
    open();
    const salt = readFileSync(at("salt"));
    open();

    expect(salt).toHaveLength(32);
    expect(salt.equals(Buffer.alloc(32))).toBe(false);
    expect(readFileSync(at("salt"))).toEqual(salt);
    expect(statSync(at("salt")).mode & 0o777).toBe(0o600);
    expect(readdirSync(at(""))).toEqual(["salt"]);
  });

  it.each([
    { name: "empty", damage: () => writeFileSync(at("salt"), "") },
    {
      name: "short",
      damage: () => writeFileSync(at("salt"), Buffer.alloc(31)),
    },
    { name: "long", damage: () => writeFileSync(at("salt"), Buffer.alloc(33)) },
    {
      name: "a link",
      damage: () => {
        const target = path.join(cacheDir, "target");
        writeFileSync(target, readFileSync(at("salt")));
        rmSync(at("salt"));
        symlinkSync(target, at("salt"));
      },
    },
  ])(
    "is replaced when it is $name, and its records are lost",
    async ({ damage }) => {
      await open().record(key, nowMs);
      damage();

      const store = open();

      expect(await store.provedAt(key)).toBeNull();
      expect(statSync(at("salt"))).toMatchObject({ size: 32 });
      await store.record(key, nowMs);
      expect(await open().provedAt(key)).toBe(nowMs);
      expect(log.lines).toEqual([]);
    },
  );

  it("does without the disk when there can be none", async () => {
    mkdirSync(at("salt"), { recursive: true });
    const store = open();

    await store.record(key, nowMs);
    expect(await store.provedAt(key)).toBe(nowMs);
    await store.forget(key);

    expect(await store.provedAt(key)).toBeNull();
    expect(readdirSync(at(""))).toEqual(["salt"]);
    expect(warnings()).toHaveLength(1);
  });
});

describe("loader/store/access-store sweep", () => {
  it("removes records that nobody used for 90 days, and leftovers", () => {
    mkdirSync(at(""), { recursive: true });
    const names = ["a", "b"].map((digit) => digit.repeat(64));
    const [unused, used] = names as [string, string];
    for (const name of [unused, used, "salt", "notes", ".tmp-old"])
      writeFileSync(at(name), Buffer.alloc(32));
    setTime(at(unused), nowMs - 90 * DAY_MS - 1000);
    setTime(at(used), nowMs - 90 * DAY_MS + 1000);
    for (const name of ["salt", "notes", ".tmp-old"]) setTime(at(name), 0);

    open();

    expect(readdirSync(at("")).sort()).toEqual([used, "notes", "salt"].sort());
  });

  it("leaves records that are used every day and are held in memory", async () => {
    const store = open();
    await store.record(key, nowMs);
    await store.record(withCredential, nowMs);

    for (let day = 0; day < 91; day++) {
      clock.advance(DAY_MS + 1);
      await store.provedAt(key);
    }

    const after = open();
    expect(records()).toHaveLength(1);
    expect(await after.provedAt(key)).toBe(nowMs);
  });

  it.each([
    { name: "older than a day", ageMs: DAY_MS + 1000, isRenewed: true },
    { name: "younger than that", ageMs: DAY_MS - 1000, isRenewed: false },
  ])(
    "reading a record $name: renewed = $isRenewed",
    async ({ ageMs, isRenewed }) => {
      await open().record(key, nowMs);
      setTime(onlyRecord(), nowMs - ageMs);

      await open().provedAt(key);

      const { mtimeMs } = statSync(onlyRecord());
      expect(mtimeMs).toBeCloseTo(isRenewed ? nowMs : nowMs - ageMs, -1);
    },
  );
});
