import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { FileError } from "../../../../src/cli/files/error.js";
import {
  maxFileBytes,
  readFileText,
  readStreamText,
  yamlFiles,
} from "../../../../src/cli/files/text.js";

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "text-test-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

async function write(name: string, content: string | Uint8Array) {
  const file = join(dir, name);
  await writeFile(file, content);
  return file;
}

async function* streamOf(...chunks: Uint8Array[]) {
  yield* await Promise.resolve(chunks);
}

describe("cli/files/text", () => {
  it("reads UTF-8, a character in two chunks included, and drops the first byte order mark", async () => {
    const file = await write("a.yaml", "\uFEFFé\uFEFF");
    const bytes = Buffer.from("é€");

    expect(await readFileText(file)).toBe("é\uFEFF");
    expect(
      await readStreamText(
        streamOf(bytes.subarray(0, 3), bytes.subarray(3)),
        "<stdin>",
      ),
    ).toBe("é€");
  });

  it.each([
    { name: "an overlong form", bytes: [0xc0, 0xaf] },
    { name: "half a character", bytes: [0x61, 0xe2, 0x82] },
    { name: "UTF-16", bytes: [0xff, 0xfe, 0x61, 0x00] },
    { name: "a surrogate", bytes: [0xed, 0xa0, 0x80] },
  ])("refuses $name", async ({ bytes }) => {
    const reading = readStreamText(streamOf(Uint8Array.from(bytes)), "<stdin>");

    await expect(reading).rejects.toThrow("<stdin>: expected UTF-8 text");
    await expect(reading).rejects.toThrow(FileError);
  });

  it("reads 16 MiB and not a byte more", async () => {
    const chunk = new Uint8Array(maxFileBytes / 4).fill(0x61);
    const four = [chunk, chunk, chunk, chunk];

    const text = await readStreamText(streamOf(...four), "f");

    expect(text).toHaveLength(maxFileBytes);
    await expect(
      readStreamText(streamOf(...four, Uint8Array.of(0x61)), "f"),
    ).rejects.toThrow("f: expected at most 16777216 bytes (16 MiB), got more");
  });

  it("stops reading a stream that does not end", async () => {
    let chunks = 0;
    async function* endless() {
      for (;;) {
        chunks += 1;
        yield await Promise.resolve(new Uint8Array(1024 * 1024));
      }
    }

    await expect(readStreamText(endless(), "f")).rejects.toThrow("16 MiB");
    expect(chunks).toBe(17);
  });

  it("lists the YAML files of a directory in order, and those alone", async () => {
    for (const name of ["b.yml", "a.yaml", "c.json", "notes.txt"])
      await write(name, "");
    await mkdir(join(dir, "d.yaml"));

    expect(await yamlFiles(dir)).toEqual([
      join(dir, "a.yaml"),
      join(dir, "b.yml"),
    ]);
    expect(await yamlFiles(join(dir, "c.json"))).toEqual([join(dir, "c.json")]);
  });

  it("names what it cannot read, escaped", async () => {
    const missing = join(dir, "gone\u001b.yaml");

    await expect(yamlFiles(missing)).rejects.toMatchObject({
      code: "file-unreadable",
      message: expect.stringMatching(
        /^cannot read "[^"]*gone\\u001b\.yaml": ENOENT[ -~]*$/,
      ) as string,
    });
    await expect(readFileText(dir)).rejects.toMatchObject({
      code: "file-unreadable",
      message: expect.stringContaining(
        "expected a file, got a directory",
      ) as string,
    });
    await expect(yamlFiles(dir)).rejects.toMatchObject({
      code: "file-invalid",
      message: expect.stringContaining("got none") as string,
    });
  });
});
