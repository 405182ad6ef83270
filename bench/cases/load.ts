import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

import {
  BIG_TIMEOUT,
  FIRST_CALL_MS,
  EXAMPLE_CONFIG,
  requestFile,
  type Bench,
  type Case,
} from "../bench.js";
import { startDirect } from "../direct-process.js";
import type { Guest } from "../guests.js";
import { allGood } from "../load-client.js";
import { ascending, percentile } from "../percentile.js";
import { startFunction, withServers } from "../server-process.js";
import { formatUs, judge, type Row } from "../table.js";

const BIG_BYTES = 50_000_000;

/**
 * First answers of a module: when it must be compiled, and in a fresh process that finds its
 * artifact on disk, trusting the directory or checking the artifact with a key.
 */
export function load(guest: Guest): Case {
  return {
    name: `load:${guest.name}`,
    async run(bench) {
      const keyFile = join(bench.workDir, "artifact.key");
      await writeFile(keyFile, randomBytes(32), { mode: 0o600 });
      return measure(bench, guest, keyFile);
    },
  };
}

async function measure(
  bench: Bench,
  guest: Guest,
  keyFile: string,
): Promise<Row[]> {
  const file = await requestFile(bench, guest.name, guest, {
    timeout: BIG_TIMEOUT,
    config: EXAMPLE_CONFIG,
  });
  const cacheDir = join(bench.workDir, `load-${guest.name}`);
  const withKey = ["--artifact-key-file", keyFile];

  const coldUs = await firstAnswerUs(bench, cacheDir, file, withKey);
  const rows = [plain(`cold ${guest.name}, first answer`, coldUs)];
  for (const [how, flags, artifactKeyFile] of [
    ["trusted directory", ["--trust-cache-dir"], null],
    ["checked with a key", withKey, keyFile],
  ] as const) {
    const answersUs: number[] = [];
    const loadsUs: number[] = [];
    for (let round = 0; round < (bench.quick ? 2 : 5); round++) {
      answersUs.push(await firstAnswerUs(bench, cacheDir, file, flags));
      loadsUs.push(
        await engineLoadUs(bench, guest, file, cacheDir, artifactKeyFile),
      );
    }
    rows.push(
      judged(
        guest,
        `load of ${guest.name} from disk, ${how}, p50`,
        percentile(ascending(loadsUs), 50),
        15,
      ),
      judged(
        guest,
        `first answer of a fresh process, ${guest.name}, ${how}, p50`,
        percentile(ascending(answersUs), 50),
        40,
      ),
    );
  }
  return rows;
}

/** From the first call that a fresh process gets, once connected, to its answer. */
async function firstAnswerUs(
  bench: Bench,
  cacheDir: string,
  file: string,
  flags: readonly string[],
): Promise<number> {
  return withServers(
    [startFunction({ moduleDir: bench.moduleDir, cacheDir, flags })],
    async ([ours]) => {
      const results = await bench.client.load({
        targets: [
          {
            name: "first",
            address: ours?.address ?? "",
            method: "v1",
            requestFile: file,
          },
        ],
        rounds: 1,
        roundCalls: 1,
        warmupCalls: 0,
        concurrency: 1,
        deadlineMs: FIRST_CALL_MS,
        maxDurationMs: FIRST_CALL_MS,
      });
      return percentile(allGood(results)[0]?.samplesUs ?? [], 50);
    },
  );
}

async function engineLoadUs(
  bench: Bench,
  guest: Guest,
  file: string,
  cacheDir: string,
  artifactKeyFile: string | null,
): Promise<number> {
  const modulePath = join(bench.moduleDir, guest.path);
  const direct = await startDirect({
    modulePath,
    requestFile: file,
    cacheDir,
    artifactKeyFile,
  });
  await direct.stop();
  return direct.loadUs;
}

/** The targets are stated for a module of the 77 MB class. */
function judged(guest: Guest, what: string, us: number, limitMs: number): Row {
  const applies = guest.sizeBytes >= BIG_BYTES;
  return {
    ...plain(what, us),
    target: applies
      ? judge(us / 1000, { kind: "at-most", limit: limitMs, unit: "ms" })
      : "",
  };
}

function plain(what: string, us: number): Row {
  return { what, ours: formatUs(us), beside: "", ratio: "", target: "" };
}
