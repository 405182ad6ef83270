import { describe, expect, it } from "vitest";

import {
  growthOf,
  isMet,
  judgeSoak,
  type SoakFigures,
} from "../../../../bench/soak/verdict.js";

describe("bench/soak/verdict", () => {
  it("compares the medians of the last and the first quarter", () => {
    const samplesMb = [100, 1, 102, 104, 500, 500, 500, 500, 120, 122, 999, 1];

    expect(growthOf(samplesMb)).toEqual({
      firstMb: 100,
      lastMb: 122,
      percent: 22,
    });
  });

  it.each([
    { name: "too few samples", samplesMb: [100, 100, 100] },
    { name: "none", samplesMb: [] },
    { name: "one that could not be taken", samplesMb: [1, 1, 1, 1, NaN] },
  ])("gives no growth for $name", ({ samplesMb }) => {
    expect(growthOf(samplesMb).percent).toBeNaN();
  });

  const limits = { maxGrowthPercent: 10, maxHealthMs: 50 };
  const good: SoakFigures = {
    wantedCalls: 1000,
    spread: { calls: 1000, errors: 0, firstError: "" },
    concurrent: { calls: 5000, errors: 0, firstError: "" },
    residentMb: [100, 100, 105, 110],
    swaps: 5,
    certificates: { ok: 2, refused: 0 },
    policy: { ok: 2, refused: 0 },
    // The 99th of a hundred is the one that counts.
    probe: {
      healthUs: [...Array<number>(98).fill(1_000), 50_000, 90_000],
      echoUs: [1_000],
      errors: 0,
    },
    exitCode: 0,
  };

  it("is content with figures at their limits", () => {
    const rows = judgeSoak(good, limits);

    expect(rows.map(({ target }) => target)).toEqual(
      rows.map(() => expect.stringMatching(/: met$/) as string),
    );
    expect(isMet(rows)).toBe(true);
  });

  const failed = { calls: 1000, errors: 1, firstError: "x" };
  it.each([
    { name: "a call too few", spread: { ...good.spread, calls: 999 } },
    { name: "a failed call", spread: failed },
    {
      name: "a failed call of those at once",
      concurrent: { ...failed, calls: 5000 },
    },
    {
      name: "too few calls at once",
      concurrent: { ...good.concurrent, calls: 99 },
    },
    { name: "a failed health check", probe: { ...good.probe, errors: 1 } },
    { name: "no health check", probe: { ...good.probe, healthUs: [] } },
    {
      name: "slow health checks",
      probe: { ...good.probe, healthUs: [50_001] },
    },
    { name: "a leak", residentMb: [100, 100, 105, 111] },
    { name: "no samples", residentMb: [] },
    {
      name: "certificates that are not read again",
      certificates: { ok: 1, refused: 0 },
    },
    {
      name: "refused certificates",
      certificates: { ok: 5, refused: 1 },
    },
    {
      name: "a policy that is not read again",
      policy: { ok: 1, refused: 0 },
    },
    { name: "a refused policy", policy: { ok: 5, refused: 1 } },
    { name: "an exit code", exitCode: 1 },
    { name: "an end by a signal", exitCode: null },
  ])("misses one target for $name", (figures) => {
    const rows = judgeSoak({ ...good, ...figures }, limits);

    expect(rows.filter(({ target }) => target.endsWith("missed"))).toHaveLength(
      1,
    );
    expect(isMet(rows)).toBe(false);
  });

  it("misses both reloads when there was no swap", () => {
    const none = { ok: 0, refused: 0 };

    const rows = judgeSoak(
      { ...good, swaps: 0, certificates: none, policy: none },
      limits,
    );

    expect(rows.filter(({ target }) => target.endsWith("missed"))).toHaveLength(
      2,
    );
  });
});
