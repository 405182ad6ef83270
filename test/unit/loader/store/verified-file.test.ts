import {
  appendFileSync,
  existsSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { verifyFile } from "../../../../src/loader/store/verified-file.js";
import { makeDir } from "./fixtures.js";
import { digestOf } from "./store-content.js";

const wanted = digestOf("right");
const nothing = () => undefined;

describe("loader/store/verified-file", () => {
  it("leaves alone what was put in the place of a wrong file meanwhile", async () => {
    const [file, next] = ["file", "next"].map((name) =>
      path.join(makeDir(), name),
    ) as [string, string];
    writeFileSync(file, "wrong");
    writeFileSync(next, "right");

    const result = await verifyFile(file, wanted, Infinity, () =>
      renameSync(next, file),
    );

    expect(result).toEqual({ kind: "mismatch", got: digestOf("wrong") });
    expect(readFileSync(file, "utf8")).toBe("right");
  });

  it("stops reading a file that grows", async () => {
    const file = path.join(makeDir(), "file");
    writeFileSync(file, "right");
    let reads = 0;

    const result = await verifyFile(file, wanted, Infinity, () => {
      reads += 1;
      if (reads < 100) appendFileSync(file, "and more");
    });

    expect(result.kind).toBe("mismatch");
    expect(reads).toBe(2);
    expect(existsSync(file)).toBe(false);
  });

  it("takes a file of exactly the bound, and none above", async () => {
    const file = path.join(makeDir(), "file");
    writeFileSync(file, "right");

    expect(await verifyFile(file, wanted, 5, nothing)).toEqual({
      kind: "ok",
      sizeBytes: 5,
    });
    expect(await verifyFile(file, wanted, 4, nothing)).toEqual({
      kind: "unreadable",
      reason: "more than 4 bytes",
    });
  });
});
