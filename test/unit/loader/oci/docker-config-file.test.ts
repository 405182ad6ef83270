import { execFileSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  createDockerConfigFile,
  dockerConfigFileOf,
} from "../../../../src/loader/oci/docker-config-file.js";
import { createIsPlainHttp } from "../../../../src/loader/registry-scheme.js";

let dir: string;
let file: string;
let nowMs: number;
const clock = { nowMs: () => nowMs, monotonicMs: () => nowMs };
const isPlainHttp = createIsPlainHttp({
  insecureHosts: [],
  registryCas: new Map(),
});

describe("loader/oci/docker-config-file", () => {
  beforeEach(() => {
    dir = mkdtempSync(path.join(tmpdir(), "function-wasm-docker-config-"));
    file = path.join(dir, "config.json");
    nowMs = 5_000;
  });
  afterEach(() => {
    rmSync(dir, { recursive: true });
  });

  it.each([
    {
      name: "DOCKER_CONFIG before HOME",
      env: { DOCKER_CONFIG: "/etc/docker-config", HOME: "/homes/u" },
      want: "/etc/docker-config/config.json",
    },
    {
      name: "HOME",
      env: { HOME: "/homes/u" },
      want: "/homes/u/.docker/config.json",
    },
    {
      name: "HOME when DOCKER_CONFIG is empty",
      env: { DOCKER_CONFIG: "", HOME: "/homes/u" },
      want: "/homes/u/.docker/config.json",
    },
    { name: "nothing when HOME is empty", env: { HOME: "" }, want: null },
    { name: "nothing of its own", env: {}, want: null },
  ])("goes by $name", ({ env, want }) => {
    expect(dockerConfigFileOf(env)).toBe(want);
  });

  it("says nothing without a file", () => {
    const config = createDockerConfigFile(null, isPlainHttp, clock);

    expect(config.current()).toEqual({ kind: "ok", value: null });
  });

  it.each([
    { name: "file", at: () => file },
    { name: "directory", at: () => path.join(dir, "x", "config.json") },
    {
      name: "directory, but a file in its place",
      at: () => {
        writeFileSync(file, "");
        return path.join(file, "config.json");
      },
    },
  ])("says nothing when there is no such $name", ({ at }) => {
    const config = createDockerConfigFile(at(), isPlainHttp, clock);

    expect(config.current()).toEqual({ kind: "ok", value: null });
  });

  it("looks at the file once a second, and reads it when it has changed", () => {
    write("a");
    const config = createDockerConfigFile(file, isPlainHttp, clock);
    const store = () => storeOf(config.current());

    expect(store()).toBe("a");
    write("b");
    nowMs += 999;
    expect(store()).toBe("a");
    nowMs += 1;
    expect(store()).toBe("b");
    unlinkSync(file);
    nowMs += 1_000;
    expect(config.current()).toEqual({ kind: "ok", value: null });
    write("c");
    nowMs += 1_000;
    expect(store()).toBe("c");
  });

  it("keeps what it has read while the file is the same", () => {
    write("a");
    const config = createDockerConfigFile(file, isPlainHttp, clock);
    const before = config.current();
    nowMs += 1_000;

    expect(config.current()).toBe(before);
  });

  it("follows the links of a mounted Secret to its next version", () => {
    mkdirSync(path.join(dir, "v1"));
    mkdirSync(path.join(dir, "v2"));
    writeFileSync(path.join(dir, "v1", "config.json"), '{"credsStore":"a"}');
    writeFileSync(path.join(dir, "v2", "config.json"), '{"credsStore":"b"}');
    symlinkSync("v1", path.join(dir, "..data"));
    symlinkSync("..data/config.json", file);
    const config = createDockerConfigFile(file, isPlainHttp, clock);
    expect(storeOf(config.current())).toBe("a");

    symlinkSync("v2", path.join(dir, "..data_tmp"));
    renameSync(path.join(dir, "..data_tmp"), path.join(dir, "..data"));
    nowMs += 1_000;

    expect(storeOf(config.current())).toBe("b");
  });

  it.each([
    {
      name: "a file that is no JSON",
      make: () => writeFileSync(file, "hunter2"),
      want: "it is not JSON",
    },
    {
      name: "a file of more than 1 MiB",
      make: () => writeFileSync(file, "{}".padEnd(1024 * 1024 + 5)),
      want: "it has 1048577 bytes, expected at most 1048576",
    },
    {
      name: "a directory",
      make: () => mkdirSync(file),
      want: "it is no regular file",
    },
    {
      name: "a FIFO, without waiting for it",
      make: () => void execFileSync("mkfifo", [file]),
      want: "it is no regular file",
    },
    {
      name: "a link to itself",
      make: () => symlinkSync("config.json", file),
      want: "it cannot be read (ELOOP)",
    },
  ])("refuses $name until it is another one", ({ make, want }) => {
    make();
    const config = createDockerConfigFile(file, isPlainHttp, clock);
    const refusal = { kind: "error", message: want };

    expect(config.current()).toEqual(refusal);
    nowMs += 1_000;
    expect(config.current()).toEqual(refusal);
    rmSync(file, { recursive: true });
    write("a");
    nowMs += 1_000;
    expect(storeOf(config.current())).toBe("a");
  });
});

function write(credsStore: string): void {
  // As another file, so that its state is another one however coarse the clock of the file system.
  const next = path.join(dir, `next-${credsStore}`);
  writeFileSync(next, JSON.stringify({ credsStore }));
  renameSync(next, file);
}

function storeOf(
  config: ReturnType<ReturnType<typeof createDockerConfigFile>["current"]>,
): string | null | undefined {
  if (config.kind === "error") throw new Error(config.message);
  return config.value?.credsStore;
}
