import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { type Machine, setup } from "../../../scripts/lib/setup.mjs";

const OLD = new Date("2020-01-01T00:00:00Z");

let scratch: string;

beforeEach(() => {
  scratch = mkdtempSync(path.join(os.tmpdir(), "setup-test-"));
});

afterEach(() => {
  rmSync(scratch, { recursive: true, force: true });
});

describe("scripts/setup", () => {
  it("installs, builds the addon and compiles once, then does nothing until something changes", async () => {
    const clone = newClone("a");

    await setup(clone.machine, { install: true });

    expect(clone.calls()).toEqual(["npm ci --include=dev", "cargo", "tsc"]);
    expect(clone.read("build/native/wasmtime-node.node")).toBe("addon: one");
    expect(clone.read("build/native/wasmtime-compile")).toBe("compiler");
    expect(clone.mode("build/native/wasmtime-compile")).toBe(0o755);
    expect(clone.mode("dist/main.js")).toBe(0o755);

    await setup(clone.machine, { install: true });

    expect(clone.calls()).toEqual([]);
  });

  it.each([
    { name: "package-lock.json", want: ["npm ci --include=dev", "tsc"] },
    { name: "native/engine/src/lib.rs", want: ["cargo"] },
    { name: "native/Cargo.lock", want: ["cargo"] },
    { name: "src/main.ts", want: ["tsc"] },
    { name: "tsconfig.build.json", want: ["tsc"] },
    { name: "README.md", want: [] },
  ])("redoes only what a change of $name asks for", async ({ name, want }) => {
    const clone = newClone("a");
    await setup(clone.machine, { install: true });
    clone.calls();

    clone.write(name, name.endsWith(".json") ? lockFile("2.0.0") : "two");
    await setup(clone.machine, { install: true });

    expect(clone.calls()).toEqual(want);
  });

  it.each(["node_modules", "dist", "build"])(
    "makes %s again when it was deleted",
    async (dir) => {
      const clone = newClone("a");
      await setup(clone.machine, { install: true });

      clone.remove(dir);
      await setup(clone.machine, { install: true });

      expect(clone.exists("node_modules/.package-lock.json")).toBe(true);
      expect(clone.exists("dist/main.js")).toBe(true);
      expect(clone.read("build/native/wasmtime-node.node")).toBe("addon: one");
    },
  );

  it("installs again when an install was cut short", async () => {
    const clone = newClone("a");
    clone.write("node_modules/half/index.js", "");

    await setup(clone.machine, { install: true });

    expect(clone.calls()).toContain("npm ci --include=dev");
  });

  it("leaves node_modules to the caller when told so", async () => {
    const clone = newClone("a");

    await expect(setup(clone.machine, { install: false })).rejects.toThrow(
      /^node_modules is missing or incomplete: run npm ci first$/,
    );

    expect(clone.calls()).toEqual([]);
  });

  it("builds from the workspace, locked, without a target triple, in the shared directory", async () => {
    const clone = newClone("a", { CARGO_BUILD_TARGET: "wasm32-wasip1" });

    await setup(clone.machine, { install: true });

    const manifest = path.join(clone.machine.root, "native/Cargo.toml");
    expect(readFileSync(path.join(scratch, "cargo-call"), "utf8")).toBe(
      `build --release --locked --workspace --manifest-path ${manifest}\n` +
        `CARGO_TARGET_DIR=${scratch}/cache/function-wasm/cargo CARGO_BUILD_TARGET=\n`,
    );
  });

  it.each([
    {
      name: "CARGO_TARGET_DIR",
      env: (dir: string) => ({ CARGO_TARGET_DIR: `${dir}/mine` }),
      want: "mine",
    },
    {
      name: "XDG_CACHE_HOME",
      env: (dir: string) => ({ XDG_CACHE_HOME: `${dir}/xdg` }),
      want: "xdg/function-wasm/cargo",
    },
    {
      name: "HOME when XDG_CACHE_HOME is relative",
      env: (dir: string) => ({ XDG_CACHE_HOME: "x", HOME: `${dir}/home` }),
      want: "home/.cache/function-wasm/cargo",
    },
  ])("keeps cargo's output where $name says", async ({ env, want }) => {
    const clone = newClone("a", env(scratch));

    await setup(clone.machine, { install: true });

    const built = path.join(scratch, want, "release/libwasmtime_node.so");
    expect(existsSync(built)).toBe(true);
  });

  it("takes a finished build of the same sources, even where no Rust is", async () => {
    const first = newClone("a");
    await setup(first.machine, { install: true });
    const second = newClone("b");
    removeTool("cargo");
    removeTool("rustc");
    second.calls();

    await setup(second.machine, { install: true });

    expect(second.calls()).toEqual(["npm ci --include=dev", "tsc"]);
    expect(second.read("build/native/wasmtime-node.node")).toBe("addon: one");
  });

  it("makes cargo see what differs from the clone that was built before", async () => {
    const first = newClone("a");
    await setup(first.machine, { install: true });
    const second = newClone("b");
    second.write("native/engine/src/lib.rs", "two");
    for (const file of ["native/engine/src/lib.rs", "native/Cargo.toml"]) {
      utimesSync(path.join(second.machine.root, file), OLD, OLD);
    }

    await setup(second.machine, { install: true });

    expect(second.read("build/native/wasmtime-node.node")).toBe("addon: two");
    expect(second.touchedAt("native/engine/src/lib.rs")).toBeGreaterThan(
      OLD.getTime(),
    );
    expect(second.touchedAt("native/Cargo.toml")).toBe(OLD.getTime());
  });

  it("touches the changed files again after a build that failed", async () => {
    const clone = newClone("a");
    await setup(clone.machine, { install: true });
    const file = "native/engine/src/lib.rs";
    clone.write(file, "broken");
    await expect(setup(clone.machine, { install: true })).rejects.toThrow(
      /^cargo build failed with exit code 101: cargo build /,
    );
    expect(clone.read("build/native/wasmtime-node.node")).toBe("addon: one");

    clone.write(file, "three");
    utimesSync(path.join(clone.machine.root, file), OLD, OLD);
    await setup(clone.machine, { install: true });

    expect(clone.touchedAt(file)).toBeGreaterThan(OLD.getTime());
    expect(clone.read("build/native/wasmtime-node.node")).toBe("addon: three");
  });

  it("lets two clones with different sources build at the same time", async () => {
    const first = newClone("a");
    const second = newClone("b");
    second.write("native/engine/src/lib.rs", "two");

    await Promise.all([
      setup(first.machine, { install: true }),
      setup(second.machine, { install: true }),
    ]);

    expect(first.read("build/native/wasmtime-node.node")).toBe("addon: one");
    expect(second.read("build/native/wasmtime-node.node")).toBe("addon: two");
  });

  it.each([
    {
      name: "an old Node",
      arrange: (clone: Clone) => {
        clone.machine.nodeVersion = "20.18.3";
      },
      want: /^Node is too old: expected 20\.19 or newer, found 20\.18\.3; get a newer one from .*$/,
    },
    {
      name: "no cargo",
      arrange: () => {
        removeTool("cargo");
      },
      want: /^cargo is missing: Rust 1\.95 or newer is needed, install it from .*$/,
    },
    {
      name: "an old rustc",
      arrange: () => {
        writeTool("rustc", "echo 'rustc 1.94.1 (abc 2026-01-01)'");
      },
      want: /^rustc is too old: expected 1\.95 or newer, found 1\.94\.1; .*$/,
    },
    {
      name: "no C linker",
      arrange: () => {
        removeTool("cc");
      },
      want: /^a C linker is missing: cc is not on the PATH, get it with .*$/,
    },
    {
      name: "nothing at all, one line for each",
      arrange: () => {
        removeTool("cargo");
        removeTool("rustc");
        removeTool("cc");
      },
      want: /^cargo is missing: .*\nrustc is missing: .*\na C linker is missing: .*$/,
    },
    {
      name: "another platform",
      arrange: (clone: Clone) => {
        clone.machine.platform = "win32";
      },
      want: /^the native addon builds on linux and darwin only, found win32$/,
    },
  ])("says what to do about $name", async ({ arrange, want }) => {
    const clone = newClone("a");
    arrange(clone);

    await expect(setup(clone.machine, { install: true })).rejects.toThrow(want);

    expect(clone.calls()).not.toContain("cargo");
    expect(clone.exists("build")).toBe(false);
  });

  it("says at the start how long a first build takes", async () => {
    const clone = newClone("a");

    await setup(clone.machine, { install: true });

    expect(clone.log).toContainEqual(
      expect.stringMatching(/first time this takes about \d+ minutes/),
    );
  });
});

interface Clone {
  machine: Machine;
  log: string[];
  /** The tools that ran since the last call. */
  calls(): string[];
  read(file: string): string;
  write(file: string, text: string): void;
  remove(file: string): void;
  exists(file: string): boolean;
  mode(file: string): number;
  touchedAt(file: string): number;
}

/** A clone of a small project, on a machine whose tools write down that they ran. */
function newClone(name: string, env: Record<string, string> = {}): Clone {
  const root = path.join(scratch, name);
  const at = (file: string): string => path.join(root, file);
  const log: string[] = [];
  const clone: Clone = {
    machine: {
      root,
      env: { PATH: toolDir(), XDG_CACHE_HOME: `${scratch}/cache`, ...env },
      nodeVersion: "20.19.0",
      platform: "linux",
      arch: "x64",
      log: (line) => log.push(line),
    },
    log,
    calls: () => {
      const file = at("calls");
      const lines = existsSync(file) ? readFileSync(file, "utf8") : "";
      rmSync(file, { force: true });
      return lines.split("\n").filter((line) => line !== "");
    },
    read: (file) => readFileSync(at(file), "utf8").trim(),
    write: (file, text) => {
      mkdirSync(path.dirname(at(file)), { recursive: true });
      writeFileSync(at(file), text);
    },
    remove: (file) => {
      rmSync(at(file), { recursive: true });
    },
    exists: (file) => existsSync(at(file)),
    mode: (file) => statSync(at(file)).mode & 0o777,
    touchedAt: (file) => statSync(at(file)).mtimeMs,
  };
  clone.write("package-lock.json", lockFile("1.0.0"));
  clone.write("tsconfig.json", "{}");
  clone.write("tsconfig.build.json", "{}");
  clone.write("native/Cargo.toml", "[workspace]");
  clone.write("native/Cargo.lock", "[[package]]\n[[package]]\n");
  clone.write("native/engine/src/lib.rs", "one");
  clone.write("src/main.ts", "one");
  writeTools();
  return clone;
}

function lockFile(version: string): string {
  const entry = { version, integrity: `sha512-${version}` };
  return JSON.stringify({
    packages: {
      "": { version: "0.0.0" },
      "node_modules/needed": entry,
      "node_modules/for-another-platform": { ...entry, optional: true },
    },
  });
}

function writeTools(): void {
  mkdirSync(toolDir(), { recursive: true });
  writeTool("rustc", "echo 'rustc 1.95.0 (abc 2026-01-01)'");
  writeTool("cc", "echo cc");
  writeFileSync(
    path.join(toolDir(), "tsc"),
    `const fs = require("node:fs");
     fs.appendFileSync("calls", "tsc\\n");
     fs.mkdirSync("dist");
     fs.writeFileSync("dist/main.js", "");`,
  );
  // Each tool's working directory is the clone.
  const installed = lockFile("$v").replaceAll('"', '\\"');
  writeTool(
    "npm",
    `echo "npm $*" >> calls
     /bin/rm -rf node_modules
     /bin/mkdir -p node_modules/typescript/bin
     v=1.0.0; /bin/grep -q 2.0.0 package-lock.json && v=2.0.0
     echo "${installed}" > node_modules/.package-lock.json
     /bin/cp ${scratch}/bin/tsc node_modules/typescript/bin/tsc`,
  );
  // Like the real one, it lets nobody else build in the directory, and holds one output for all.
  writeTool(
    "cargo",
    `if [ "$1" = --version ]; then echo 'cargo 1.95.0 (abc 2026-01-01)'; exit; fi
     echo cargo >> calls
     echo "$*" > ${scratch}/cargo-call
     echo "CARGO_TARGET_DIR=$CARGO_TARGET_DIR CARGO_BUILD_TARGET=$CARGO_BUILD_TARGET" >> ${scratch}/cargo-call
     source=$(/bin/cat native/engine/src/lib.rs)
     [ "$source" = broken ] && exit 101
     /bin/mkdir -p "$CARGO_TARGET_DIR/release"
     echo "addon: $source" > "$CARGO_TARGET_DIR/release/libwasmtime_node.so"
     echo "compiler" > "$CARGO_TARGET_DIR/release/wasmtime-compile"
     /bin/sleep 0.2`,
  );
}

function toolDir(): string {
  return path.join(scratch, "bin");
}

function writeTool(name: string, script: string): void {
  const file = path.join(toolDir(), name);
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
}

function removeTool(name: string): void {
  rmSync(path.join(toolDir(), name));
}
