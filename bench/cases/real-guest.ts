import { join } from "node:path";

import {
  BIG_TIMEOUT,
  FIRST_CALL_MS,
  EXAMPLE_CONFIG,
  requestFile,
  type Bench,
  type Case,
} from "../bench.js";
import { startDirect, type DirectProcess } from "../direct-process.js";
import type { Guest } from "../guests.js";
import { allGood } from "../load-client.js";
import { ascending, percentile } from "../percentile.js";
import {
  startFunction,
  withServers,
  type ServerProcess,
} from "../server-process.js";
import { formatRatio, formatUs, judge, type Row } from "../table.js";

/** An example module, warm: a served run beside the same run straight through the engine. */
export function realGuest(guest: Guest): Case {
  return {
    name: `real-guest:${guest.name}`,
    run: (bench) => measure(bench, guest),
  };
}

async function measure(bench: Bench, guest: Guest): Promise<Row[]> {
  const file = await requestFile(bench, guest.name, guest, {
    timeout: BIG_TIMEOUT,
    config: EXAMPLE_CONFIG,
  });
  const cacheDir = join(bench.workDir, `real-${guest.name}`);
  const flags = ["--trust-cache-dir"];
  return withServers(
    [startFunction({ moduleDir: bench.moduleDir, cacheDir, flags })],
    async ([ours]) => {
      if (ours === undefined) return [];
      bench.say(
        `  compiling ${guest.name} (${(guest.sizeBytes / 1e6).toFixed(1)} MB)`,
      );
      await calls(bench, ours, file, 1);
      const modulePath = join(bench.moduleDir, guest.path);
      const direct = await startDirect({
        modulePath,
        requestFile: file,
        cacheDir,
        artifactKeyFile: null,
      });
      try {
        const { servedUs, directUs } = await alternate(
          bench,
          ours,
          direct,
          file,
        );
        return [row(guest, servedUs, directUs)];
      } finally {
        await direct.stop();
      }
    },
  );
}

/** Rounds of both, one after the other, so that they meet the same noise. */
async function alternate(
  bench: Bench,
  ours: ServerProcess,
  direct: DirectProcess,
  file: string,
): Promise<{ servedUs: number[]; directUs: number[] }> {
  const servedUs: number[] = [];
  const directUs: number[] = [];
  await direct.run(10);
  await calls(bench, ours, file, 10);
  for (let round = 0; round < (bench.quick ? 2 : 10); round++) {
    servedUs.push(...(await calls(bench, ours, file, 30)));
    directUs.push(...(await direct.run(30)));
  }
  return { servedUs: ascending(servedUs), directUs: ascending(directUs) };
}

async function calls(
  bench: Bench,
  ours: ServerProcess,
  file: string,
  count: number,
): Promise<readonly number[]> {
  const results = await bench.client.load({
    targets: [
      { name: "guest", address: ours.address, method: "v1", requestFile: file },
    ],
    rounds: 1,
    roundCalls: count,
    warmupCalls: 0,
    concurrency: 1,
    deadlineMs: FIRST_CALL_MS,
    maxDurationMs: FIRST_CALL_MS,
  });
  return allGood(results)[0]?.samplesUs ?? [];
}

function row(
  guest: Guest,
  servedUs: readonly number[],
  directUs: readonly number[],
): Row {
  const [served, direct] = [percentile(servedUs, 50), percentile(directUs, 50)];
  const judged = guest.name === "go-sdk";
  return {
    what: `warm ${guest.name} (${(guest.sizeBytes / 1e6).toFixed(1)} MB), p50`,
    ours: formatUs(served),
    beside: `engine alone ${formatUs(direct)}`,
    ratio: formatRatio(served / direct),
    target: judged
      ? judge(served / direct, {
          kind: "at-most",
          limit: 1.1,
          unit: "× engine alone",
        })
      : "",
  };
}
