import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { openArtifactStore } from "../../../src/engine/artifact-store.js";
import { EngineError } from "../../../src/engine/error.js";
import { clock, createLogCollector } from "../../support/engine.js";
import { digestOf } from "./fixtures.js";

const HASH = "0123abcd";
const HOUR_MS = 3_600_000;

let root: string;
let cacheDir: string;
let directory: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "artifact-store-test-"));
  cacheDir = join(root, "deep", "cache");
  directory = join(cacheDir, "compiled", HASH);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  rmSync(root, { recursive: true, force: true });
});

function open({ trusted = false } = {}) {
  const { logger, lines } = createLogCollector();
  const store = openArtifactStore(cacheDir, HASH, trusted, clock, logger);
  return { store, lines };
}

function modeOf(path: string): number {
  return statSync(path).mode & 0o777;
}

/** What opening the store is refused with. */
function refusalOf(options?: { trusted: boolean }): EngineError {
  try {
    open(options);
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(EngineError);
    return thrown as EngineError;
  }
  throw new Error("the store opened");
}

describe("engine/artifact-store opening", () => {
  it("creates what is missing, closed to others", () => {
    open();

    for (const path of [cacheDir, dirname(directory), directory])
      expect(modeOf(path)).toBe(0o700);
  });

  it("opens what is there, however often", () => {
    open();
    writeFileSync(join(directory, "sha256-1"), "artifact");

    open({ trusted: true });

    expect(existsSync(join(directory, "sha256-1"))).toBe(true);
  });

  it("closes a directory that others could write to", () => {
    mkdirSync(directory, { recursive: true });
    chmodSync(directory, 0o775);
    chmodSync(dirname(directory), 0o777);

    open();

    expect(modeOf(directory)).toBe(0o700);
    expect(modeOf(dirname(directory))).toBe(0o700);
  });

  it.each([
    { mode: 0o701, at: () => directory },
    { mode: 0o750, at: () => directory },
    { mode: 0o770, at: () => dirname(directory) },
  ])("does not trust what others could reach: mode $mode", ({ mode, at }) => {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    chmodSync(at(), mode);

    const error = refusalOf({ trusted: true });

    expect(error.code).toBe("load-failed");
    expect(error.message).toBe(
      `the cache directory (--cache-dir) cannot be used: expected \`${at()}\` to be a directory ` +
        `of this process's user with mode 0700, got mode 0${mode.toString(8)}, which --trust-cache-dir forbids`,
    );
    expect(modeOf(at())).toBe(mode);
  });

  it("refuses a link in the directory's place", () => {
    const elsewhere = join(root, "elsewhere");
    mkdirSync(elsewhere);
    mkdirSync(dirname(directory), { recursive: true, mode: 0o700 });
    symlinkSync(elsewhere, directory);

    const error = refusalOf();

    expect(error.code).toBe("load-failed");
    expect(error.message).toContain(
      `expected \`${directory}\` to be a directory`,
    );
    expect(error.message).toMatch(/got no directory$/);
  });

  it("refuses a directory of another user", () => {
    const uid = statSync(root).uid;
    vi.spyOn(process, "geteuid").mockReturnValue(uid + 1);

    const error = refusalOf();

    expect(error.code).toBe("load-failed");
    expect(error.message).toMatch(new RegExp(`got owner ${uid}$`));
  });

  it.each([
    { name: "the cache directory", at: () => cacheDir },
    { name: "compiled/", at: () => dirname(directory) },
    { name: "the hash's directory", at: () => directory },
  ])("refuses a file in the place of $name", ({ at }) => {
    mkdirSync(dirname(at()), { recursive: true, mode: 0o700 });
    writeFileSync(at(), "");

    const error = refusalOf();

    expect(error.code).toBe("load-failed");
    expect(error.message).toMatch(
      /^(?:cannot open the cache directory \(--cache-dir\): `\S+` cannot be made \(ENOTDIR: .*\)|the cache directory \(--cache-dir\) cannot be used: .* got no directory)$/,
    );
  });

  it("refuses, and does not try for ever, where the system makes no directories", () => {
    cacheDir = "/proc/none/cache";

    const error = refusalOf();

    expect(error.code).toBe("load-failed");
    expect(error.message).toBe(
      `cannot open the cache directory (--cache-dir): \`/proc/none/cache/compiled/${HASH}\` ` +
        "cannot be made (ENOENT: no such file or directory, mkdir '/proc/none')",
    );
  });
});

describe("engine/artifact-store leftovers", () => {
  function leave(name: string, ageMs: number): string {
    const path = join(directory, name);
    writeFileSync(path, "");
    const at = new Date(Date.now() - ageMs);
    utimesSync(path, at, at);
    return path;
  }

  it("removes temporary files that nobody can be writing any more", () => {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const old = leave(".tmp-old", HOUR_MS + 60_000);
    const young = leave(".tmp-young", HOUR_MS - 60_000);
    const artifact = leave("sha256-1", 30 * 24 * HOUR_MS);

    open();

    expect([old, young, artifact].map((path) => existsSync(path))).toEqual([
      false,
      true,
      true,
    ]);
  });

  it("starts though a leftover cannot be removed", () => {
    const stuck = join(directory, ".tmp-stuck");
    mkdirSync(stuck, { recursive: true, mode: 0o700 });
    utimesSync(stuck, 0, 0);
    chmodSync(dirname(directory), 0o700);

    const { lines } = open();

    expect(lines).toMatchObject([
      {
        level: "debug",
        message: "cannot remove a leftover",
        fields: { path: stuck },
      },
    ]);
  });
});

describe("engine/artifact-store paths", () => {
  it("names an artifact for its digest", () => {
    const { store } = open();

    expect(store.pathOf(digestOf(1))).toBe(
      join(directory, `sha256-${digestOf(1).slice("sha256:".length)}`),
    );
  });

  it("gives each compile a file of its own beside the artifacts", () => {
    const { store } = open();

    const paths = Array.from({ length: 100 }, () => store.temporaryPath());

    expect(new Set(paths).size).toBe(100);
    for (const path of paths) {
      expect(dirname(path)).toBe(directory);
      expect(path).toContain("/.tmp-");
      expect(existsSync(path)).toBe(false);
    }
  });

  it("discards a temporary file, there or not", async () => {
    const { store } = open();
    const path = store.temporaryPath();
    writeFileSync(path, "half an artifact");

    await store.discard(path);
    await store.discard(path);

    expect(existsSync(path)).toBe(false);
  });
});

describe("engine/artifact-store fallback", () => {
  it("moves on to a private temporary directory, once, and says so", () => {
    const { store, lines } = open();

    store.fallBack("no space left on device");
    const fallback = dirname(store.temporaryPath());
    store.fallBack("still no space");

    expect(fallback).not.toBe(directory);
    expect(dirname(fallback)).toBe(tmpdir());
    expect(modeOf(fallback)).toBe(0o700);
    expect(dirname(store.pathOf(digestOf(1)))).toBe(fallback);
    expect(lines).toEqual([
      {
        level: "warn",
        message:
          "cannot write to the cache directory, artifacts go to a temporary one",
        fields: { directory, fallback, reason: "no space left on device" },
      },
    ]);
    store.close();
  });

  it("removes it when it closes, and nothing else", () => {
    const { store } = open();
    writeFileSync(store.pathOf(digestOf(1)), "artifact");
    store.fallBack("no space left on device");
    const inFallback = store.pathOf(digestOf(1));
    writeFileSync(inFallback, "artifact");

    store.close();
    store.close();

    expect(existsSync(dirname(inFallback))).toBe(false);
    expect(existsSync(directory)).toBe(true);
  });

  it("keeps the cache when it closes without one", () => {
    const { store } = open();
    writeFileSync(store.pathOf(digestOf(1)), "artifact");

    store.close();

    expect(existsSync(store.pathOf(digestOf(1)))).toBe(true);
  });

  it("says when there is no place for one either", () => {
    const { store } = open();
    vi.stubEnv("TMPDIR", join(root, "missing"));

    const fall = () => {
      store.fallBack("no space left on device");
    };

    expect(fall).toThrow(EngineError);
    expect(fall).toThrow(/^cannot store artifacts: ENOENT: /);
    expect(dirname(store.temporaryPath())).toBe(directory);
  });
});
