import { readFile } from "node:fs/promises";
import { join } from "node:path";

import { noMetrics, silentLogger } from "../../src/cli/silent.js";
import type * as LoaderFolder from "../../src/loader/index.js";
import type { PullContext } from "../../src/loader/index.js";
import type { ModuleSource } from "../../src/ports.js";
import { createRequestScope } from "../../src/request-scope.js";
import { requestFile, type Bench, type Case } from "../bench.js";
import { allGood } from "../load-client.js";
import { ascending, percentile } from "../percentile.js";
import { startRegistry, type BenchRegistry } from "../registry.js";
import { startFunction, withServers } from "../server-process.js";
import { formatUs, judge, type Row } from "../table.js";

/** Calls that are timed as one: a single one is shorter than what clocks are good for. */
const BATCH_CALLS = 100;

/** What finding a pinned module costs that is in the cache: in the loader alone, and in a request. */
export const loader: Case = {
  name: "loader",
  async run(bench) {
    const { echo } = bench.guests;
    const module = await readFile(join(bench.moduleDir, echo.path));
    const open = await startRegistry(module, false);
    const locked = await startRegistry(module, true);
    try {
      return [
        loaderRow("public", await resolveUs(bench, open, null)),
        loaderRow(
          "private, with a step credential",
          await resolveUs(bench, locked, "registry"),
        ),
        await requestRow(bench, open),
      ];
    } finally {
      await open.close();
      await locked.close();
    }
  },
};

function loaderRow(which: string, us: number): Row {
  return {
    what: `loader, pinned and cached, ${which}, p50`,
    ours: formatUs(us),
    beside: "",
    ratio: "",
    target: judge(us, { kind: "at-most", limit: 30, unit: "µs" }),
  };
}

/** Resolving and reading the manifest, as every request does, without the rest of the request. */
async function resolveUs(
  bench: Bench,
  registry: BenchRegistry,
  credentials: string | null,
): Promise<number> {
  // As it is built: what tsx makes of the sources takes half as long again.
  const built = new URL("../../dist/loader/index.js", import.meta.url);
  const { createLoader, createSourceParsers } = (await import(
    built.href
  )) as typeof LoaderFolder;
  const options = {
    insecureHosts: [],
    registryCas: new Map<string, string>(),
    tokenServers: new Map<string, string>(),
  };
  const loader = createLoader(
    {
      ...options,
      moduleDir: null,
      maxModuleBytes: 1 << 27,
      cacheDir: join(bench.workDir, `loader-${credentials ?? "public"}`),
      tags: { resolveIntervalMs: 0, maxStalenessMs: 0 },
      accessRecheckIntervalMs: 600_000,
      dockerConfigFile: null,
      env: {},
    },
    { clock, logger: silentLogger, metrics: noMetrics },
  );
  const ref = createSourceParsers(options).parseReference(
    `${registry.authority}/${registry.repository}@${registry.digest}`,
  );
  if (ref.kind === "error") throw new Error(ref.message);
  const source: ModuleSource = {
    type: "OCI",
    ref: ref.value,
    expectedDigest: null,
    credentials,
  };
  const data = new Map([
    ["username", Buffer.from(registry.username)],
    ["password", Buffer.from(registry.password)],
  ]);
  const context: PullContext = {
    credentialOf: () => data,
    redirectFence: null,
  };
  const scope = createRequestScope({ deadlineAtMs: Infinity });
  const once = async (): Promise<void> => {
    const found = await loader.resolve(source, context, scope);
    await found.readManifest(scope);
  };
  try {
    const samplesUs: number[] = [];
    for (let batch = 0; batch < (bench.quick ? 60 : 200); batch++) {
      const startedMs = performance.now();
      for (let call = 0; call < BATCH_CALLS; call++) await once();
      samplesUs.push(((performance.now() - startedMs) * 1000) / BATCH_CALLS);
    }
    // The first ones fetch, and are not compiled yet.
    return percentile(ascending(samplesUs.slice(20)), 50);
  } finally {
    await loader.close();
  }
}

async function requestRow(bench: Bench, registry: BenchRegistry): Promise<Row> {
  const { echo } = bench.guests;
  const ref = `${registry.authority}/${registry.repository}@${registry.digest}`;
  const files = {
    path: await requestFile(bench, "loader-path", echo),
    oci: await requestFile(bench, "loader-oci", echo, {
      module: { type: "OCI", oci: { ref } },
    }),
  };
  const cacheDir = join(bench.workDir, "loader-server");
  const starting = [startFunction({ moduleDir: bench.moduleDir, cacheDir })];
  const results = await withServers(starting, ([ours]) =>
    bench.client.load({
      targets: Object.entries(files).map(([name, file]) => ({
        name,
        address: ours?.address ?? "",
        method: "v1",
        requestFile: file,
      })),
      rounds: bench.quick ? 300 : 3000,
      roundCalls: 1,
      warmupCalls: 200,
      concurrency: 1,
      deadlineMs: 30_000,
      maxDurationMs: 180_000,
    }),
  );
  const [path = NaN, oci = NaN] = allGood(results).map(({ samplesUs }) =>
    percentile(samplesUs, 50),
  );
  return {
    what: "request for a pinned OCI module with a manifest, p50",
    ours: formatUs(oci),
    beside: `Path module ${formatUs(path)}`,
    ratio: `${oci < path ? "" : "+"}${formatUs(oci - path)}`,
    target: "",
  };
}

const clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
};
