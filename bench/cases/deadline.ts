import { requestFile, type Case } from "../bench.js";
import { percentile } from "../percentile.js";
import { fatalIn } from "../response.js";
import { startFunction, withServers } from "../server-process.js";
import { formatUs, judge, type Row } from "../table.js";

const TIMEOUT_MS = 100;

/** Four guests that never return, each cut at `limits.timeout`: how late the caller hears of it. */
export const deadline: Case = {
  name: "deadline",
  async run(bench) {
    const file = await requestFile(bench, "spin", bench.guests.spin, {
      timeout: `${TIMEOUT_MS}ms`,
    });
    const cacheDir = `${bench.workDir}/deadline`;

    const results = await withServers(
      [startFunction({ moduleDir: bench.moduleDir, cacheDir })],
      ([ours]) =>
        bench.client.load({
          targets: [
            {
              name: "spin",
              address: ours?.address ?? "",
              method: "v1",
              requestFile: file,
            },
          ],
          rounds: 1,
          roundCalls: bench.quick ? 12 : 52,
          warmupCalls: 4,
          concurrency: 4,
          deadlineMs: 10_000,
          maxDurationMs: 60_000,
        }),
    );

    const {
      samplesUs = [],
      firstAnswer = null,
      codes = {},
      firstError = "",
    } = results[0] ?? {};
    if (firstAnswer === null || fatalIn(firstAnswer) === null) {
      throw new Error(
        `spin: expected a fatal result, got ${JSON.stringify(codes)} ${firstError}`,
      );
    }
    return [50, 99, 100].map((percent): Row => {
      const lateUs = percentile(samplesUs, percent) - TIMEOUT_MS * 1000;
      return {
        what: `lateness past a ${TIMEOUT_MS} ms limit, 4 spinners, ${percent === 100 ? "max" : `p${percent}`}`,
        ours: formatUs(lateUs),
        beside: "",
        ratio: "",
        target:
          percent === 50
            ? ""
            : judge(lateUs / 1000, { kind: "at-most", limit: 20, unit: "ms" }),
      };
    });
  },
};
