/** Another process that uses the store of access records; started by access-processes.test.ts. */
import path from "node:path";
import type { AccessKey } from "../../../../src/loader/store/access-name.js";
import { createAccessStore } from "../../../../src/loader/store/access-store.js";
import { limitFileSize, stopAtStep } from "./disk-steps.js";

/** What it does: opens the store, records, looks, forgets. */
export interface AccessJob {
  readonly cacheDir: string;
  readonly key: AccessKey;
  /** When the key was proved, one record after the other. */
  readonly timesMs: readonly number[];
  readonly forgets: boolean;
  /** As in {@link stopAtStep}. */
  readonly stopAt: number | null;
  /** No file gets larger; null = as large as may be. */
  readonly maxFileBytes: number | null;
}

/** What it prints. */
export interface AccessAnswer {
  readonly steps: readonly string[];
  /** What the store said before it forgot. */
  readonly provedAtMs: number | null;
  readonly warnings: readonly unknown[];
}

async function perform(job: AccessJob): Promise<AccessAnswer> {
  const warnings: unknown[] = [];
  const logger = {
    debug: () => undefined,
    info: () => undefined,
    warn: (fields: object) => void warnings.push(fields),
    error: () => undefined,
    child: () => logger,
  };
  const clock = {
    nowMs: () => Date.now(),
    monotonicMs: () => performance.now(),
  };
  if (job.maxFileBytes !== null) limitFileSize(job.maxFileBytes);
  const steps = stopAtStep(path.dirname(job.cacheDir), job.stopAt);
  const store = createAccessStore(job.cacheDir, clock, logger);
  for (const atMs of job.timesMs) await store.record(job.key, atMs);
  const provedAtMs = await store.provedAt(job.key);
  if (job.forgets) await store.forget(job.key);
  return { steps, provedAtMs, warnings };
}

const job = JSON.parse(String(process.argv[2])) as AccessJob;
process.stdout.write(JSON.stringify(await perform(job)));
