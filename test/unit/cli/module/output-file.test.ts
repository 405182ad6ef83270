import { readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { describe, expect, it } from "vitest";

import {
  refuseExisting,
  writeOutputFile,
} from "../../../../src/cli/module/output-file.js";
import { dirOf } from "./run-module.js";

const CHUNKS = [Buffer.from("one "), Buffer.from("two")];
const never = { replaces: false, advice: "--force replaces it" };
const always = { ...never, replaces: true };

describe("cli/module/output-file", () => {
  it("writes all chunks, and leaves nothing else", async () => {
    const dir = await dirOf();

    await writeOutputFile(join(dir, "f"), CHUNKS, never);

    expect(await readFile(join(dir, "f"), "utf8")).toBe("one two");
    expect(await readdir(dir)).toEqual(["f"]);
  });

  it("replaces a file where it may", async () => {
    const dir = await dirOf({ f: "old and longer" });

    await writeOutputFile(join(dir, "f"), CHUNKS, always);

    expect(await readFile(join(dir, "f"), "utf8")).toBe("one two");
    expect(await readdir(dir)).toEqual(["f"]);
  });

  it("leaves a file alone that came meanwhile", async () => {
    const dir = await dirOf();
    const file = join(dir, "f");
    async function* chunks() {
      yield Buffer.from("new");
      await writeFile(file, "came meanwhile");
    }

    await expect(writeOutputFile(file, chunks(), never)).rejects.toThrow(
      `"${file}" is there already: --force replaces it`,
    );

    expect(await readFile(file, "utf8")).toBe("came meanwhile");
    expect(await readdir(dir)).toEqual(["f"]);
  });

  it("does not write through a link", async () => {
    const dir = await dirOf({ target: "target" });
    await symlink("target", join(dir, "f"));

    await writeOutputFile(join(dir, "f"), CHUNKS, always);

    expect(await readFile(join(dir, "target"), "utf8")).toBe("target");
    expect(await readFile(join(dir, "f"), "utf8")).toBe("one two");
  });

  it("leaves nothing when the chunks fail", async () => {
    const dir = await dirOf({ f: "old" });
    // eslint-disable-next-line @typescript-eslint/require-await -- a stream needs none
    async function* chunks() {
      yield Buffer.from("half");
      throw new Error("broken");
    }

    await expect(
      writeOutputFile(join(dir, "f"), chunks(), always),
    ).rejects.toThrow("broken");

    expect(await readdir(dir)).toEqual(["f"]);
    expect(await readFile(join(dir, "f"), "utf8")).toBe("old");
  });

  it("says where it cannot write", async () => {
    const dir = await dirOf();

    await expect(
      writeOutputFile(join(dir, "no", "f"), CHUNKS, never),
    ).rejects.toMatchObject({
      name: "FileError",
      message: expect.stringContaining(
        `cannot write "${join(dir, "no", "f")}": ENOENT`,
      ) as string,
    });
  });

  it("takes a link that leads nowhere for a file that is there", async () => {
    const dir = await dirOf();
    await symlink("nowhere", join(dir, "f"));

    await expect(
      refuseExisting(join(dir, "f"), "do something else"),
    ).rejects.toThrow("do something else");
    await expect(
      refuseExisting(join(dir, "g"), "do something else"),
    ).resolves.toBeUndefined();
  });
});
