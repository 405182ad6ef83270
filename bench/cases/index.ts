/**
 * The benchmarks, one per file, in the order of the report.
 *
 * Owns: which calls are made and what their figures mean. Never: prints, starts the load client or
 * decides where files lie (../main.ts).
 */
import type { Case } from "../bench.js";
import type { Guests } from "../guests.js";
import { admission } from "./admission.js";
import { besideSpinners } from "./beside-spinners.js";
import { deadline } from "./deadline.js";
import { load } from "./load.js";
import { loader } from "./loader.js";
import { memory } from "./memory.js";
import { perMegabyte } from "./per-megabyte.js";
import { realGuest } from "./real-guest.js";
import { throughput } from "./throughput.js";
import { warm } from "./warm.js";

/** Every benchmark there is for these guests, in the order of the report. */
export function casesFor(guests: Guests): readonly Case[] {
  const { echo, echoComponent, built } = guests;
  return [
    warm,
    throughput,
    perMegabyte,
    admission,
    loader,
    ...built.map(realGuest),
    ...[echo, echoComponent, ...built].map(load),
    deadline,
    besideSpinners,
    memory,
  ];
}
