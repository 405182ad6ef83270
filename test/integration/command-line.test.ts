import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

import { describe, expect, it } from "vitest";

const PROGRAM = fileURLToPath(new URL("../../dist/main.js", import.meta.url));

/** The built program, as a shell runs it. */
function run(...argv: string[]) {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [PROGRAM, ...argv],
    { encoding: "utf8", env: { PATH: process.env["PATH"] } },
  );
  return { code: status, stdout, stderr };
}

describe("integration/command-line", () => {
  it("takes a mistyped command for one", () => {
    expect(run("validat", "f.yaml", "--xr", "x.yaml")).toEqual({
      code: 2,
      stdout: "",
      stderr: "error: unknown command 'validat'\n(Did you mean validate?)\n",
    });
  });

  it("says that serve takes no argument", () => {
    expect(run("serve", "extra")).toEqual({
      code: 2,
      stdout: "",
      stderr:
        "error: too many arguments for 'serve'. Expected 0 arguments but got 1.\n",
    });
  });

  it("says that serve is the default", () => {
    const { code, stdout, stderr } = run("--help");

    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout.replace(/\s+/gu, " ")).toContain(
      "serve [options] serve composition functions over gRPC; the default, when no command is given",
    );
  });
});
