import { execFileSync } from "node:child_process";
import {
  chmod,
  mkdir,
  readdir,
  readFile,
  rmdir,
  symlink,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";

import { describe, expect, it } from "vitest";

import {
  type OutputContent,
  type OutputFile,
  requireWritable,
  writeOutputFiles,
} from "../../../../src/cli/module/output-file.js";
import { dirOf } from "./run-module.js";

const CHUNKS = [Buffer.from("one "), Buffer.from("two")];
const NOBODY = 65_534;

function output(path: string, options: Partial<OutputFile> = {}): OutputFile {
  const advice = "--force replaces it";
  return { path, flag: "--output-file", replaces: false, advice, ...options };
}

/** Writes them, and says which were. */
async function write(...contents: readonly OutputContent[]) {
  const written: [string, number][] = [];
  await writeOutputFiles(contents, (path, sizeBytes) => {
    written.push([path, sizeBytes]);
  });
  return written;
}

describe("cli/module/output-file writeOutputFiles", () => {
  it("writes all chunks, and leaves nothing else", async () => {
    const dir = await dirOf();
    const path = join(dir, "f");

    const written = await write({ file: output(path), chunks: CHUNKS });

    expect(written).toEqual([[path, 7]]);
    expect(await readFile(path, "utf8")).toBe("one two");
    expect(await readdir(dir)).toEqual(["f"]);
  });

  it("replaces a file where it may", async () => {
    const dir = await dirOf({ f: "old and longer" });
    const file = output(join(dir, "f"), { replaces: true });

    await write({ file, chunks: CHUNKS });

    expect(await readFile(join(dir, "f"), "utf8")).toBe("one two");
    expect(await readdir(dir)).toEqual(["f"]);
  });

  it("leaves a file alone that came meanwhile", async () => {
    const dir = await dirOf();
    const path = join(dir, "f");
    async function* chunks() {
      yield Buffer.from("new");
      await writeFile(path, "came meanwhile");
    }

    await expect(
      write({ file: output(path), chunks: chunks() }),
    ).rejects.toThrow(`"${path}" is there already: --force replaces it`);

    expect(await readFile(path, "utf8")).toBe("came meanwhile");
    expect(await readdir(dir)).toEqual(["f"]);
  });

  it("does not write through a link", async () => {
    const dir = await dirOf({ target: "target" });
    await symlink("target", join(dir, "f"));
    const file = output(join(dir, "f"), { replaces: true });

    await write({ file, chunks: CHUNKS });

    expect(await readFile(join(dir, "target"), "utf8")).toBe("target");
    expect(await readFile(join(dir, "f"), "utf8")).toBe("one two");
  });

  it("leaves nothing when the chunks fail", async () => {
    const dir = await dirOf({ f: "old" });
    const file = output(join(dir, "f"), { replaces: true });
    // eslint-disable-next-line @typescript-eslint/require-await -- a stream needs none
    async function* chunks() {
      yield Buffer.from("half");
      throw new Error("broken");
    }

    await expect(write({ file, chunks: chunks() })).rejects.toThrow("broken");

    expect(await readdir(dir)).toEqual(["f"]);
    expect(await readFile(join(dir, "f"), "utf8")).toBe("old");
  });

  it("writes none of several when the last cannot be", async () => {
    const dir = await dirOf({ old: "old" });
    await mkdir(join(dir, "sub"));
    const first = output(join(dir, "new"));
    const second = output(join(dir, "old"), { replaces: true });
    const third = output(join(dir, "sub", "f"), { flag: "--manifest-file" });
    async function* chunks() {
      await rmdir(join(dir, "sub"));
      yield Buffer.from("new");
    }

    await expect(
      write(
        { file: first, chunks: chunks() },
        { file: second, chunks: CHUNKS },
        { file: third, chunks: CHUNKS },
      ),
    ).rejects.toMatchObject({
      name: "FileError",
      message: expect.stringContaining(
        `--manifest-file: cannot write "${third.path}": ENOENT`,
      ) as string,
    });

    expect(await readdir(dir)).toEqual(["old"]);
    expect(await readFile(join(dir, "old"), "utf8")).toBe("old");
  });

  it("writes a file whose name is as long as names may be", async () => {
    const dir = await dirOf();
    const name = "x".repeat(255);

    await write({ file: output(join(dir, name)), chunks: CHUNKS });

    expect(await readdir(dir)).toEqual([name]);
  });
});

describe("cli/module/output-file requireWritable", () => {
  it("takes a place in a directory, and one that it may replace, and writes nothing", async () => {
    const dir = await dirOf({ old: "old" });

    await requireWritable(output(join(dir, "new")));
    await requireWritable(output(join(dir, "old"), { replaces: true }));

    expect(await readdir(dir)).toEqual(["old"]);
  });

  it.each([
    {
      name: "nothing",
      path: () => "",
      want: () => '--output-file: expected the path of a file, got ""',
    },
    {
      name: "what can only be a directory",
      path: (dir: string) => `${dir}/new/`,
      want: (dir: string) =>
        `--output-file: expected the path of a file, got "${dir}/new/"`,
    },
    {
      name: "a directory, whatever it may replace",
      path: (dir: string) => dir,
      want: (dir: string) =>
        `--output-file "${dir}": expected a file or nothing in that place, got a directory`,
    },
    {
      name: "a directory that is not there",
      path: (dir: string) => join(dir, "gone", "f"),
      want: (dir: string) =>
        `--output-file "${dir}/gone/f": expected a directory to write to, there is no "${dir}/gone"`,
    },
    {
      name: "a directory below a file",
      path: (dir: string) => join(dir, "old", "sub", "f"),
      want: (dir: string) =>
        `--output-file "${dir}/old/sub/f": expected a directory to write to, there is no "${dir}/old/sub"`,
    },
    {
      name: "a file for a directory",
      path: (dir: string) => join(dir, "old", "f"),
      want: (dir: string) =>
        `--output-file "${dir}/old/f": expected a directory to write to, "${dir}/old" is none`,
    },
  ])("refuses $name", async ({ path, want }) => {
    const dir = await dirOf({ old: "old" });

    await expect(
      requireWritable(output(path(dir), { replaces: true })),
    ).rejects.toMatchObject({ name: "FileError", message: want(dir) });
  });

  it("refuses the place of a pipe or device, whatever it may replace", async () => {
    const pipe = join(await dirOf(), "pipe");
    execFileSync("mkfifo", [pipe]);

    await expect(
      requireWritable(output(pipe, { replaces: true })),
    ).rejects.toMatchObject({
      message: `--output-file "${pipe}": expected a file or nothing in that place, got something else`,
    });
  });

  it("refuses a directory that this user may not write to", async () => {
    const dir = await dirOf();
    const closed = join(dir, "closed");
    await mkdir(closed, { mode: 0o555 });
    await chmod(dir, 0o755);

    await asOrdinaryUser(() =>
      expect(requireWritable(output(join(closed, "f")))).rejects.toMatchObject({
        message: `--output-file "${closed}/f": expected a directory to write to, "${closed}" cannot be written to (EACCES)`,
      }),
    );
  });

  it("refuses a name that no file can have", async () => {
    const dir = await dirOf();

    await expect(
      requireWritable(output(join(dir, "x".repeat(256)))),
    ).rejects.toThrow(/^--output-file: cannot write "[^"]*x": ENAMETOOLONG/);
  });

  it.each(["a file", "a link that leads nowhere"])(
    "refuses to replace %s unless it may",
    async (what) => {
      const dir = await dirOf();
      const path = join(dir, "f");
      if (what === "a file") await writeFile(path, "old");
      else await symlink("nowhere", path);

      await expect(requireWritable(output(path))).rejects.toThrow(
        `"${path}" is there already: --force replaces it`,
      );
      await requireWritable(output(path, { replaces: true }));
    },
  );
});

/** Root may write everywhere, so root becomes somebody else for a moment. */
async function asOrdinaryUser(act: () => Promise<void>): Promise<void> {
  if (process.geteuid?.() !== 0) {
    await act();
    return;
  }
  process.seteuid?.(NOBODY);
  try {
    await act();
  } finally {
    process.seteuid?.(0);
  }
}
