import { execFileSync } from "node:child_process";
import { chmodSync, lstatSync, readdirSync, readFileSync } from "node:fs";
import {
  copyFile,
  mkdtemp,
  rename,
  rm,
  symlink,
  truncate,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterEach, beforeEach, describe, expect, it } from "vitest";

import {
  artifactPaths,
  messages,
  refusal,
  startEngine,
  type TestEngineOptions,
} from "../support/engine.js";

const key = Buffer.from("hunter2 one".padEnd(32));
const otherKey = Buffer.from("hunter2 other".padEnd(32));

/** Artifacts are native code: what did not come from our compiler is never run. */
describe("security/artifacts", () => {
  let cacheDir: string;
  beforeEach(async () => {
    const dir = await mkdtemp(join(tmpdir(), "artifacts-test-"));
    cacheDir = join(dir, "cache");
  });
  afterEach(() => rm(join(cacheDir, ".."), { recursive: true, force: true }));

  /** One process's life: start, call the guest, end. */
  async function callOnce(
    guest: string,
    options: TestEngineOptions = {},
  ): Promise<{ messages: string[]; compiles: number }> {
    const engine = await startEngine({
      cacheDir,
      artifactKey: key,
      ...options,
    });
    try {
      const response = await engine.call(guest);
      return { messages: messages(response), compiles: engine.compiles() };
    } finally {
      await engine.close();
    }
  }

  async function onlyArtifact(): Promise<string> {
    const paths = await artifactPaths(cacheDir);
    expect(paths).toHaveLength(1);
    return paths[0] ?? "";
  }

  const fresh = { messages: ["hello world"], compiles: 1 };
  const reused = { messages: ["hello world"], compiles: 0 };

  it.each(["v1/hello", "v2/hello"])(
    "uses what an earlier process with the same key made of %s",
    async (guest) => {
      expect(await callOnce(guest)).toEqual(fresh);
      expect(await callOnce(guest)).toEqual(reused);
    },
  );

  it("does not use what was made with another key", async () => {
    await callOnce("v1/hello", { artifactKey: otherKey });

    expect(await callOnce("v1/hello")).toEqual(fresh);
    expect(await callOnce("v1/hello")).toEqual(reused);
  });

  it("does not use what an earlier process made without a key", async () => {
    await callOnce("v1/hello", { artifactKey: null });

    expect(await callOnce("v1/hello", { artifactKey: null })).toEqual(fresh);
  });

  it.each([
    { name: "the first byte", at: () => 0 },
    { name: "a byte of the code", at: (size: number) => Math.floor(size / 2) },
    { name: "the last byte", at: (size: number) => size - 1 },
  ])("compiles again when $name was flipped", async ({ at }) => {
    await callOnce("v1/hello");
    const path = await onlyArtifact();
    const bytes = readFileSync(path);
    const index = at(bytes.length);
    bytes[index] = (bytes[index] ?? 0) ^ 0xff;
    await writeFile(path, bytes);

    expect(await callOnce("v1/hello")).toEqual(fresh);
    expect(await callOnce("v1/hello")).toEqual(reused);
  });

  it.each([
    { name: "cut short", spoil: (path: string) => truncate(path, 1000) },
    { name: "emptied", spoil: (path: string) => truncate(path, 0) },
    { name: "removed", spoil: (path: string) => rm(path) },
    {
      name: "lengthened",
      spoil: (path: string) => writeFile(path, "more", { flag: "a" }),
    },
    {
      name: "replaced by a link to itself",
      async spoil(path: string) {
        await rename(path, `${path}.moved`);
        await symlink(`${path}.moved`, path);
      },
    },
    {
      name: "replaced by a FIFO",
      async spoil(path: string) {
        await rm(path);
        execFileSync("mkfifo", [path]);
      },
    },
    {
      name: "made writable for others",
      spoil: (path: string) => {
        chmodSync(path, 0o666);
        return Promise.resolve();
      },
    },
  ])("compiles again when the artifact was $name", async ({ spoil }) => {
    await callOnce("v1/hello");
    await spoil(await onlyArtifact());

    expect(await callOnce("v1/hello")).toEqual(fresh);
    expect(await callOnce("v1/hello")).toEqual(reused);
  });

  it("does not take one module's artifact for another's", async () => {
    await callOnce("v1/hello");
    const hello = await onlyArtifact();
    await callOnce("v1/start");
    const start = (await artifactPaths(cacheDir)).find(
      (path) => path !== hello,
    );
    await copyFile(start ?? "", hello);

    expect(await callOnce("v1/hello")).toEqual(fresh);
  });

  it("keeps a directory that only it can look into, and nothing else", async () => {
    await callOnce("v1/hello");

    expect(readdirSync(cacheDir)).toEqual(["compiled"]);
    const artifact = await onlyArtifact();
    expect(modeOf(artifact) & 0o077).toBe(0);
    expect(modeOf(join(artifact, ".."))).toBe(0o700);
    expect(modeOf(join(cacheDir, "compiled"))).toBe(0o700);
  });

  describe("with --trust-cache-dir", () => {
    const trusting = { artifactKey: null, trustCacheDir: true };

    it("uses what an earlier process made without a key", async () => {
      await callOnce("v1/hello", trusting);

      expect(await callOnce("v1/hello", trusting)).toEqual(reused);
    });

    it("does not start on a directory that others could write to", async () => {
      await callOnce("v1/hello", trusting);
      chmodSync(join(await onlyArtifact(), ".."), 0o777);

      const error = await refusal(startEngine({ cacheDir, ...trusting }));

      expect(error.code).toBe("load-failed");
      expect(error.message).toContain("--cache-dir");
      expect(error.message).toMatch(/expected .*0700, got .*777/);
    });

    it("does not use a file that others could write to", async () => {
      await callOnce("v1/hello", trusting);
      chmodSync(await onlyArtifact(), 0o666);

      expect(await callOnce("v1/hello", trusting)).toEqual(fresh);
    });
  });

  it("closes a directory that others could write to, when a key decides", async () => {
    await callOnce("v1/hello");
    const directory = join(await onlyArtifact(), "..");
    chmodSync(directory, 0o777);

    expect(await callOnce("v1/hello")).toEqual(reused);
    expect(modeOf(directory)).toBe(0o700);
  });

  it("goes on without the disk when it can no longer write there", async () => {
    const engine = await startEngine({ cacheDir, artifactKey: key });
    await engine.call("v1/hello");
    const directory = join(await onlyArtifact(), "..");
    await rm(directory, { recursive: true });
    await writeFile(directory, "in the way");

    const response = await engine.call("v1/start");

    expect(messages(response)).toEqual(["1"]);
    expect(engine.lines.some(({ level }) => level === "warn")).toBe(true);
    await engine.close();
  });

  it("does not start with a cache directory below a file", async () => {
    await writeFile(cacheDir, "in the way");

    const error = await refusal(
      startEngine({ cacheDir: join(cacheDir, "cache") }),
    );

    expect(error.code).toBe("load-failed");
    expect(error.message).toContain("--cache-dir");
  });

  it("does not start where a link lies in the place of its directory", async () => {
    await callOnce("v1/hello");
    const compiled = join(cacheDir, "compiled");
    await rename(compiled, `${compiled}.moved`);
    await symlink(`${compiled}.moved`, compiled);

    const error = await refusal(startEngine({ cacheDir }));

    expect(error.code).toBe("load-failed");
    expect(error.message).toContain("--cache-dir");
  });

  it("leaves no half-written file when a compile fails", async () => {
    const engine = await startEngine({ cacheDir, artifactKey: key });
    await refusal(engine.load("shape/invalid-body"));
    await engine.close();

    expect(await artifactPaths(cacheDir)).toEqual([]);
  });
});

function modeOf(path: string): number {
  return lstatSync(path).mode & 0o777;
}
