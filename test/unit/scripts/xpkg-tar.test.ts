import { execFileSync } from "node:child_process";
import { Buffer } from "node:buffer";
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
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
const EMPTY = { path: "header", mode: 0o644, bytes: Buffer.alloc(0) };

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

  it("reads GNU tar's pax links with a long target", () => {
    symlinkSync(LONG_PATH.repeat(2), path.join(scratch, "link"));
    const file = path.join(scratch, "a.tar");
    tar("--format=pax", "-cf", file, "-C", scratch, "link");

    expect(readTar(readFileSync(file))).toMatchObject([
      { path: "link", kind: "other" },
    ]);
  });

  describe("pax headers", () => {
    it.each([
      { name: "one path", records: ["path=one"], want: "one" },
      {
        name: "the last of two",
        records: ["path=one", "path=two"],
        want: "two",
      },
      { name: "none but others", records: ["mtime=1"], want: "header" },
    ])("name what GNU tar names: $name", ({ records, want }) => {
      const archive = withPax("x", records);
      const file = path.join(scratch, "a.tar");
      writeFileSync(file, archive);

      expect(readTar(archive).map((entry) => entry.path)).toEqual([want]);
      expect(tar("-tf", file)).toBe(`${want}\n`);
    });

    it("count only if no other follows", () => {
      const archive = Buffer.concat([
        headerOf("x", paxRecord("path=one")),
        withPax("x", ["mtime=1"]),
      ]);
      const file = path.join(scratch, "a.tar");
      writeFileSync(file, archive);

      expect(readTar(archive).map((entry) => entry.path)).toEqual(["header"]);
      expect(tar("-tf", file)).toBe("header\n");
    });

    it("name one entry", () => {
      const archive = Buffer.concat([
        headerOf("x", paxRecord("path=one")),
        tarOf([EMPTY, { ...EMPTY, path: "after" }]),
      ]);

      expect(readTar(archive).map((entry) => entry.path)).toEqual([
        "one",
        "after",
      ]);
    });

    it("are refused beside a long name of GNU's, for readers differ", () => {
      const archive = Buffer.concat([
        headerOf("L", "gnu\0"),
        withPax("x", ["path=pax"]),
      ]);

      expect(() => readTar(archive)).toThrow(
        "the tar archive has an entry with two long names",
      );
    });

    it("may be for every entry, if they name none", () => {
      const archive = withPax("g", ["comment=a commit"]);

      expect(readTar(archive)).toMatchObject([{ path: "header" }]);
    });

    it("may have binary values, as those of file capabilities are", () => {
      const capability = "SCHILY.xattr.security.capability=\u0001\0\0\u0002";

      expect(readTar(withPax("x", ["path=one", capability]))).toMatchObject([
        { path: "one" },
      ]);
    });

    it.each([
      { type: "x", record: "size=3", key: "size" },
      { type: "g", record: "size=3", key: "size" },
      { type: "x", record: "GNU.sparse.name=other", key: "GNU.sparse" },
      { type: "x", record: "GNU.sparse.realsize=3", key: "GNU.sparse" },
    ])(
      "are refused where others read another file: $type $record",
      ({ type, record, key }) => {
        expect(() => readTar(withPax(type, ["path=one", record]))).toThrow(
          `the tar archive has a pax header with ${key}, which is not read here: write it without`,
        );
      },
    );

    it("are refused with an empty path", () => {
      expect(() => readTar(withPax("x", ["path=one", "path="]))).toThrow(
        "the tar archive has a pax header with an empty path",
      );
    });

    it("are refused where others name every entry to come", () => {
      expect(() => readTar(withPax("g", ["path=other"]))).toThrow(
        "the tar archive has a global pax header with path, which is not read here: write it without",
      );
    });

    it.each([
      { name: "no length", text: "path=one\n" },
      { name: "a length in another notation", text: "0x10 path=12345\n" },
      { name: "a length past the end", text: "14 path=one\n" },
      { name: "a length that ends early", text: "11 path=one\n" },
      { name: "no value", text: "7 path\n" },
      { name: "one without a value", text: "7 path\n12 path=one\n" },
      { name: "a NUL", text: "13 path=on\0e\n" },
      { name: "a NUL in a key", text: "13 com\0ment=\n" },
    ])("are refused with $name", ({ text }) => {
      expect(() => readTar(withPaxText("x", text))).toThrow(
        "the tar archive is damaged: a pax header is none",
      );
    });
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

/** An archive of the empty file `header`, with a pax header before it. */
function withPax(type: string, records: readonly string[]): Buffer {
  return withPaxText(type, records.map(paxRecord).join(""));
}

function withPaxText(type: string, text: string): Buffer {
  return Buffer.concat([headerOf(type, text), tarOf([EMPTY])]);
}

/** An entry of another type than a file's. */
function headerOf(type: string, text: string): Buffer {
  const bytes = Buffer.from(text);
  const archive = tarOf([{ path: "other", mode: 0o644, bytes }]);
  archive.write(type, 156);
  // The sum of the header's bytes, its own taken as blanks.
  archive.write(" ".repeat(8), 148);
  const sum = archive.subarray(0, 512).reduce((total, byte) => total + byte, 0);
  archive.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return archive.subarray(0, -1024);
}

/** With its own length before it. */
function paxRecord(record: string): string {
  const rest = ` ${record}\n`;
  const length = rest.length + 1;
  return length < 10 ? `${length}${rest}` : `${length + 1}${rest}`;
}

function tar(...args: string[]): string {
  return execFileSync("tar", args, { encoding: "utf8" });
}
