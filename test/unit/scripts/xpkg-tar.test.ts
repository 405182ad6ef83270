import { execFileSync } from "node:child_process";
import { Buffer } from "node:buffer";
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { readTar } from "../../../scripts/lib/xpkg/tar-reader.mjs";
import { tarOf } from "../../../scripts/lib/xpkg/tar-writer.mjs";

const LONG_DIR = "d".repeat(90);
const LONG_PATH = `${LONG_DIR}/${"f".repeat(90)}`;
const ENTRIES = [
  { path: "tmp", mode: 0o1777, bytes: null },
  { path: "bin", mode: 0o755, bytes: null },
  { path: "bin/tool", mode: 0o755, bytes: Buffer.alloc(1500, "x") },
  { path: "empty", mode: 0o644, bytes: Buffer.alloc(0) },
  { path: "block", mode: 0o600, bytes: Buffer.alloc(512, "y") },
  { path: LONG_DIR, mode: 0o755, bytes: null },
  { path: LONG_PATH, mode: 0o644, bytes: Buffer.from("long") },
];

let scratch: string;

beforeEach(() => {
  scratch = mkdtempSync(path.join(os.tmpdir(), "xpkg-tar-test-"));
});

afterEach(() => {
  rmSync(scratch, { recursive: true, force: true });
});

describe("scripts/lib/xpkg/tar", () => {
  it("writes what GNU tar unpacks, owned by root and of 1970", () => {
    const file = path.join(scratch, "a.tar");
    writeFileSync(file, tarOf(ENTRIES));

    tar("-xpf", file, "-C", scratch);
    const listed = tar("--utc", "--numeric-owner", "-tvf", file);

    for (const { path: name, mode, bytes } of ENTRIES) {
      const unpacked = path.join(scratch, name);
      expect(statSync(unpacked).mode & 0o7777).toBe(mode);
      if (bytes !== null) expect(readFileSync(unpacked)).toEqual(bytes);
    }
    const lines = listed.trim().split("\n");
    expect(lines).toHaveLength(ENTRIES.length);
    for (const line of lines) {
      expect(line).toMatch(/ 0\/0 +\d+ 1970-01-01 00:00 /);
    }
  });

  it("reads what it writes", () => {
    const read = readTar(tarOf(ENTRIES));

    expect(read).toEqual(
      ENTRIES.map(({ path: name, mode, bytes }) => ({
        path: name,
        kind: bytes === null ? "directory" : "file",
        mode,
        bytes: bytes ?? Buffer.alloc(0),
      })),
    );
  });

  it.each(["gnu", "pax", "ustar", "v7"])("reads GNU tar's %s", (format) => {
    const name = format === "v7" ? "short" : LONG_PATH;
    mkdirSync(path.join(scratch, LONG_DIR));
    writeFileSync(path.join(scratch, name), "one");
    writeFileSync(path.join(scratch, "after"), "two");
    const file = path.join(scratch, "a.tar");
    tar(`--format=${format}`, "-cf", file, "-C", scratch, `./${name}`, "after");

    const read = readTar(readFileSync(file));

    expect(read.map((entry) => [entry.path, entry.bytes.toString()])).toEqual([
      [name, "one"],
      ["after", "two"],
    ]);
  });

  it("reads a path longer than any ustar has", () => {
    const deep = Array.from({ length: 40 }, () => "0123456789").join("/");
    mkdirSync(path.join(scratch, path.dirname(deep)), { recursive: true });
    writeFileSync(path.join(scratch, deep), "");
    const file = path.join(scratch, "a.tar");
    tar("--format=pax", "-cf", file, "-C", scratch, deep);

    expect(readTar(readFileSync(file)).map((entry) => entry.path)).toEqual([
      deep,
    ]);
    expect(() =>
      tarOf([{ path: deep, mode: 0o644, bytes: Buffer.alloc(0) }]),
    ).toThrow(/^the path 0123456789\/.* is too long for a tar archive$/);
  });

  it.each([
    {
      name: "cut off within a file",
      damage: (archive: Buffer) => archive.subarray(0, 2000),
      want: "the tar archive is cut off",
    },
    {
      name: "without an end",
      damage: (archive: Buffer) => archive.subarray(0, -1024),
      want: "the tar archive is cut off",
    },
    {
      name: "with another name in its first header",
      damage: (archive: Buffer) => {
        archive.write("x", 0);
        return archive;
      },
      want: "the tar archive is damaged: a header's sum is wrong",
    },
    {
      name: "with a size that is no number",
      damage: (archive: Buffer) => {
        archive.write("zz", 124);
        return archive;
      },
      want: /^the tar archive is damaged: /,
    },
  ])("refuses an archive $name", ({ damage, want }) => {
    const archive = damage(tarOf(ENTRIES));

    expect(() => readTar(archive)).toThrow(want);
  });
});

function tar(...args: string[]): string {
  return execFileSync("tar", args, { encoding: "utf8" });
}
