import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { errorText } from "../../src/errors.js";
import { runGrpcGo } from "../grpc-go-client.js";
import type { TargetResult } from "../load-client.js";
import { fatalIn } from "../response.js";
import { SERVER_NAME, type Identity } from "./identities.js";

/** Calls of one process of the client, which connects anew to each target. */
export interface LoadOptions {
  readonly binary: string;
  readonly address: string;
  readonly identity: Identity;
  readonly requestFiles: readonly string[];
  /** Calls for each request. */
  readonly calls: number;
  /** Calls at once. */
  readonly concurrency: number;
  /** No call starts later than this. */
  readonly maxDurationMs: number;
}

/** What became of the calls. */
export interface LoadOutcome {
  readonly calls: number;
  /** Calls without the module's own answer. */
  readonly errors: number;
  /** What the first of them said; empty without any. */
  readonly firstError: string;
}

/** What the client prints of one target. */
export type LoadedTarget = Pick<
  TargetResult,
  "name" | "codes" | "firstError" | "differentAnswers"
>;

const MAX_CLIENT_RUN_MS = 600_000;
/** Calls to one module before the next one has its turn. */
const ROUND_CALLS = 20;
/** The client takes no more. */
const MAX_ROUND_CALLS = 100_000;

/** Makes the calls. A client that cannot is an error like any other. */
export async function load(options: LoadOptions): Promise<LoadOutcome> {
  const answersDir = await mkdtemp(join(tmpdir(), "soak-answers-"));
  try {
    const output = await runGrpcGo(options.binary, args(options, answersDir));
    const { targets } = output as { targets: readonly LoadedTarget[] };
    const outcomes = targets.map(async (target) => {
      const file = join(answersDir, `${target.name}.bin`);
      return outcomeOf(target, await readFile(file).catch(() => null));
    });
    return (await Promise.all(outcomes)).reduce(sum, NOTHING);
  } catch (thrown) {
    return { calls: 0, errors: 1, firstError: errorText(thrown) };
  } finally {
    await rm(answersDir, { recursive: true, force: true });
  }
}

/** The outcome of no calls. */
export const NOTHING: LoadOutcome = { calls: 0, errors: 0, firstError: "" };

/** Both together; the error of `a` came first. */
export function sum(a: LoadOutcome, b: LoadOutcome): LoadOutcome {
  return {
    calls: a.calls + b.calls,
    errors: a.errors + b.errors,
    firstError: a.firstError || b.firstError,
  };
}

/**
 * Judges one target: every answer has to be the first one, and that one not a refusal.
 * @param firstAnswer `null` when no call was answered
 */
export function outcomeOf(
  target: LoadedTarget,
  firstAnswer: Uint8Array | null,
): LoadOutcome {
  const { name, codes, differentAnswers } = target;
  const calls = Object.values(codes).reduce((a, b) => a + b, 0);
  const failed = calls - (codes["OK"] ?? 0);
  if (failed > 0) {
    const firstError = `${name}: ${JSON.stringify(codes)}: ${target.firstError}`;
    return { calls, errors: failed + differentAnswers, firstError };
  }
  const fatal = firstAnswer === null ? null : fatalIn(firstAnswer);
  if (fatal !== null) {
    return { calls, errors: calls, firstError: `${name}: ${fatal}` };
  }
  const firstError =
    differentAnswers === 0
      ? ""
      : `${name}: ${differentAnswers} answers are not like the first`;
  return { calls, errors: differentAnswers, firstError };
}

function args(options: LoadOptions, answersDir: string): string[] {
  const { address, identity, calls, concurrency, requestFiles } = options;
  // As few rounds as can be for calls at once that shall not pause.
  const roundCalls = Math.min(
    calls,
    requestFiles.length === 1 ? MAX_ROUND_CALLS : ROUND_CALLS,
  );
  const { ca, cert, key } = identity.client;
  const maxMs = Math.min(options.maxDurationMs, MAX_CLIENT_RUN_MS);
  return [
    "load",
    ...["--ca", ca, "--cert", cert, "--key", key],
    ...["--server-name", SERVER_NAME],
    ...["--answers", answersDir],
    ...["--rounds", Math.ceil(calls / roundCalls).toString()],
    ...["--round-calls", roundCalls.toString()],
    ...["--concurrency", concurrency.toString()],
    ...["--deadline", "30s"],
    ...["--max-duration", `${Math.max(1, Math.floor(maxMs))}ms`],
    ...requestFiles.flatMap((file, index) => [
      "--target",
      `digest-${index},${address},v1,${file}`,
    ]),
  ];
}
