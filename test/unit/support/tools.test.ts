import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import type * as Tools from "../../support/tools.js";

let dir: string;
let missingTool: typeof Tools.missingTool;
const warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), "tools-test-"));
  vi.stubEnv("PATH", dir);
  vi.stubEnv("CI", undefined);
  warn.mockClear();
  vi.resetModules();
  ({ missingTool } = await import("../../support/tools.js"));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(dir, { recursive: true, force: true });
});

function install(tool: Tools.Tool, script: string): void {
  writeFileSync(join(dir, tool), `#!/bin/sh\n${script}\n`);
  chmodSync(join(dir, tool), 0o700);
}

describe("support/tools", () => {
  it.each([
    { tool: "go", want: "go is not installed" },
    { tool: "docker-registry", want: "docker-registry is not installed" },
    { tool: "openssl", want: "openssl is not installed" },
    {
      tool: "clang",
      want: "there is no clang that links for wasm32-wasi",
    },
  ] as const)("says once that there is no $tool", ({ tool, want }) => {
    expect(missingTool(tool)).toBe(true);
    expect(missingTool(tool)).toBe(true);

    expect(warn.mock.calls).toEqual([
      [`${want}: the tests that need it are skipped`],
    ]);
  });

  it.each(["go", "clang", "docker-registry", "openssl"] as const)(
    "finds %s",
    (tool) => {
      install(tool, "exit 0");

      expect(missingTool(tool)).toBe(false);

      expect(warn).not.toHaveBeenCalled();
    },
  );

  it("takes a clang that cannot link for none", () => {
    install("clang", 'echo "unable to find library -lc" >&2; exit 1');

    expect(missingTool("clang")).toBe(true);
  });

  it.each(["true", ""])("skips nothing in CI (CI=%j)", (value) => {
    vi.stubEnv("CI", value);

    expect(missingTool("go")).toBe(false);

    expect(warn).not.toHaveBeenCalled();
  });
});
