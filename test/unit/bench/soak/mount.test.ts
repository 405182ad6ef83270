import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { createMount } from "../../../../bench/soak/mount.js";

describe("bench/soak/mount", () => {
  let dir: string;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), "soak-mount-"));
  });
  afterEach(() => rmSync(dir, { recursive: true, force: true }));

  it("changes all files behind links that stay", async () => {
    const mount = await createMount(join(dir, "secret"), { a: "1", b: "2" });
    const read = () =>
      ["a", "b"].map((name) => readFileSync(join(mount.dir, name), "utf8"));
    expect(read()).toEqual(["1", "2"]);

    await mount.swap({ a: "3", b: "4" });

    expect(read()).toEqual(["3", "4"]);
    expect(readlinkSync(join(mount.dir, "a"))).toBe("..data/a");
    expect(readdirSync(mount.dir).sort()).toEqual(["..2", "..data", "a", "b"]);
  });
});
