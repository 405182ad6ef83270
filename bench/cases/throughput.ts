import { requestFile, type Case } from "../bench.js";
import { ECHO_WHOLE } from "../echo-methods.js";
import { allGood } from "../load-client.js";
import { startEcho, startFunction, withServers } from "../server-process.js";
import { formatRatio, judge, type Row } from "../table.js";

/** 64 calls at once on one connection, in rounds that alternate with the echo server's. */
export const throughput: Case = {
  name: "throughput",
  async run(bench) {
    const v1 = await requestFile(bench, "echo", bench.guests.echo);
    const v2 = await requestFile(
      bench,
      "echo-component",
      bench.guests.echoComponent,
    );
    const cacheDir = `${bench.workDir}/throughput`;
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
        rounds: bench.quick ? 2 : 8,
        roundCalls: bench.quick ? 2000 : 5000,
        warmupCalls: 2000,
        concurrency: 64,
        deadlineMs: 10_000,
        maxDurationMs: 120_000,
      }),
    );

    const [echo, ...guests] = allGood(results);
    const echoRate = echo?.requestsPerSecond ?? NaN;
    return guests.map(({ name, requestsPerSecond }): Row => {
      const ratio = requestsPerSecond / echoRate;
      return {
        what: `throughput ${name}, 64 at once`,
        ours: `${requestsPerSecond.toFixed(0)} /s`,
        beside: `echo ${echoRate.toFixed(0)} /s`,
        ratio: formatRatio(ratio),
        target:
          name === "tiny-v1"
            ? judge(ratio, { kind: "at-least", limit: 0.7, unit: "× echo" })
            : "",
      };
    });
  },
};
