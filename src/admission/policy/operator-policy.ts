import { constants, type Stats } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";

import { errorText } from "../../errors.js";
import type { Logger } from "../../ports.js";
import type { CompiledPolicy, PolicyEngine } from "../cedar/policy.js";
import { maxPolicyBytes } from "../cedar/policy-engine.js";
import { AdmissionError } from "../error.js";

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
}

/**
 * Reads and compiles the operator policy, then follows its file.
 * @throws AdmissionError operator-policy-invalid, policy-unavailable
 */
export async function openOperatorPolicy(
  options: OperatorPolicyOptions,
): Promise<OperatorPolicy> {
  const { file, engine, onReload, logger } = options;
  let policy = await compileFile(file, engine);
  warnWhenEmpty(policy, file, logger);

  const readAgain = async () => {
    try {
      const next = await compileFile(file, engine);
      if (next.hash === policy.hash) return;
      policy = next;
      onReload("ok");
      logger.info({ file, rules: next.ruleCount }, "operator policy reloaded");
      warnWhenEmpty(next, file, logger);
    } catch (thrown) {
      onReload("error");
      logger.error(
        { file, reason: errorText(thrown) },
        "cannot reload the operator policy, the last good one stays",
      );
    }
  };
  // One at a time, so that an older text never replaces a newer one.
  let reading = Promise.resolve();
  const reload = () => (reading = reading.then(readAgain));
  const stopWatching = options.watch(file, () => void reload());
  return { current: () => policy, reload, close: stopWatching };
}

async function compileFile(
  file: string,
  engine: PolicyEngine,
): Promise<CompiledPolicy> {
  const result = await engine.compile(await readPolicy(file));
  if (result.kind === "ok") return result.policy;
  throw invalid(
    `cannot compile the operator policy ${file}: ${result.message}`,
  );
}

async function readPolicy(file: string): Promise<string> {
  let bytes: Uint8Array;
  try {
    bytes = await readBounded(file);
  } catch (cause) {
    throw invalid(
      `cannot read the operator policy ${file}: ${errorText(cause)}`,
      cause,
    );
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw invalid(
      `cannot read the operator policy ${file}: expected UTF-8 text`,
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

function warnWhenEmpty(
  policy: CompiledPolicy,
  file: string,
  logger: Logger,
): void {
  if (policy.ruleCount > 0) return;
  logger.warn(
    { file },
    "the operator policy has no rule: no module is granted anything",
  );
}

function invalid(message: string, cause?: unknown): AdmissionError {
  return new AdmissionError("operator-policy-invalid", message, { cause });
}
