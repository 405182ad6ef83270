import { fatalIn } from "./response.js";

/** One server and request under load. */
export interface LoadTarget {
  /** Small letters, digits and `-`; unique in its plan. */
  readonly name: string;
  readonly address: string;
  /** `v1`, `v1beta1`, or a full path that starts with `/`. */
  readonly method: string;
  readonly requestFile: string;
}

/** Which calls are made: in every round each target has its turn. */
export interface LoadPlan {
  readonly targets: readonly LoadTarget[];
  readonly rounds: number;
  readonly roundCalls: number;
  readonly warmupCalls: number;
  /** Calls at once; with 1 and `roundCalls` 1 the targets alternate call by call. */
  readonly concurrency: number;
  readonly deadlineMs: number;
  /** No call starts later than this. */
  readonly maxDurationMs: number;
}

/** What was seen of one target. */
export interface TargetResult {
  readonly name: string;
  /** Calls by gRPC code, such as `{ OK: 100 }`. */
  readonly codes: Readonly<Record<string, number>>;
  readonly firstError: string;
  /** Answers that were not byte for byte the first one. */
  readonly differentAnswers: number;
  /** Those of them that also have another size: a map in another order does not. */
  readonly differentSizes: number;
  /** `null` when no call was answered. */
  readonly firstAnswer: Uint8Array | null;
  readonly requestsPerSecond: number;
  /** Ascending. */
  readonly samplesUs: readonly number[];
}

/** Makes calls from a process that is not under test. */
export interface LoadClient {
  readonly name: "grpc-go" | "grpc-js";
  /** Results in the order of the plan's targets. */
  load(plan: LoadPlan): Promise<readonly TargetResult[]>;
}

/**
 * Hands `results` back when every call was answered, all with one size, and without a fatal result: a
 * refusal is quick, and must never count as speed.
 * @throws Error naming the target and what it said
 */
export function allGood(
  results: readonly TargetResult[],
): readonly TargetResult[] {
  for (const {
    name,
    codes,
    firstError,
    firstAnswer,
    differentSizes,
  } of results) {
    const others = Object.entries(codes).filter(([code]) => code !== "OK");
    if (others.length > 0)
      throw new Error(`${name}: ${JSON.stringify(codes)}: ${firstError}`);
    if (firstAnswer === null) throw new Error(`${name}: no call was answered`);
    const fatal = fatalIn(firstAnswer);
    if (fatal !== null) throw new Error(`${name}: ${fatal}`);
    if (differentSizes > 0)
      throw new Error(
        `${name}: ${differentSizes} answers are not like the first`,
      );
  }
  return results;
}
