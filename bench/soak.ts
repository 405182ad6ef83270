/**
 * `npm run soak`: many calls over many digests through TLS while certificates and operator policy
 * change, then health checks beside 100 calls at once. Prints one table; exits with 1 when a target
 * is missed, 2 when nothing could be measured. Flags: bench/soak/options.ts.
 */
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

import { errorText } from "../src/errors.js";
import { buildGrpcGoClient, hasGo } from "./grpc-go-client.js";
import { machineText } from "./machine.js";
import {
  startEcho,
  startFunction,
  withServers,
  type ServerProcess,
} from "./server-process.js";
import { probeHealth, type ProbeFigures } from "./soak/health-probe.js";
import { createIdentities, type Identity } from "./soak/identities.js";
import { load, NOTHING, sum, type LoadOutcome } from "./soak/load.js";
import { createMount, type Mount } from "./soak/mount.js";
import { parseSoakOptions, type SoakOptions } from "./soak/options.js";
import { readReloads, reloadsBetween } from "./soak/reloads.js";
import { repeat } from "./soak/repeat.js";
import { sampleResident } from "./soak/resident.js";
import { isMet, judgeSoak, type SoakFigures } from "./soak/verdict.js";
import {
  createWorkload,
  DIGESTS,
  policyText,
  type Workload,
} from "./soak/workload.js";
import { renderTable } from "./table.js";

const SWAP_EVERY_MS = 3_000;
const REPORT_EVERY_MS = 3_000;
/** The client connects anew for each slice, and so meets the certificates of that time. */
const SLICES = 20;
const MAX_SLICE_CALLS = 5_000;
const WARM_UP_SHARE = 0.2;
const HEALTH_MS = 10_000;
const POLICY_FILE = "policy.cedar";

try {
  process.exitCode = await main();
} catch (thrown) {
  say(`soak: ${errorText(thrown)}`);
  process.exitCode = 2;
}

async function main(): Promise<number> {
  const options = parseSoakOptions(process.argv.slice(2));
  if (!(await hasGo())) {
    throw new Error(
      "go is not installed, and no other client here judges Crossplane's certificates",
    );
  }
  const binary = await buildGrpcGoClient();
  const workDir = await mkdtemp(join(tmpdir(), "function-wasm-soak-"));
  try {
    const workload = await createWorkload(workDir);
    try {
      const figures = await soak(options, binary, workDir, workload);
      const rows = judgeSoak(figures, options);
      console.log(`\n${machineText()}\n`);
      console.log(renderTable(rows));
      const { firstError } = sum(figures.spread, figures.concurrent);
      if (firstError !== "") console.log(`first error: ${firstError}`);
      return isMet(rows) ? 0 : 1;
    } finally {
      await workload.close();
    }
  } finally {
    await rm(workDir, { recursive: true, force: true });
  }
}

/** What both parts of a soak need. */
interface Soak {
  readonly options: SoakOptions;
  readonly binary: string;
  readonly identities: readonly [Identity, Identity];
  readonly workload: Workload;
  readonly ours: ServerProcess;
  /** On the monotonic clock. */
  readonly endAtMs: number;
}

async function soak(
  options: SoakOptions,
  binary: string,
  workDir: string,
  workload: Workload,
): Promise<SoakFigures> {
  const identities = await createIdentities(binary, join(workDir, "ids"));
  const secret = await createMount(
    join(workDir, "secret"),
    identities[0].secret,
  );
  const configMap = await createMount(join(workDir, "config"), policyFiles(0));
  const metricsAddress = `127.0.0.1:${await freePort()}`;
  const starting = [
    startFunction({
      moduleDir: workload.moduleDir,
      cacheDir: join(workDir, "cache"),
      flags: [
        ...["--tls-certs-dir", secret.dir],
        ...["--sandbox-policy-file", join(configMap.dir, POLICY_FILE)],
        ...["--metrics-address", metricsAddress],
      ],
    }),
    startEcho(),
  ];
  return await withServers(starting, async ([ours, echo]) => {
    if (ours === undefined || echo === undefined) {
      throw new Error("expected two servers");
    }
    const endAtMs = performance.now() + options.maxDurationMs;
    const running = { options, binary, identities, workload, ours, endAtMs };
    const before = await readReloads(metricsAddress);
    const swapping = repeat(SWAP_EVERY_MS, (turn) =>
      swap(turn, identities, secret, configMap),
    );
    const spread = await spreadCalls(running, () => swapping.count());
    const beside = await askBeside(running, echo.address);
    await swapping.stop();
    // The last swap may have been a moment ago.
    await delay(SWAP_EVERY_MS);
    const after = await readReloads(metricsAddress);
    return {
      ...spread,
      ...beside,
      wantedCalls: options.calls,
      swaps: swapping.count(),
      certificates: reloadsBetween(before.certificates, after.certificates),
      policy: reloadsBetween(before.policy, after.policy),
      exitCode: await ours.stop(),
    };
  });
}

async function swap(
  turn: number,
  identities: readonly [Identity, Identity],
  secret: Mount,
  configMap: Mount,
): Promise<void> {
  await secret.swap(alternate(identities, turn).secret);
  await configMap.swap(policyFiles(turn));
}

/** All calls over all digests, and the resident set meanwhile. */
async function spreadCalls(
  running: Soak,
  swaps: () => number,
): Promise<Pick<SoakFigures, "spread" | "residentMb">> {
  const { options, workload, ours, endAtMs } = running;
  const sliceCalls = Math.min(
    MAX_SLICE_CALLS,
    Math.ceil(options.calls / SLICES),
  );
  const resident = sampleResident(ours.pid);
  const startedMs = performance.now();
  let reportedMs = startedMs;
  let isWarm = false;
  let spread: LoadOutcome = NOTHING;
  try {
    for (let slice = 0; spread.calls < options.calls; slice++) {
      const nowMs = performance.now();
      if (spread.errors > 0 || nowMs >= endAtMs) break;
      if (nowMs - reportedMs >= REPORT_EVERY_MS) {
        reportedMs = nowMs;
        const perSecond = (spread.calls * 1000) / (nowMs - startedMs);
        say(
          `${spread.calls} of ${options.calls} calls, ${perSecond.toFixed(0)} /s, ${swaps()} swaps, ${resident.latestMb().toFixed(0)} MB`,
        );
      }
      const outcome = await load({
        ...running,
        address: ours.address,
        identity: alternate(running.identities, slice),
        requestFiles: workload.requestFiles,
        calls: Math.ceil(sliceCalls / DIGESTS),
        concurrency: 10,
        maxDurationMs: endAtMs - nowMs,
      });
      spread = sum(spread, outcome);
      if (!isWarm && spread.calls >= options.calls * WARM_UP_SHARE) {
        isWarm = true;
        resident.forget();
      }
    }
  } finally {
    resident.stop();
  }
  return { spread, residentMb: resident.samplesMb() };
}

/** Health checks while one connection carries 100 calls at once. */
async function askBeside(
  running: Soak,
  echoAddress: string,
): Promise<Pick<SoakFigures, "concurrent" | "probe">> {
  const { workload, ours, identities } = running;
  say("health checks beside 100 calls at once on one connection");
  const loading = load({
    ...running,
    address: ours.address,
    identity: identities[0],
    requestFiles: workload.requestFiles.slice(0, 1),
    // More than any server answers in that time.
    calls: 10_000_000,
    concurrency: 100,
    maxDurationMs: HEALTH_MS + 2_000,
  });
  const loadEndedAtMs = loading.then(() => performance.now());
  await delay(1_000);
  const probe: ProbeFigures = await probeHealth({
    address: ours.address,
    identity: identities[0],
    echoAddress,
    durationMs: HEALTH_MS,
  });
  const askedUntilMs = performance.now();
  const concurrent = await loading;
  if (concurrent.errors === 0 && (await loadEndedAtMs) < askedUntilMs) {
    throw new Error("the calls ended before the last health check");
  }
  return { concurrent, probe };
}

function policyFiles(version: number) {
  return { [POLICY_FILE]: policyText(version) };
}

function alternate<T>([even, odd]: readonly [T, T], turn: number): T {
  return turn % 2 === 0 ? even : odd;
}

/** Free a moment ago; the function does not tell this process where its metrics are. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

function say(line: string): void {
  console.error(line);
}
