import { describe, expect, it } from "vitest";

import {
  parseDurationMs,
  parseNanos,
  parseSize,
  type SizeBounds,
} from "../../src/flag-values.js";

const kib = 1024;
const mib = 1024 * kib;
const gib = 1024 * mib;

describe("flag-values parseSize", () => {
  // So wide that only the notation decides.
  const wide: SizeBounds = { minBytes: kib, maxBytes: 8 * gib };
  const megabytes = parseSize("MB", wide);

  it.each([
    { text: "1000", bytes: 1000 * mib, shown: "1000Mi" },
    { text: "007", bytes: 7 * mib, shown: "007Mi" },
    { text: "1000Mi", bytes: 1000 * mib },
    { text: "0.5Gi", bytes: 512 * mib },
    { text: "1.5Gi", bytes: 1536 * mib },
    { text: ".5Gi", bytes: 512 * mib },
    { text: "+1Gi", bytes: gib },
    { text: "64k", bytes: 64_000 },
    { text: "100M", bytes: 100_000_000 },
    { text: "2G", bytes: 2_000_000_000 },
    { text: "5000000m", bytes: 5000 },
  ])("reads $text, of MB, as $bytes bytes", ({ text, bytes, shown }) => {
    expect(megabytes(text)).toEqual({
      kind: "ok",
      value: { bytes, text: shown ?? text },
    });
  });

  it("reads a whole number of KB", () => {
    expect(parseSize("KB", wide)("1000")).toEqual({
      kind: "ok",
      value: { bytes: 1000 * kib, text: "1000Ki" },
    });
  });

  it.each([
    { text: "4096.0", reason: "bytes, beside whole numbers of MB" },
    { text: "4096.", reason: "bytes, beside whole numbers of MB" },
    { text: "1e8", reason: "bytes, beside whole numbers of MB" },
    { text: "1E8", reason: "bytes, beside whole numbers of MB" },
    { text: "1e+8", reason: "bytes, beside whole numbers of MB" },
    { text: "+4096", reason: "bytes, beside whole numbers of MB" },
    { text: "1.5", reason: "no whole number of MB" },
    { text: "1e", reason: "neither exponent nor suffix" },
    { text: "1e3Mi", reason: "both exponent and suffix" },
    { text: "1MB", reason: "no suffix of Kubernetes" },
    { text: "Mi", reason: "no number" },
    { text: "", reason: "nothing" },
    { text: " 64", reason: "a blank" },
    { text: "-64", reason: "below 0" },
    { text: "0", reason: "too little" },
    { text: "1023m", reason: "too little" },
    { text: "8193", reason: "too much" },
    { text: "1Ei", reason: "too much" },
  ])("refuses $text: $reason", ({ text }) => {
    expect(megabytes(text)).toEqual({
      kind: "error",
      expected:
        "MB as a whole number or a quantity with a suffix such as 64Mi, from 1Ki to 8192 MB",
    });
  });

  const orZero = parseSize("MB", {
    minBytes: mib,
    maxBytes: gib,
    orZero: true,
  });

  it.each(["0", "00", "0Mi", "0k", "0.0Gi"])("takes %s for 0", (text) => {
    expect(orZero(text)).toMatchObject({ kind: "ok", value: { bytes: 0 } });
  });

  it.each([
    { text: "1", bytes: mib },
    { text: "1Mi", bytes: mib },
    { text: "1024", bytes: gib },
    { text: "1Gi", bytes: gib },
  ])("reads the bound $text", ({ text, bytes }) => {
    expect(orZero(text)).toMatchObject({ kind: "ok", value: { bytes } });
  });

  it.each([
    { text: "0.0", reason: "no suffix" },
    { text: "1n", reason: "rounded up, not 0" },
    { text: "1023Ki", reason: "between 0 and the lower bound" },
    { text: "1M", reason: "between 0 and the lower bound" },
    { text: "-1Mi", reason: "below 0" },
    { text: "1025", reason: "above the upper bound" },
  ])("refuses $text, where 0 has a meaning: $reason", ({ text }) => {
    expect(orZero(text)).toEqual({
      kind: "error",
      expected:
        "MB as a whole number or a quantity with a suffix such as 64Mi, 0 or from 1 to 1024 MB",
    });
  });

  it("shows bounds in the flag's own unit where they are whole", () => {
    const bounds = { minBytes: 64 * kib, maxBytes: 64 * mib };

    expect(parseSize("KB", bounds)("x")).toMatchObject({
      expected: expect.stringMatching(/, from 64 to 65536 KB$/) as string,
    });
    expect(parseSize("MB", bounds)("x")).toMatchObject({
      expected: expect.stringMatching(/, from 64Ki to 64 MB$/) as string,
    });
  });
});

describe("flag-values durations", () => {
  it("takes the longest that it names, and nothing above", () => {
    const expected = "a duration such as 10m or 1h, from 0 to 87840h";

    expect(parseDurationMs("87840h")).toEqual({
      kind: "ok",
      value: 87_840 * 3_600_000,
    });
    for (const text of ["87840h0m0.001s", "-1ns", "3000000h"])
      expect(parseDurationMs(text)).toEqual({ kind: "error", expected });
  });

  it("takes what Go takes in nanoseconds, and names it in hours", () => {
    const expected = "a duration such as 60s or 5m, from 0 to 2562047h";

    expect(parseNanos("2562047h")).toEqual({
      kind: "ok",
      value: 2_562_047n * 3_600_000_000_000n,
    });
    for (const text of ["2562048h", "-1ns"])
      expect(parseNanos(text)).toEqual({ kind: "error", expected });
  });
});
