import { readFileSync } from "node:fs";

/** Samples of a process's resident set. */
export interface ResidentSampler {
  /** In the order they were taken; NaN for each that could not be. */
  samplesMb(): readonly number[];
  /** The newest one, dropped or not; NaN without any. */
  latestMb(): number;
  /** Drops the samples so far. */
  forget(): void;
  stop(): void;
}

const EVERY_MS = 100;

/** Samples the resident set of `pid` from /proc until it is stopped. */
export function sampleResident(pid: number): ResidentSampler {
  let samplesMb: number[] = [];
  let latestMb = NaN;
  const timer = setInterval(() => {
    latestMb = residentMb(pid);
    samplesMb.push(latestMb);
  }, EVERY_MS);
  return {
    samplesMb: () => samplesMb,
    latestMb: () => latestMb,
    forget() {
      samplesMb = [];
    },
    stop() {
      clearInterval(timer);
    },
  };
}

/** NaN when there is no such process. */
function residentMb(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
  } catch {
    return NaN;
  }
}
