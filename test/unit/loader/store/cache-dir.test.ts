import {
  chmodSync,
  chownSync,
  mkdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { openCacheDir } from "../../../../src/loader/store/cache-dir.js";
import { makeDir } from "./fixtures.js";

const isRoot = process.getuid?.() === 0;

describe("loader/store/cache-dir", () => {
  it("makes the directory and its parents, closed to others", () => {
    const cacheDir = path.join(makeDir(), "a", "b");

    const directory = openCacheDir(cacheDir, "blobs");

    expect(directory).toBe(path.join(cacheDir, "blobs"));
    for (const made of [path.dirname(cacheDir), cacheDir, directory])
      expect(modeOf(made)).toBe(0o700);
  });

  it("gives an absolute path for a relative one", () => {
    const cacheDir = makeDir();
    const relative = path.relative(process.cwd(), cacheDir);

    expect(openCacheDir(relative, "refs")).toBe(path.join(cacheDir, "refs"));
  });

  it.each([
    { name: "writable by others", mode: 0o777, want: 0o700 },
    { name: "readable by others", mode: 0o755, want: 0o700 },
    { name: "closed", mode: 0o700, want: 0o700 },
    { name: "closed and not writable", mode: 0o500, want: 0o500 },
  ])("takes a directory that is $name", ({ mode, want }) => {
    const directory = existing(mode);

    const opened = openCacheDir(path.dirname(directory), "blobs");

    expect(opened).toBe(directory);
    expect(modeOf(directory)).toBe(want);
  });

  it.runIf(isRoot)("refuses a cache directory of another user", () => {
    const cacheDir = makeDir();
    chownSync(cacheDir, 65_534, 65_534);

    expect(() => openCacheDir(cacheDir, "blobs")).toThrow(
      "belongs to another user (65534)",
    );
  });

  it.each([
    {
      name: "a file",
      put: (at: string) => writeFileSync(at, ""),
      want: "is no directory",
    },
    {
      name: "a link to a directory",
      put: (at: string) => symlinkSync(makeDir(), at),
      want: "is no directory",
    },
    {
      name: "a link to nothing",
      put: (at: string) => symlinkSync("nothing", at),
      want: "cannot be made (EEXIST)",
    },
  ])("refuses $name", ({ put, want }) => {
    const cacheDir = makeDir();
    put(path.join(cacheDir, "blobs"));

    expect(() => openCacheDir(cacheDir, "blobs")).toThrow(
      refusal(`\`${cacheDir}/blobs\` ${want}`),
    );
  });

  it("refuses a place where no directory can be made", () => {
    expect(() => openCacheDir("/proc/self/nowhere", "blobs")).toThrow(
      refusal("`/proc/self/nowhere/blobs` cannot be made (ENOENT)"),
    );
  });

  it("refuses a place below a file", () => {
    const file = path.join(makeDir(), "file");
    writeFileSync(file, "");

    expect(() => openCacheDir(file, "blobs")).toThrow(
      refusal(`\`${file}/blobs\` cannot be made (ENOTDIR)`),
    );
  });

  it("refuses a directory of another user", () => {
    // Only root can give one away; everybody else finds root's.
    const { cacheDir, name, owner } = isRoot
      ? { cacheDir: makeDir(), name: "blobs", owner: 12_345 }
      : { cacheDir: "/", name: "usr", owner: 0 };
    const directory = path.join(cacheDir, name);
    if (isRoot) {
      mkdirSync(directory);
      chownSync(directory, owner, owner);
    }

    expect(() => openCacheDir(cacheDir, name)).toThrow(
      refusal(`\`${directory}\` belongs to another user (${owner})`),
    );
  });
});

function refusal(reason: string): unknown {
  return expect.objectContaining({
    name: "LoaderError",
    code: "cache-unwritable",
    message: `cannot open the cache directory (--cache-dir): ${reason}`,
  });
}

function existing(mode: number): string {
  const directory = path.join(makeDir(), "blobs");
  mkdirSync(directory);
  chmodSync(directory, mode);
  return directory;
}

function modeOf(file: string): number {
  return statSync(file).mode & 0o777;
}
