import { requestFile, type Bench, type Case } from "../bench.js";
import { allGood } from "../load-client.js";
import { ascending, percentile } from "../percentile.js";
import {
  startFunction,
  withServers,
  type ServerProcess,
} from "../server-process.js";
import { formatRatio, formatUs, judge, type Row } from "../table.js";

const SPINNERS = 4;

/** A tiny guest, one call at a time, alone and beside four guests that never return. */
export const besideSpinners: Case = {
  name: "beside-spinners",
  async run(bench) {
    const tiny = await requestFile(bench, "echo", bench.guests.echo);
    const spin = await requestFile(bench, "spin", bench.guests.spin);
    const cacheDir = `${bench.workDir}/beside`;

    const { alone, beside } = await withServers(
      [startFunction({ moduleDir: bench.moduleDir, cacheDir })],
      ([ours]) => alternate(bench, ours, tiny, spin),
    );

    return [50, 99].map((percent): Row => {
      const [oursUs, aloneUs] = [
        percentile(beside, percent),
        percentile(alone, percent),
      ];
      return {
        what: `tiny-v1 beside ${SPINNERS} spinners, p${percent}`,
        ours: formatUs(oursUs),
        beside: `alone ${formatUs(aloneUs)}`,
        ratio: formatRatio(oursUs / aloneUs),
        target:
          percent === 99
            ? judge(oursUs / aloneUs, {
                kind: "at-most",
                limit: 3,
                unit: "× alone",
              })
            : "",
      };
    });
  },
};

async function alternate(
  bench: Bench,
  ours: ServerProcess | undefined,
  tiny: string,
  spin: string,
): Promise<{ alone: number[]; beside: number[] }> {
  const address = ours?.address ?? "";
  const alone: number[] = [];
  const beside: number[] = [];
  await tinyCalls(bench, address, tiny, 500);
  for (let round = 0; round < (bench.quick ? 1 : 4); round++) {
    alone.push(...(await tinyCalls(bench, address, tiny, 500)));
    const [quick] = await Promise.all([
      tinyCalls(bench, address, tiny, 500),
      spinners(bench, address, spin),
    ]);
    beside.push(...quick);
  }
  return { alone: ascending(alone), beside: ascending(beside) };
}

async function tinyCalls(
  bench: Bench,
  address: string,
  requestFile: string,
  count: number,
): Promise<readonly number[]> {
  const results = await bench.client.load({
    targets: [{ name: "tiny", address, method: "v1", requestFile }],
    rounds: 1,
    roundCalls: count,
    warmupCalls: 0,
    concurrency: 1,
    deadlineMs: 10_000,
    maxDurationMs: SPIN_FOR_MS,
  });
  return allGood(results)[0]?.samplesUs ?? [];
}

const SPIN_FOR_MS = 4000;

/** Keeps four runs spinning, for at least as long as the quick calls beside them may take. */
async function spinners(
  bench: Bench,
  address: string,
  requestFile: string,
): Promise<void> {
  await bench.client.load({
    targets: [{ name: "spin", address, method: "v1", requestFile }],
    rounds: 1,
    roundCalls: 100_000,
    warmupCalls: 0,
    concurrency: SPINNERS,
    deadlineMs: 10_000,
    maxDurationMs: SPIN_FOR_MS + 1000,
  });
}
