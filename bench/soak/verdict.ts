import { ascending, percentile } from "../percentile.js";
import { formatUs, judge, type Row } from "../table.js";
import type { ProbeFigures } from "./health-probe.js";
import type { LoadOutcome } from "./load.js";
import type { ReloadCount } from "./reloads.js";

/** What a soak measured. */
export interface SoakFigures {
  readonly wantedCalls: number;
  /** Of the calls over all digests, and of those beside the health checks. */
  readonly spread: LoadOutcome;
  readonly concurrent: LoadOutcome;
  /** After the warm-up, in the order they were taken. */
  readonly residentMb: readonly number[];
  readonly swaps: number;
  readonly certificates: ReloadCount;
  readonly policy: ReloadCount;
  readonly probe: ProbeFigures;
  /** `null` when a signal ended the function. */
  readonly exitCode: number | null;
}

/** What the figures must keep. */
export interface SoakLimits {
  readonly maxGrowthPercent: number;
  readonly maxHealthMs: number;
}

/** Medians of the first and the last quarter of the samples, and how much more the last one is. */
export interface Growth {
  readonly firstMb: number;
  readonly lastMb: number;
  readonly percent: number;
}

/** Fewer than four samples, and samples that are no numbers, make it NaN. */
export function growthOf(samplesMb: readonly number[]): Growth {
  const quarter = Math.floor(samplesMb.length / 4);
  if (quarter === 0 || samplesMb.some(Number.isNaN)) {
    return { firstMb: NaN, lastMb: NaN, percent: NaN };
  }
  const firstMb = median(samplesMb.slice(0, quarter));
  const lastMb = median(samplesMb.slice(-quarter));
  return { firstMb, lastMb, percent: ((lastMb - firstMb) * 100) / firstMb };
}

/** The report; every row has a target. */
export function judgeSoak(
  figures: SoakFigures,
  limits: SoakLimits,
): readonly Row[] {
  const { spread, concurrent, swaps, probe, exitCode } = figures;
  const errors = spread.errors + concurrent.errors + probe.errors;
  const growth = growthOf(figures.residentMb);
  const healthUs = percentile(probe.healthUs, 99);
  const echoUs = percentile(probe.echoUs, 99);
  return [
    {
      ...plain("calls over all digests", spread.calls),
      target: judge(spread.calls, atLeast(figures.wantedCalls, "calls")),
    },
    {
      ...plain("calls, 100 at once on one connection", concurrent.calls),
      target: judge(concurrent.calls, atLeast(100, "calls")),
    },
    {
      ...plain("calls and health checks that failed", errors),
      target: judge(errors, atMost(0, "errors")),
    },
    reloadRow("certificates", figures.certificates, swaps),
    reloadRow("operator policy", figures.policy, swaps),
    {
      what: "resident set, last quarter",
      ours: `${growth.lastMb.toFixed(0)} MB`,
      beside: `first quarter ${growth.firstMb.toFixed(0)} MB`,
      ratio: `${growth.percent.toFixed(1)} %`,
      target: judge(
        growth.percent,
        atMost(limits.maxGrowthPercent, "% growth"),
      ),
    },
    {
      what: "gRPC health beside 100 calls at once, p99",
      ours: formatUs(healthUs),
      beside: `idle echo ${formatUs(echoUs)}`,
      ratio: `${healthUs < echoUs ? "" : "+"}${formatUs(healthUs - echoUs)}`,
      target: judge(healthUs / 1000, atMost(limits.maxHealthMs, "ms")),
    },
    {
      what: "exit code on SIGTERM",
      ours: exitCode === null ? "none" : exitCode.toString(),
      beside: "",
      ratio: "",
      target: judge(exitCode ?? NaN, atMost(0, "")),
    },
  ];
}

/** Whether every row kept its target. */
export function isMet(rows: readonly Row[]): boolean {
  return rows.every(({ target }) => target.endsWith(": met"));
}

/** Two swaps may come so close to each other that one is never seen; half of them are. */
function reloadRow(what: string, count: ReloadCount, swaps: number): Row {
  const refused = count.refused > 0;
  return {
    ...plain(`reloads of the ${what}`, count.ok),
    beside: `${swaps} swaps, ${count.refused} refused`,
    target: judge(
      refused ? NaN : count.ok,
      atLeast(Math.max(1, Math.floor(swaps / 2)), "and none refused"),
    ),
  };
}

function plain(what: string, ours: number) {
  return { what, ours: ours.toString(), beside: "", ratio: "" };
}

function atMost(limit: number, unit: string) {
  return { kind: "at-most", limit, unit } as const;
}

function atLeast(limit: number, unit: string) {
  return { kind: "at-least", limit, unit } as const;
}

function median(samples: readonly number[]): number {
  return percentile(ascending(samples), 50);
}
