import { execFileSync } from "node:child_process";
import {
  existsSync,
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
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { refuse } from "../../../../src/loader/refuse.js";
import {
  type BlobStore,
  type BlobStoreOptions,
  createBlobStore,
} from "../../../../src/loader/store/blob-store.js";
import { handClock, makeDir, recordingLogger, setTime } from "./fixtures.js";
import { chunksOf, digestOf, fileNameOf } from "./store-content.js";

const HOUR_MS = 3_600_000;
const digest = digestOf("module");

let cacheDir: string;
let tempDir: string;
let clock: ReturnType<typeof handClock>;
let log: ReturnType<typeof recordingLogger>;

beforeEach(() => {
  cacheDir = makeDir();
  tempDir = makeDir();
  clock = handClock();
  log = recordingLogger();
  vi.stubEnv("TMPDIR", tempDir);
});
afterEach(() => {
  vi.unstubAllEnvs();
});

function open(
  kind: "blobs" | "manifests" = "blobs",
  onStep?: BlobStoreOptions["onStep"],
): BlobStore {
  const options = { cacheDir, kind };
  return createBlobStore(
    onStep === undefined ? options : { ...options, onStep },
    clock,
    log.logger,
  );
}

/** The path of a file in the cache. */
const at = (name: string, kind = "blobs") => path.join(cacheDir, kind, name);
const kept = (kind = "blobs") => readdirSync(path.join(cacheDir, kind));
const warnings = () => log.lines.filter(({ level }) => level === "warn");

/** Puts a file where the directory was: not even root can write to it then. */
function breakDirectory(kind = "blobs"): void {
  renameSync(path.join(cacheDir, kind), path.join(cacheDir, "moved"));
  writeFileSync(path.join(cacheDir, kind), "");
}

function repairDirectory(kind = "blobs"): void {
  rmSync(path.join(cacheDir, kind));
  renameSync(path.join(cacheDir, "moved"), path.join(cacheDir, kind));
}

describe("loader/store/blob-store writes", () => {
  it.each([
    { name: "under the digest that was asked for", wanted: digest },
    { name: "under what it turns out to be", wanted: null },
  ])("stores content $name, for this user only", async ({ wanted }) => {
    const stored = await open().write(wanted, chunksOf("mod", "", "ule"));

    const filePath = at(fileNameOf("module"));
    expect(stored).toEqual({ digest, filePath, sizeBytes: 6 });
    expect(readFileSync(filePath, "utf8")).toBe("module");
    expect(statSync(filePath).mode & 0o777).toBe(0o600);
    expect(kept()).toEqual([fileNameOf("module")]);
  });

  it.each([
    { name: "C37: content that was cut short", got: "modu" },
    { name: "C19: content with one space more", got: "module " },
    { name: "no content", got: "" },
  ])("keeps nothing of $name", async ({ got }) => {
    await expect(open().write(digest, chunksOf(got))).rejects.toMatchObject({
      code: "digest-mismatch",
      message: `expected ${digest}, got ${digestOf(got)}`,
    });
    expect(kept()).toEqual([]);
  });

  it("refuses an empty module, whatever it should be", async () => {
    const store = open();

    for (const wanted of [digestOf(""), null])
      await expect(store.write(wanted, chunksOf())).rejects.toMatchObject({
        code: "module-empty",
      });
    expect(kept()).toEqual([]);
  });

  it("stores an empty manifest", async () => {
    const store = open("manifests");

    const stored = await store.write(null, chunksOf());

    expect(stored.sizeBytes).toBe(0);
    expect(kept("manifests")).toEqual([fileNameOf("")]);
    expect(await store.read(digestOf(""), 10)).toHaveLength(0);
  });

  it("passes on what the chunks throw and keeps nothing", async () => {
    const store = open();
    const failure = refuse("registry-unreachable", "ghcr.io: reset");

    const writing = store.write(
      digest,
      (async function* () {
        yield* chunksOf("mod");
        throw failure;
      })(),
    );

    await expect(writing).rejects.toBe(failure);
    expect(kept()).toEqual([]);
    // It was not the disk.
    await store.write(digest, chunksOf("module"));
    expect(kept()).toEqual([fileNameOf("module")]);
  });

  it("puts the right content in the place of a wrong file", async () => {
    const store = open();
    writeFileSync(at(fileNameOf("module")), "eludom");

    await store.write(digest, chunksOf("module"));

    expect(readFileSync(at(fileNameOf("module")), "utf8")).toBe("module");
  });

  it("shows nothing under the final name before everything is on the disk", async () => {
    const seen: [string, boolean][] = [];
    const store = open("blobs", (step) => {
      seen.push([step, existsSync(at(fileNameOf("module")))]);
    });

    await store.write(digest, chunksOf("module"));

    expect(seen).toEqual([
      ["created", false],
      ["written", false],
      ["synced", false],
      ["renamed", true],
    ]);
  });

  it("removes what was left behind more than an hour ago", () => {
    mkdirSync(path.join(cacheDir, "blobs"));
    const old = clock.nowMs() - HOUR_MS - 1000;
    for (const name of [".tmp-old", ".tmp-young", fileNameOf("module")])
      writeFileSync(at(name), "module");
    setTime(at(".tmp-old"), old);
    setTime(at(".tmp-young"), old + 2000);
    setTime(at(fileNameOf("module")), 0);

    open();

    expect(kept().sort()).toEqual([".tmp-young", fileNameOf("module")]);
  });
});

describe("loader/store/blob-store on a disk that cannot be written", () => {
  it("goes on in a temporary directory, and says so once", async () => {
    const store = open();
    breakDirectory();

    const stored = await store.write(digest, chunksOf("module"));
    await store.write(null, chunksOf("other"));

    const [fallback] = readdirSync(tempDir).map((n) => path.join(tempDir, n));
    expect(path.dirname(stored.filePath)).toBe(fallback);
    expect(statSync(String(fallback)).mode & 0o777).toBe(0o700);
    expect(store.directories()).toEqual([at(""), fallback].map(noSlash));
    expect(await store.find(digest, null)).toEqual(stored);
    expect(await store.read(digest, 6)).toEqual(Buffer.from("module"));
    expect(warnings()).toMatchObject([
      { fields: { fallback, reason: "ENOTDIR" } },
    ]);

    await store.close();
    expect(readdirSync(tempDir)).toEqual([]);
  });

  it("takes what was there before from where it was", async () => {
    const store = open();
    const before = await store.write(digest, chunksOf("module"));
    // A file cannot be put in the place of this.
    mkdirSync(path.join(at(fileNameOf("other")), "x"), { recursive: true });

    await expect(store.write(null, chunksOf("other"))).rejects.toMatchObject({
      code: "cache-unwritable",
      message: expect.stringMatching(
        /\((EISDIR|ENOTEMPTY|EEXIST)\)$/,
      ) as string,
    });
    const again = await store.write(null, chunksOf("other"));

    expect(path.dirname(path.dirname(again.filePath))).toBe(tempDir);
    expect(await store.find(digest, null)).toEqual(before);
    expect(await store.read(digestOf("other"), 5)).toEqual(
      Buffer.from("other"),
    );
    expect(kept().filter((name) => name.startsWith(".tmp-"))).toEqual([]);
    await store.close();
  });

  it("tries it again after a minute, and goes on there once it can be written", async () => {
    const store = open();
    breakDirectory();
    const first = await store.write(digest, chunksOf("module"));
    repairDirectory();

    clock.advance(59_999);
    const meanwhile = await store.write(null, chunksOf("meanwhile"));
    clock.advance(1);
    const after = await store.write(null, chunksOf("after"));

    expect(path.dirname(path.dirname(meanwhile.filePath))).toBe(tempDir);
    expect(after.filePath).toBe(at(fileNameOf("after")));
    expect(kept()).toEqual([fileNameOf("after")]);
    // What went elsewhere is there still.
    expect(await store.find(digest, null)).toEqual(first);
    expect(await store.find(digestOf("meanwhile"), null)).toEqual(meanwhile);
    await store.close();
  });

  it("leaves it alone for another minute when it still cannot be written", async () => {
    const store = open();
    breakDirectory();
    await store.write(null, chunksOf("first"));
    clock.advance(60_000);
    await store.write(null, chunksOf("second"));
    repairDirectory();

    clock.advance(59_999);
    const third = await store.write(null, chunksOf("third"));
    clock.advance(1);
    const fourth = await store.write(null, chunksOf("fourth"));

    expect(path.dirname(path.dirname(third.filePath))).toBe(tempDir);
    expect(fourth.filePath).toBe(at(fileNameOf("fourth")));
    expect(warnings()).toHaveLength(1);
    await store.close();
  });

  it("tries again after a minute what failed half-way", async () => {
    const store = open();
    const inTheWay = path.join(at(fileNameOf("other")), "x");
    mkdirSync(inTheWay, { recursive: true });
    await expect(store.write(null, chunksOf("other"))).rejects.toMatchObject({
      code: "cache-unwritable",
    });
    rmSync(at(fileNameOf("other")), { recursive: true });

    clock.advance(60_000);
    const again = await store.write(null, chunksOf("other"));

    expect(again.filePath).toBe(at(fileNameOf("other")));
    expect(readdirSync(tempDir)).toEqual([]);
  });

  it("refuses when nothing can be written, and takes no chunk", async () => {
    const store = open();
    breakDirectory();
    vi.stubEnv("TMPDIR", path.join(tempDir, "missing"));
    const chunks = chunksOf("module");

    await expect(store.write(digest, chunks)).rejects.toMatchObject({
      code: "cache-unwritable",
      message:
        "what was fetched cannot be stored on this machine (ENOTDIR; in the temporary directory ENOENT)",
    });
    expect(await chunks.next()).toMatchObject({ done: false });
    expect(await store.find(digest, null)).toBeNull();

    vi.stubEnv("TMPDIR", tempDir);
    await store.write(digest, chunksOf("module"));
    expect(await store.find(digest, null)).not.toBeNull();
    await store.close();
  });
});

describe("loader/store/blob-store finds", () => {
  it("finds what an earlier store wrote, of any size", async () => {
    const large = "0123456789abcdef".repeat(40_000);
    const stored = await open().write(null, chunksOf(large, "end"));

    const found = await open().find(digestOf(`${large}end`), null);

    expect(found).toEqual(stored);
    expect(found?.sizeBytes).toBe(640_003);
  });

  it("finds nothing where nothing is, and says nothing", async () => {
    expect(await open().find(digest, null)).toBeNull();
    expect(await open().read(digest, 100)).toBeNull();
    expect(log.lines).toEqual([]);
  });

  it.each([
    { name: "find", ask: (store: BlobStore) => store.find(digest, null) },
    { name: "read", ask: (store: BlobStore) => store.read(digest, 100) },
  ])("drops a file with other content: $name", async ({ ask }) => {
    const store = open();
    writeFileSync(at(fileNameOf("module")), "eludom");

    expect(await ask(store)).toBeNull();

    expect(kept()).toEqual([]);
    expect(warnings()).toMatchObject([
      { fields: { expected: digest, got: digestOf("eludom") } },
    ]);
  });

  it.each([
    {
      name: "a link to the right content",
      put: (file: string) => {
        writeFileSync(path.join(cacheDir, "target"), "module");
        symlinkSync(path.join(cacheDir, "target"), file);
      },
    },
    { name: "a directory", put: (file: string) => mkdirSync(file) },
    {
      name: "a FIFO, without waiting for its writer",
      put: (file: string) => execFileSync("mkfifo", [file]),
    },
  ])("does not take $name", async ({ put }) => {
    const store = open();
    put(at(fileNameOf("module")));

    expect(await store.find(digest, null)).toBeNull();
    expect(await store.read(digest, 100)).toBeNull();

    expect(kept()).toEqual([fileNameOf("module")]);
    expect(log.lines.map(({ level }) => level)).toEqual(["debug", "debug"]);
  });

  it("reads no more than it may", async () => {
    const store = open("manifests");
    await store.write(digest, chunksOf("module"));

    expect(await store.read(digest, 5)).toBeNull();
    expect(await store.read(digest, 6)).toEqual(Buffer.from("module"));
    expect(kept("manifests")).toEqual([fileNameOf("module")]);
  });

  it("gives the right content only, after a wrong file", async () => {
    const store = open();
    breakDirectory();
    await store.write(digest, chunksOf("module"));
    rmSync(path.join(cacheDir, "blobs"));
    mkdirSync(path.join(cacheDir, "blobs"));
    writeFileSync(at(fileNameOf("module")), "elu");

    expect(await store.read(digest, 100)).toEqual(Buffer.from("module"));
    await store.close();
  });

  it("shares one reading among those who ask at once, and then reads anew", async () => {
    const store = open();
    await store.write(digest, chunksOf("module"));

    const [first, second] = await Promise.all([
      store.find(digest, null),
      store.find(digest, new AbortController().signal),
    ]);
    const later = await store.find(digest, null);

    expect(second).toBe(first);
    expect(later).toEqual(first);
    expect(later).not.toBe(first);
    writeFileSync(at(fileNameOf("module")), "eludom");
    expect(await store.find(digest, null)).toBeNull();
  });

  it("stops waiting for who has gone, and for nobody else", async () => {
    const store = open();
    const stored = await store.write(digest, chunksOf("module"));
    const abort = new AbortController();

    const leaving = store.find(digest, abort.signal);
    const staying = store.find(digest, null);
    abort.abort();

    await expect(leaving).rejects.toMatchObject({ code: "resolve-cancelled" });
    await expect(staying).resolves.toEqual(stored);
    await expect(store.find(digest, abort.signal)).rejects.toMatchObject({
      code: "resolve-cancelled",
    });
  });
});

function noSlash(directory: string | undefined): string {
  return path.resolve(String(directory));
}
