import { execFile } from "node:child_process";
import { promisify } from "node:util";

import { requestFile, type Bench, type Case } from "../bench.js";
import { variants } from "../guests.js";
import { allGood } from "../load-client.js";
import { startFunction, withServers } from "../server-process.js";
import { judge, type Row } from "../table.js";

const DIGESTS = 50;

/** Many calls over many digests: how far the resident set grows after the first tenth of them. */
export const memory: Case = {
  name: "memory",
  async run(bench) {
    const guests = await variants(bench.moduleDir, bench.guests.echo, DIGESTS);
    const files = await Promise.all(
      guests.map((guest) => requestFile(bench, guest.name, guest)),
    );
    const cacheDir = `${bench.workDir}/memory`;
    const callsInAll = bench.quick ? 10_000 : 100_000;

    return withServers(
      [startFunction({ moduleDir: bench.moduleDir, cacheDir })],
      async ([ours]) => {
        const address = ours?.address ?? "";
        const pid = ours?.pid ?? 0;
        await spread(bench, address, files, callsInAll / 10);
        const beforeMb = await residentMb(pid);
        await spread(bench, address, files, (callsInAll / 10) * 9);
        const afterMb = await residentMb(pid);

        const growth = (afterMb / beforeMb - 1) * 100;
        const row: Row = {
          what: `resident set after ${callsInAll} calls over ${DIGESTS} digests`,
          ours: `${afterMb.toFixed(0)} MB`,
          beside: `after a tenth ${beforeMb.toFixed(0)} MB`,
          ratio: `${growth.toFixed(1)} %`,
          target: judge(growth, {
            kind: "at-most",
            limit: 10,
            unit: "% growth",
          }),
        };
        return [row];
      },
    );
  },
};

async function spread(
  bench: Bench,
  address: string,
  files: readonly string[],
  calls: number,
): Promise<void> {
  const roundCalls = 20;
  const results = await bench.client.load({
    targets: files.map((file, index) => ({
      name: `digest-${index}`,
      address,
      method: "v1",
      requestFile: file,
    })),
    rounds: Math.ceil(calls / files.length / roundCalls),
    roundCalls,
    warmupCalls: 0,
    concurrency: 10,
    deadlineMs: 30_000,
    maxDurationMs: 300_000,
  });
  allGood(results);
}

async function residentMb(pid: number): Promise<number> {
  const { stdout } = await promisify(execFile)("ps", [
    "-o",
    "rss=",
    "-p",
    pid.toString(),
  ]);
  return Number(stdout.trim()) / 1024;
}
