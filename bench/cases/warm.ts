import type { Case } from "../bench.js";
import { percentile } from "../percentile.js";
import { formatRatio, formatUs, judge, type Row } from "../table.js";
import { loadTinyGuests } from "../tiny-guests.js";

/** Tiny guests of both ABIs, one call at a time, alternating with the echo server call by call. */
export const warm: Case = {
  name: "warm",
  async run(bench) {
    const [echo, ...guests] = await loadTinyGuests(bench, "warm", {
      rounds: bench.quick ? 500 : 5000,
      roundCalls: 1,
      warmupCalls: 500,
      concurrency: 1,
    });
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
