import { requestFile, type Bench, type Case } from "../bench.js";
import { ECHO_SMALL, ECHO_WHOLE } from "../echo-methods.js";
import { allGood } from "../load-client.js";
import { percentile } from "../percentile.js";
import { smallState, treeState } from "../request.js";
import { startEcho, startFunction, withServers } from "../server-process.js";
import { formatUs, judge, type Row } from "../table.js";

const MB = 1_000_000;
const SIZES = [0, 1, 4] as const;

/**
 * What state costs by size, as a tree of many small fields. Once in `observed`, where both servers
 * answer with a few bytes; once in `desired`, which both send back whole.
 */
export const perMegabyte: Case = {
  name: "per-megabyte",
  async run(bench) {
    return [
      ...(await measure(bench, "observed")),
      ...(await measure(bench, "desired")),
    ];
  },
};

async function measure(
  bench: Bench,
  where: "observed" | "desired",
): Promise<Row[]> {
  const files = await Promise.all(
    SIZES.map((megabytes) => {
      const state = megabytes === 0 ? smallState() : treeState(megabytes * MB);
      return requestFile(bench, `${where}-${megabytes}`, bench.guests.echo, {
        [where]: state,
      });
    }),
  );
  const echoMethod = where === "observed" ? ECHO_SMALL : ECHO_WHOLE;
  const cacheDir = `${bench.workDir}/per-megabyte`;
  const flags = ["--max-recv-message-size", "16"];
  const starting = [
    startEcho(),
    startFunction({ moduleDir: bench.moduleDir, cacheDir, flags }),
  ];

  const results = await withServers(starting, ([echo, ours]) =>
    bench.client.load({
      targets: files.flatMap((file, index) => {
        const size = `${SIZES[index] ?? 0}mb`;
        return [
          {
            name: `echo-${size}`,
            address: echo?.address ?? "",
            method: echoMethod,
            requestFile: file,
          },
          {
            name: `ours-${size}`,
            address: ours?.address ?? "",
            method: "v1",
            requestFile: file,
          },
        ];
      }),
      rounds: bench.quick ? 40 : 150,
      roundCalls: 1,
      warmupCalls: 20,
      concurrency: 1,
      deadlineMs: 10_000,
      maxDurationMs: 120_000,
    }),
  );

  const p50 = allGood(results).map(({ samplesUs }) =>
    percentile(samplesUs, 50),
  );
  const [echoBase = NaN, oursBase = NaN] = p50;
  return SIZES.slice(1).map((megabytes, index): Row => {
    const echoPerMb = ((p50[2 * index + 2] ?? NaN) - echoBase) / megabytes;
    const oursPerMb = ((p50[2 * index + 3] ?? NaN) - oursBase) / megabytes;
    const moreUs = oursPerMb - echoPerMb;
    return {
      what: `per MB of ${where}, ${megabytes} MB tree, p50`,
      ours: formatUs(oursPerMb),
      beside: `echo ${formatUs(echoPerMb)}`,
      ratio: `${moreUs < 0 ? "-" : "+"}${formatUs(Math.abs(moreUs))}`,
      target:
        where === "observed"
          ? judge(moreUs / 1000, {
              kind: "at-most",
              limit: 2,
              unit: "ms more than echo",
            })
          : "",
    };
  });
}
