import { spawnSync } from "node:child_process";
import path from "node:path";

import { describe, expect, it } from "vitest";

const root = path.resolve(import.meta.dirname, "../../..");
const examples = path.join(root, "examples/package");

describe("examples/package", () => {
  it("has a Composition, a composite resource and a policy that validate finds nothing wrong with", () => {
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      [
        ...[path.join(root, "dist/main.js"), "validate"],
        path.join(examples, "composition.yaml"),
        ...["--xr", path.join(examples, "xr.yaml")],
        ...["--sandbox-policy-file", path.join(examples, "policy.cedar")],
        ...["--function-name", "function-wasm"],
      ],
      { encoding: "utf8", env: { PATH: process.env["PATH"] } },
    );

    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toMatch(/1 admitted, 0 refused, 0 warnings\n$/);
  });
});
