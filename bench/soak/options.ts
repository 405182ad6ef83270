import { parseArgs } from "node:util";

import type { SoakLimits } from "./verdict.js";

/** How long and how hard, and what must be kept. */
export interface SoakOptions extends SoakLimits {
  readonly calls: number;
  readonly maxDurationMs: number;
}

/**
 * Reads the command line: `--requests`, `--minutes`, `--max-growth` (%), `--max-health` (ms).
 * @throws Error naming the flag, what it got, and what it takes
 */
export function parseSoakOptions(argv: readonly string[]): SoakOptions {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      requests: { type: "string", default: "100000" },
      minutes: { type: "string", default: "20" },
      "max-growth": { type: "string", default: "10" },
      "max-health": { type: "string", default: "50" },
    },
  });
  const number = (
    name: keyof typeof values,
    min: number,
    max: number,
  ): number => {
    const text = values[name];
    const value = Number(text);
    if (text.trim() !== "" && min <= value && value <= max) return value;
    throw new Error(`--${name}: expected ${min} to ${max}, got "${text}"`);
  };
  return {
    calls: Math.ceil(number("requests", 1_000, 10_000_000)),
    maxDurationMs: number("minutes", 0.1, 600) * 60_000,
    maxGrowthPercent: number("max-growth", -100, 1_000),
    maxHealthMs: number("max-health", 0, 60_000),
  };
}
