import { availableParallelism } from "node:os";

import { requestFile, type Bench, type Case } from "../bench.js";
import { percentile } from "../percentile.js";
import { fatalIn } from "../response.js";
import {
  startFunction,
  withServers,
  type ServerProcess,
} from "../server-process.js";
import { formatUs, judge, type Row } from "../table.js";

const TIMEOUT_MS = 100;

/**
 * Guests that never return, each cut at `limits.timeout`: how late the caller hears of it. That
 * limit counts a guest's own compute, so four guests that share fewer workers need longer by the
 * clock; the column beside says how much of the lateness that share alone explains.
 */
export const deadline: Case = {
  name: "deadline",
  async run(bench) {
    const file = await requestFile(bench, "spin", bench.guests.spin, {
      timeout: `${TIMEOUT_MS}ms`,
    });
    const workers = Math.max(1, availableParallelism() - 1);
    const server = startFunction({
      moduleDir: bench.moduleDir,
      cacheDir: `${bench.workDir}/deadline`,
      flags: ["--engine-workers", workers.toString()],
    });
    return withServers([server], async ([ours]) => [
      ...rows(1, workers, await spin(bench, ours, file, 1)),
      ...rows(4, workers, await spin(bench, ours, file, 4)),
    ]);
  },
};

/** Latencies of calls that all ended in the fatal result they must end in. */
async function spin(
  bench: Bench,
  ours: ServerProcess | undefined,
  file: string,
  spinners: number,
): Promise<readonly number[]> {
  const address = ours?.address ?? "";
  const [result] = await bench.client.load({
    targets: [{ name: "spin", address, method: "v1", requestFile: file }],
    rounds: 1,
    roundCalls: bench.quick ? 12 : 52,
    warmupCalls: 4,
    concurrency: spinners,
    deadlineMs: 10_000,
    maxDurationMs: 60_000,
  });
  const answer = result?.firstAnswer ?? null;
  if (answer === null || fatalIn(answer) === null) {
    const { codes, firstError } = result ?? {};
    throw new Error(
      `spin: expected a fatal result, got ${JSON.stringify(codes)} ${firstError}`,
    );
  }
  return result?.samplesUs ?? [];
}

function rows(
  spinners: number,
  workers: number,
  samplesUs: readonly number[],
): Row[] {
  const shareUs = Math.max(0, spinners / workers - 1) * TIMEOUT_MS * 1000;
  return [50, 99, 100].map((percent): Row => {
    const lateUs = percentile(samplesUs, percent) - TIMEOUT_MS * 1000;
    const beyondUs = lateUs - shareUs;
    const rank = percent === 100 ? "max" : `p${percent}`;
    return {
      what: `lateness past limits.timeout ${TIMEOUT_MS}ms, spinners: ${spinners}, ${rank}`,
      ours: formatUs(lateUs),
      beside: `share of ${workers} worker(s) ${formatUs(shareUs)}`,
      ratio: `${beyondUs < 0 ? "-" : "+"}${formatUs(Math.abs(beyondUs))}`,
      target:
        percent === 50
          ? ""
          : judge(lateUs / 1000, { kind: "at-most", limit: 20, unit: "ms" }),
    };
  });
}
