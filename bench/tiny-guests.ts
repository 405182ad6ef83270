import { requestFile, type Bench } from "./bench.js";
import { ECHO_WHOLE } from "./echo-methods.js";
import { allGood, type LoadPlan, type TargetResult } from "./load-client.js";
import { startEcho, startFunction, withServers } from "./server-process.js";

/** How calls follow each other. */
export type Pace = Pick<
  LoadPlan,
  "rounds" | "roundCalls" | "warmupCalls" | "concurrency"
>;

/** Calls the echo server and the tiny guest of each ABI in turn; the echo server comes first. */
export async function loadTinyGuests(
  bench: Bench,
  cacheName: string,
  pace: Pace,
): Promise<readonly TargetResult[]> {
  const v1 = await requestFile(bench, "echo", bench.guests.echo);
  const v2 = await requestFile(
    bench,
    "echo-component",
    bench.guests.echoComponent,
  );
  const cacheDir = `${bench.workDir}/${cacheName}`;
  const starting = [
    startEcho(),
    startFunction({ moduleDir: bench.moduleDir, cacheDir }),
  ];
  const results = await withServers(starting, ([echo, ours]) => {
    const guest = { address: ours?.address ?? "", method: "v1" } as const;
    return bench.client.load({
      targets: [
        {
          name: "echo",
          address: echo?.address ?? "",
          method: ECHO_WHOLE,
          requestFile: v1,
        },
        { name: "tiny-v1", ...guest, requestFile: v1 },
        { name: "tiny-v2", ...guest, requestFile: v2 },
      ],
      ...pace,
      deadlineMs: 10_000,
      maxDurationMs: 120_000,
    });
  });
  return allGood(results);
}
