/**
 * `npm run bench`: measures the built function beside a bare echo server and prints one table.
 * `--quick` makes fewer calls; names of cases after it run only those.
 */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { errorText } from "../src/errors.js";
import type { Bench, Case } from "./bench.js";
import { casesFor } from "./cases/index.js";
import {
  buildGrpcGoClient,
  createGrpcGoClient,
  hasGo,
} from "./grpc-go-client.js";
import { createGrpcJsClient } from "./grpc-js-client.js";
import { prepareGuests } from "./guests.js";
import type { LoadClient } from "./load-client.js";
import { machineText } from "./machine.js";
import { renderTable, type Row } from "./table.js";

try {
  process.exitCode = await main();
} catch (thrown) {
  say(`bench: ${errorText(thrown)}`);
  process.exitCode = 2;
}

/** 0, or 1 when a case could not be measured. */
async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    options: { quick: { type: "boolean", default: false } },
    allowPositionals: true,
  });
  const workDir = await mkdtemp(join(tmpdir(), "function-wasm-bench-"));
  try {
    const bench = await prepare(workDir, values.quick);
    const chosen = chooseCases(casesFor(bench.guests), positionals);
    const { rows, failures } = await measure(bench, chosen);
    report(bench, rows, failures);
    return failures.length > 0 ? 1 : 0;
  } finally {
    await rm(workDir, { recursive: true, force: true });
  }
}

function report(
  bench: Bench,
  rows: readonly Row[],
  failures: readonly string[],
): void {
  const how = `load from ${bench.client.name}${bench.quick ? ", quick" : ""}`;
  console.log(`\n${machineText()}, ${how}\n`);
  console.log(renderTable(rows));
  for (const { name, build } of bench.guests.missing) {
    console.log(`not measured: ${name}; build it with ${build}`);
  }
  for (const failure of failures) console.log(`failed: ${failure}`);
}

/** A name stands for its case, or for every case of its kind: `load` for `load:echo` and others. */
function chooseCases(
  cases: readonly Case[],
  names: readonly string[],
): readonly Case[] {
  const isNamed = (one: Case, name: string): boolean =>
    one.name === name || one.name.startsWith(`${name}:`);
  const unknown = names.find(
    (name) => !cases.some((one) => isNamed(one, name)),
  );
  if (unknown !== undefined) {
    const known = cases.map(({ name }) => name).join(", ");
    throw new Error(`no case \`${unknown}\`, expected one of ${known}`);
  }
  if (names.length === 0) return cases;
  return cases.filter((one) => names.some((name) => isNamed(one, name)));
}

async function prepare(workDir: string, quick: boolean): Promise<Bench> {
  const moduleDir = join(workDir, "modules");
  await mkdir(moduleDir);
  const [client, guests] = [
    await chooseClient(),
    await prepareGuests(moduleDir),
  ];
  return { client, guests, moduleDir, workDir, quick, say };
}

async function chooseClient(): Promise<LoadClient> {
  if (await hasGo()) return createGrpcGoClient(await buildGrpcGoClient());
  say(
    "go is not installed: a grpc-js client makes the calls, and its ceiling limits every figure",
  );
  return createGrpcJsClient();
}

/** A case that fails is named at the end; the others are still worth their figures. */
async function measure(
  bench: Bench,
  chosen: readonly Case[],
): Promise<{ rows: Row[]; failures: string[] }> {
  const rows: Row[] = [];
  const failures: string[] = [];
  for (const one of chosen) {
    say(one.name);
    try {
      rows.push(...(await one.run(bench)));
    } catch (error) {
      failures.push(`${one.name}: ${errorText(error)}`);
    }
  }
  return { rows, failures };
}

function say(line: string): void {
  console.error(line);
}
