/**
 * The benchmarks, one per file, in the order of the report.
 *
 * Owns: which calls are made and what their figures mean. Never: prints, starts the load client or
 * decides where files lie (../run.ts).
 */
import type { Case } from "../bench.js";
import { besideSpinners } from "./beside-spinners.js";
import { deadline } from "./deadline.js";
import { load } from "./load.js";
import { memory } from "./memory.js";
import { perMegabyte } from "./per-megabyte.js";
import { realGuest } from "./real-guest.js";
import { throughput } from "./throughput.js";
import { warm } from "./warm.js";

/** In the order of the report. */
export const cases: readonly Case[] = [
  warm,
  throughput,
  perMegabyte,
  realGuest,
  load,
  deadline,
  besideSpinners,
  memory,
];
