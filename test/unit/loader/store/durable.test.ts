import type { PathLike } from "node:fs";
import type * as fsPromises from "node:fs/promises";
import path from "node:path";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { createAccessStore } from "../../../../src/loader/store/access-store.js";
import { createBlobStore } from "../../../../src/loader/store/blob-store.js";
import { createPointerStore } from "../../../../src/loader/store/pointer-store.js";
import { handClock, makeDir, recordingLogger } from "./fixtures.js";
import { chunksOf, digestOf } from "./store-content.js";

/** What is done to the disk, in order. */
const done = vi.hoisted((): string[] => []);

vi.mock("node:fs/promises", async (original) => {
  const real = await original<typeof fsPromises>();
  const open: typeof real.open = async (filePath, ...rest) => {
    const handle = await real.open(filePath, ...rest);
    const sync = handle.sync.bind(handle);
    handle.sync = async () => {
      done.push(`sync ${nameOf(filePath)}`);
      await sync();
    };
    return handle;
  };
  const rename: typeof real.rename = async (from, to) => {
    done.push(`rename ${nameOf(from)} in ${nameOf(path.dirname(String(to)))}`);
    await real.rename(from, to);
  };
  return { ...real, open, rename };
});

/** Of a temporary file the beginning only. */
function nameOf(filePath: PathLike): string {
  return path.basename(String(filePath)).replace(/^\.tmp-.*$/u, ".tmp");
}

describe("loader/store when the power fails", () => {
  const { logger } = recordingLogger();

  beforeEach(() => {
    done.length = 0;
  });

  it.each<{
    directory: string;
    write: (cacheDir: string) => Promise<unknown>;
  }>([
    ...(["blobs", "manifests"] as const).map((kind) => ({
      directory: kind,
      write: (cacheDir: string) =>
        createBlobStore({ cacheDir, kind }, handClock(), logger).write(
          digestOf("module"),
          chunksOf("mod", "ule"),
        ),
    })),
    {
      directory: "refs",
      write: (cacheDir) =>
        createPointerStore(cacheDir, handClock(), logger).write(
          "ghcr.io/acme/greeter:v1",
          digestOf("manifest"),
          Date.now(),
        ),
    },
    {
      directory: "access",
      write: (cacheDir) =>
        createAccessStore(cacheDir, handClock(), logger).record(
          {
            place: "ghcr.io/acme/greeter",
            digest: digestOf("module"),
            identity: "anonymous",
          },
          Date.now(),
        ),
    },
  ])(
    "[R10] in $directory content is on the disk before its name, and the name after it",
    async ({ directory, write }) => {
      await write(makeDir());

      expect(done).toEqual([
        "sync .tmp",
        `rename .tmp in ${directory}`,
        `sync ${directory}`,
      ]);
    },
  );
});
