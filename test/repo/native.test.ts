import { describe, expect, it } from "vitest";

import { committedFiles, textOf } from "./committed-files.js";

const OLDEST_SAFE_WASMTIME = "48.0.6";

describe("repo/native", () => {
  it.each(["wasmtime", "wasmtime-wasi", "wasmtime-wasi-http"])(
    "locks %s at 48.0.6 or a newer 48: older ones let a component escape",
    (crate) => {
      const versions = lockedVersions(crate);

      expect(versions).toHaveLength(1);
      for (const version of versions) {
        expect(version).toMatch(/^48\./);
        expect(compareVersions(version, OLDEST_SAFE_WASMTIME)).not.toBe(-1);
      }
    },
  );

  it.each([
    { name: "48.0.5", want: -1 },
    { name: "48.0.6", want: 0 },
    { name: "48.0.10", want: 1 },
    { name: "9.99.99", want: -1 },
  ])("knows where $name stands", ({ name, want }) => {
    expect(compareVersions(name, OLDEST_SAFE_WASMTIME)).toBe(want);
  });

  it.each([
    { name: "gc", reason: "no guest needs it, and it is the youngest code" },
    { name: "threads", reason: "shared memory outlives a run" },
    { name: "cache", reason: "it trusts a directory nobody authenticates" },
    { name: "profiling", reason: "it writes files where guests run" },
    {
      name: "default-send-request",
      reason: "a guest could reach the network without being judged",
    },
  ])("asks for no cargo feature $name: $reason", ({ name }) => {
    const manifests = committedFiles().filter((file) =>
      /^native\/.*Cargo\.toml$/.test(file),
    );

    const asking = manifests.filter((file) =>
      features(textOf(file)).includes(name),
    );

    expect(manifests.length).toBeGreaterThan(1);
    expect(asking).toEqual([]);
  });

  it("takes no default features of wasmtime's crates, where those would be", () => {
    const lines = textOf("native/Cargo.toml")
      .split("\n")
      .filter((line) => /^wasmtime[\w-]* = /.test(line));

    expect(lines).toHaveLength(3);
    for (const line of lines) {
      expect(line).toContain("default-features = false");
    }
  });

  it("locks crates of the one public registry only", () => {
    const sources = [
      ...textOf("native/Cargo.lock").matchAll(/^source = "(?<source>.*)"$/gm),
    ].map((match) => match.groups?.["source"]);

    expect(new Set(sources)).toEqual(
      new Set(["registry+https://github.com/rust-lang/crates.io-index"]),
    );
  });
});

function lockedVersions(crate: string): string[] {
  const lock = textOf("native/Cargo.lock");
  const entry = new RegExp(
    `^name = "${crate}"\\nversion = "(?<version>[^"]+)"$`,
    "gm",
  );
  return [...lock.matchAll(entry)].map(
    (match) => match.groups?.["version"] ?? "",
  );
}

/** Everything named in a `features = […]` list of a Cargo manifest. */
function features(manifest: string): string[] {
  const withoutComments = manifest.replace(/#.*$/gm, "");
  return [...withoutComments.matchAll(/features\s*=\s*\[(?<list>[^\]]*)\]/g)]
    .flatMap((match) => match.groups?.["list"]?.split(",") ?? [])
    .map((name) => name.trim().replace(/^"|"$/g, ""));
}

function compareVersions(a: string, b: string): -1 | 0 | 1 {
  const [left, right] = [a, b].map((text) => text.split(".").map(Number));
  for (const index of [0, 1, 2]) {
    const difference = (left?.[index] ?? 0) - (right?.[index] ?? 0);
    if (difference !== 0) {
      return difference < 0 ? -1 : 1;
    }
  }
  return 0;
}
