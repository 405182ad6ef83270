import {
  type BigIntStats,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  createPathMemory,
  type PathMemory,
} from "../../../src/loader/path-memory.js";
import type { ModuleFile } from "../../../src/ports.js";

let dir: string;
let nowMs: number;
let memory: PathMemory;

describe("loader/path-memory", () => {
  beforeEach(() => {
    dir = mkdtempSync(path.join(tmpdir(), "function-wasm-memory-"));
    nowMs = 1_000_000;
    memory = createPathMemory({ nowMs: () => 0, monotonicMs: () => nowMs });
    writeFileSync(at("a.wasm"), "a");
    mkdirSync(at("v1"));
    mkdirSync(at("v2"));
    writeFileSync(at("v1/a.wasm"), "one");
    writeFileSync(at("v2/a.wasm"), "two");
    symlinkSync("v1", at("data"));
  });
  afterEach(() => {
    rmSync(dir, { recursive: true });
  });

  it("knows nothing of a path it was not told of", () => {
    remember("a.wasm");

    expect(memory.recall("b.wasm")).toBeUndefined();
  });

  it("recalls a path whose file is as it was, through links, too", () => {
    const plain = remember("a.wasm");
    const linked = remember("data/a.wasm", "v1/a.wasm");

    expect(memory.recall("a.wasm")).toBe(plain);
    expect(memory.recall("data/a.wasm")).toBe(linked);
  });

  it("recalls what it was told last", () => {
    remember("a.wasm");
    const last = remember("a.wasm");

    expect(memory.recall("a.wasm")).toBe(last);
  });

  it.each([
    {
      name: "a link on its way moved to another file",
      change: () => {
        symlinkSync("v2", at("next"));
        renameSync(at("next"), at("data"));
      },
    },
    {
      name: "another file was put in its place",
      change: () => renameSync(at("v2/a.wasm"), at("v1/a.wasm")),
    },
    {
      name: "its file was written to, and given its old time",
      change: () => {
        const { atime, mtime } = lstatSync(at("v1/a.wasm"));
        writeFileSync(at("v1/a.wasm"), "ONE");
        utimesSync(at("v1/a.wasm"), atime, mtime);
      },
    },
    {
      name: "its file got a second name",
      change: () => linkSync(at("v1/a.wasm"), at("outside.wasm")),
    },
    { name: "its file is gone", change: () => rmSync(at("v1/a.wasm")) },
    {
      name: "a directory on its way is a file",
      change: () => {
        rmSync(at("data"));
        writeFileSync(at("data"), "");
      },
    },
    {
      name: "a link on its way leads to itself",
      change: () => {
        rmSync(at("data"));
        symlinkSync("data", at("data"));
      },
    },
    {
      name: "a second has passed",
      change: () => {
        nowMs += 1_000;
      },
    },
  ])("does not recall a path when $name", async ({ change }) => {
    remember("data/a.wasm", "v1/a.wasm");
    // Longer than a tick of the clock that stamps files.
    await sleep(20);

    change();

    expect(memory.recall("data/a.wasm")).toBeUndefined();
  });

  it("recalls a path until a second has passed, however often", () => {
    const module = remember("a.wasm");
    nowMs += 999;
    expect(memory.recall("a.wasm")).toBe(module);

    nowMs += 1;

    expect(memory.recall("a.wasm")).toBeUndefined();
  });

  it("does not take what is no regular file for the one it was", () => {
    const stats = lstatSync(at("v1"), { bigint: true });
    remember("v1", "v1", stats);

    expect(memory.recall("v1")).toBeUndefined();
  });

  it("forgets the path used longest ago beyond 1024", () => {
    remember("a.wasm");
    for (let i = 0; i < 1023; i++) remember(`x${i}`, "a.wasm");
    expect(memory.recall("a.wasm")).toBeDefined();

    remember("y", "a.wasm");
    expect(memory.recall("a.wasm")).toBeDefined();
    for (let i = 0; i < 1024; i++) remember(`z${i}`, "a.wasm");

    expect(memory.recall("a.wasm")).toBeUndefined();
  });
});

function remember(
  modulePath: string,
  file = modulePath,
  stats: BigIntStats = lstatSync(at(file), { bigint: true }),
): ModuleFile {
  const module: ModuleFile = {
    digest: `sha256:${"0".repeat(64)}`,
    filePath: at(file),
    sizeBytes: Number(stats.size),
    description: `Path ${modulePath}`,
  };
  const place = modulePath.startsWith("data/") ? modulePath : file;
  memory.remember(modulePath, at(place), stats, module);
  return module;
}

function at(name: string): string {
  return path.join(dir, name);
}
