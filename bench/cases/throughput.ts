import type { Case } from "../bench.js";
import { formatRatio, judge, type Row } from "../table.js";
import { loadTinyGuests } from "../tiny-guests.js";

/** 64 calls at once on one connection, in rounds that alternate with the echo server's. */
export const throughput: Case = {
  name: "throughput",
  async run(bench) {
    const [echo, ...guests] = await loadTinyGuests(bench, "throughput", {
      rounds: bench.quick ? 2 : 8,
      roundCalls: bench.quick ? 2000 : 5000,
      warmupCalls: 2000,
      concurrency: 64,
    });
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
