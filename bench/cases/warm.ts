import { requestFile, type Case } from "../bench.js";
import { ECHO_WHOLE } from "../echo-methods.js";
import { allGood } from "../load-client.js";
import { percentile } from "../percentile.js";
import { startEcho, startFunction, withServers } from "../server-process.js";
import { formatRatio, formatUs, judge, type Row } from "../table.js";

/** Tiny guests of both ABIs, one call at a time, alternating with the echo server call by call. */
export const warm: Case = {
  name: "warm",
  async run(bench) {
    const v1 = await requestFile(bench, "echo", bench.guests.echo);
    const v2 = await requestFile(
      bench,
      "echo-component",
      bench.guests.echoComponent,
    );
    const cacheDir = `${bench.workDir}/warm`;
    const starting = [
      startEcho(),
      startFunction({ moduleDir: bench.moduleDir, cacheDir }),
    ];

    const results = await withServers(starting, ([echo, ours]) =>
      bench.client.load({
        targets: [
          {
            name: "echo",
            address: echo?.address ?? "",
            method: ECHO_WHOLE,
            requestFile: v1,
          },
          {
            name: "tiny-v1",
            address: ours?.address ?? "",
            method: "v1",
            requestFile: v1,
          },
          {
            name: "tiny-v2",
            address: ours?.address ?? "",
            method: "v1",
            requestFile: v2,
          },
        ],
        rounds: bench.quick ? 500 : 5000,
        roundCalls: 1,
        warmupCalls: 500,
        concurrency: 1,
        deadlineMs: 10_000,
        maxDurationMs: 120_000,
      }),
    );

    const [echo, ...guests] = allGood(results);
    return guests.flatMap(({ name, samplesUs }) =>
      [50, 99].map((percent): Row => {
        const oursUs = percentile(samplesUs, percent);
        const echoUs = percentile(echo?.samplesUs ?? [], percent);
        const judged = name === "tiny-v1" && percent === 50;
        return {
          what: `warm ${name}, one at a time, p${percent}`,
          ours: formatUs(oursUs),
          beside: `echo ${formatUs(echoUs)}`,
          ratio: formatRatio(oursUs / echoUs),
          target: judged
            ? judge(oursUs / echoUs, {
                kind: "at-most",
                limit: 1.5,
                unit: "× echo",
              })
            : "",
        };
      }),
    );
  },
};
