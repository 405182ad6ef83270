import { mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import path from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { sweepRecords } from "../../../../src/loader/store/sweep-records.js";
import { makeDir, recordingLogger } from "./fixtures.js";

const NAMES = ["a", "b", "c", "d"].map((digit) => digit.repeat(64));

let dir: string;
let log: ReturnType<typeof recordingLogger>;

beforeEach(() => {
  dir = path.join(makeDir(), "access");
  log = recordingLogger();
  mkdirSync(dir);
  for (const [age, name] of NAMES.entries()) put(name, age);
  put("salt", 100);
});

/** Last used that many hours ago. */
function put(name: string, ageHours: number): void {
  const filePath = path.join(dir, name);
  writeFileSync(filePath, "{}");
  const atS = Date.now() / 1000 - ageHours * 3600;
  utimesSync(filePath, atS, atS);
}

describe("loader/store/sweep-records", () => {
  it("removes those that were used the longest time ago, and nothing else", async () => {
    expect(await sweepRecords(dir, log.logger, 2)).toBe(2);

    expect(readdirSync(dir).sort()).toEqual([NAMES[0], NAMES[1], "salt"]);
  });

  it("counts pointers, too", async () => {
    put(`${"e".repeat(64)}.json`, 50);

    expect(await sweepRecords(dir, log.logger, 4)).toBe(1);
    expect(readdirSync(dir)).not.toContain(`${"e".repeat(64)}.json`);
  });

  it("removes nothing while there are few", async () => {
    expect(await sweepRecords(dir, log.logger)).toBe(0);
    expect(readdirSync(dir)).toHaveLength(5);
  });

  it("says what keeps it from it, and goes on", async () => {
    expect(await sweepRecords(`${dir}/salt`, log.logger, 0)).toBe(0);

    expect(log.lines).toEqual([
      {
        level: "debug",
        fields: { path: `${dir}/salt`, reason: "ENOTDIR" },
        message: "cannot sweep records",
      },
    ]);
  });
});
