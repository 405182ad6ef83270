import { constants, type Stats } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";

import { errorText } from "../../errors.js";
import type { Logger } from "../../ports.js";
import {
  maxPolicyBytes,
  type CompiledPolicy,
  type PolicyEngine,
} from "../cedar/policy.js";
import { AdmissionError } from "../error.js";
import { policyRemarks } from "./remarks.js";

const MAX_RETRY_MS = 300_000;

/** The operator layer's policy, which a reload may replace while requests are under way. */
export interface OperatorPolicy {
  /** The last one that compiled. */
  current(): CompiledPolicy;
  /** Reads the file again. Never rejects: one that cannot be used is logged and ignored. */
  reload(): Promise<void>;
  /** Stops watching. */
  close(): void;
}

/** What {@link openOperatorPolicy} works with. */
export interface OperatorPolicyOptions {
  /** Absolute. */
  readonly file: string;
  readonly engine: PolicyEngine;
  /** Calls `listener` when the file may have changed; returns how to stop. */
  readonly watch: (file: string, listener: () => void) => () => void;
  readonly onReload: (result: "ok" | "error") => void;
  readonly logger: Logger;
  /** When a reload that failed is tried again, later and later up to 5 minutes; default 5 s. */
  readonly retryAfterMs?: number;
}

/**
 * Reads and compiles the operator policy, then follows its file.
 * @throws AdmissionError operator-policy-invalid, policy-unavailable
 */
export async function openOperatorPolicy(
  options: OperatorPolicyOptions,
): Promise<OperatorPolicy> {
  const { file, engine, onReload, logger, retryAfterMs = 5_000 } = options;
  let policy = await compileOperatorPolicy(file, engine);
  warnOf(policy, file, logger);
  let failures = 0;
  let retry: NodeJS.Timeout | undefined;

  function take(next: CompiledPolicy): void {
    if (next.hash === policy.hash && failures === 0) return;
    refuseEmptied(policy, next, file);
    policy = next;
    failures = 0;
    onReload("ok");
    logger.info({ file, rules: next.ruleCount }, "operator policy reloaded");
    warnOf(next, file, logger);
  }

  async function readAgain(): Promise<void> {
    clearTimeout(retry);
    try {
      take(await compileOperatorPolicy(file, engine));
    } catch (thrown) {
      onReload("error");
      logger.error(
        { file, reason: errorText(thrown) },
        "cannot reload the operator policy, the last good one stays",
      );
      // It may have failed for a passing reason, and the file does not change again for that.
      const waitMs = Math.min(retryAfterMs * 2 ** failures, MAX_RETRY_MS);
      failures += 1;
      retry = setTimeout(() => void reload(), waitMs).unref();
    }
  }

  // One at a time, so that an older text never replaces a newer one.
  let reading = Promise.resolve();
  const reload = () => (reading = reading.then(readAgain));
  const stopWatching = options.watch(file, () => void reload());
  // What changed between the first look and the watch would be missed for ever.
  await reload();
  return {
    current: () => policy,
    reload,
    close() {
      stopWatching();
      clearTimeout(retry);
    },
  };
}

/**
 * Reads and compiles the operator policy once.
 * @throws AdmissionError operator-policy-invalid, policy-unavailable
 */
export async function compileOperatorPolicy(
  file: string,
  engine: PolicyEngine,
): Promise<CompiledPolicy> {
  const result = await engine.compile(await readPolicy(file), "operator");
  if (result.kind === "ok") return result.policy;
  throw invalid(
    `cannot compile the operator policy (--sandbox-policy-file) ${file}: ${result.message}`,
  );
}

async function readPolicy(file: string): Promise<string> {
  let bytes: Uint8Array;
  try {
    bytes = await readBounded(file);
  } catch (cause) {
    throw invalid(
      `cannot read the operator policy (--sandbox-policy-file) ${file}: ${errorText(cause)}`,
      cause,
    );
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw invalid(
      `cannot read the operator policy (--sandbox-policy-file) ${file}: expected UTF-8 text`,
      cause,
    );
  }
}

async function readBounded(file: string): Promise<Uint8Array> {
  // Never waits for a FIFO's writer.
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const { size } = await regularFileStats(handle);
    if (size > maxPolicyBytes) {
      throw new Error(`expected at most ${maxPolicyBytes} bytes, got ${size}`);
    }
    const bytes = await handle.readFile();
    const after = await regularFileStats(handle);
    // Half a policy may be a wider one: a `forbid` at its end would be missing.
    if (bytes.length !== size || after.size !== size)
      throw new Error("the file changed while it was being read");
    return bytes;
  } finally {
    await handle.close();
  }
}

async function regularFileStats(handle: FileHandle): Promise<Stats> {
  const stats = await handle.stat();
  if (!stats.isFile()) throw new Error("expected a regular file");
  return stats;
}

/** A file that was cut off while it was being written would drop every `forbid` and every demand. */
function refuseEmptied(
  last: CompiledPolicy,
  next: CompiledPolicy,
  file: string,
): void {
  if (last.ruleCount === 0 || next.ruleCount > 0) return;
  throw invalid(
    `the operator policy (--sandbox-policy-file) ${file} has no rule any more: write a policy that permits nothing, or start again without one`,
  );
}

function warnOf(policy: CompiledPolicy, file: string, logger: Logger): void {
  for (const remark of policyRemarks(policy, "operator"))
    logger.warn({ file, remark }, "the operator policy may not mean this");
}

function invalid(message: string, cause?: unknown): AdmissionError {
  return new AdmissionError("operator-policy-invalid", message, { cause });
}
