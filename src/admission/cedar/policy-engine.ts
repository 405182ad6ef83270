import { createHash } from "node:crypto";

import { LRUCache } from "lru-cache";

import { escaped } from "../../errors.js";
import { decisionKey, decisionOf, signatureRequired } from "./decision.js";
import {
  createJobQueue,
  type JobLimits,
  type JobOutcome,
} from "./job-queue.js";
import { createMemory, type Remembered, type Work } from "./memory.js";
import type { PolicyReport, PolicyRule } from "./messages.js";
import {
  maxPolicyBytes,
  type CompiledPolicy,
  type CompileResult,
  type Decision,
  type PolicyEngine,
  type PolicyLayer,
  type Principal,
  type Question,
} from "./policy.js";
import { type PolicyWorker, startPolicyWorker } from "./start-worker.js";
import { unavailable } from "./unavailable.js";

const mebibyte = 1024 * 1024;

/** What a policy engine works with. */
export interface PolicyEngineOptions {
  /** The clock of the requests' deadlines. */
  readonly monotonicMs: () => number;
  /** For tests: the default runs `policy-worker.js`. */
  readonly startWorker?: () => PolicyWorker;
  /** For tests: each has a default. */
  readonly limits?: Partial<Omit<JobLimits, "maxWaiting">>;
}

const defaultLimits = {
  startMs: 30_000,
  // The longest policy of ordinary rules takes half of it on two slow cores.
  compileMs: 10_000,
  decideMs: 5_000,
  // Leaves two thirds of the memory that Cedar may have to the next job.
  workerMemoryBytes: 128 * mebibyte,
};

const maxWaitingCompiles = 64;
const maxWaitingDecisions = 1024;

/** Before all that waits. */
const urgent = -1;

/** What was cut short may have met a busy machine. */
const tryAgainAfterMs = 120_000;

/** What asking came to. */
type Answer =
  | { readonly kind: "decision"; readonly decision: Decision }
  | { readonly kind: "none"; readonly reason: string };

/**
 * A policy engine that has compiled nothing yet. It remembers 1024 policies, whose texts have 32 MiB
 * together, and 4096 decisions: a decision follows from the policy, the principal and the question
 * alone. It has two threads, so that no decision and no operator waits for Compositions' policies.
 */
export function createPolicyEngine(options: PolicyEngineOptions): PolicyEngine {
  const { monotonicMs } = options;
  const openQueue = (maxWaiting: number) =>
    createJobQueue(options.startWorker ?? startPolicyWorker, {
      ...defaultLimits,
      ...options.limits,
      maxWaiting,
    });
  const compositions = openQueue(maxWaitingCompiles);
  const decisionsAndOperator = openQueue(maxWaitingDecisions);
  const results = createMemory<CompileResult>(
    { maxKeys: 1024, maxChars: 32 * mebibyte, charsOf: charsOfResult },
    monotonicMs,
  );
  const answers = createMemory<Answer>(
    { maxKeys: 4096, maxChars: 4 * mebibyte },
    monotonicMs,
  );
  const rulesOf = new WeakMap<CompiledPolicy, readonly PolicyRule[]>();
  const texts = new LRUCache<string, PolicyText>({
    max: 1024,
    maxSize: 32 * mebibyte,
    sizeCalculation: (_, text) => text.length + 1,
  });

  /** A step's text is the same string on every request, and to hash a megabyte takes a millisecond. */
  function lookAt(text: string): PolicyText {
    const known = texts.get(text);
    if (known !== undefined) return known;
    const seen = examine(text);
    texts.set(text, seen);
    return seen;
  }

  function beginCompile(
    text: string,
    hash: string,
    layer: PolicyLayer,
  ): Work<CompileResult> {
    const job = { kind: "compile", hash, text } as const;
    const { outcome, drop } =
      layer === "operator"
        ? decisionsAndOperator.run(job, urgent)
        : compositions.run(job, text.length);
    const resultOf = (outcome: JobOutcome): Remembered<CompileResult> => {
      if (outcome.kind === "refused") return forEver(refusal(outcome.message));
      if (outcome.kind !== "compiled") {
        const result = refusal(tooComplex(reasonOf(outcome)));
        return { value: result, holdsForMs: holdsForMs(outcome, layer) };
      }
      const policy = compiledPolicy(text, hash, outcome.report);
      rulesOf.set(policy, outcome.report.rules);
      return forEver({ kind: "ok", policy });
    };
    return { result: outcome.then(resultOf), drop };
  }

  function beginDecision(
    policy: CompiledPolicy,
    principal: Principal,
    question: Question,
  ): Work<Answer> {
    const rules = rulesOf.get(policy);
    if (rules === undefined)
      throw unavailable("it did not compile this policy");
    const { hash, text } = policy;
    const { outcome, drop } = decisionsAndOperator.run(
      { kind: "decide", hash, text, principal, question },
      0,
    );
    const answerTo = (outcome: JobOutcome): Remembered<Answer> =>
      outcome.kind === "decided"
        ? forEver({
            kind: "decision",
            decision: decisionOf(outcome.verdict, rules, question),
          })
        : { value: noAnswer(question, outcome), holdsForMs: tryAgainAfterMs };
    return { result: outcome.then(answerTo), drop };
  }

  return {
    async compile(text, layer = "composition", waiter = null) {
      const { objection, hash } = lookAt(text);
      if (objection !== null) return refusal(objection);
      // Not shared between layers: an operator does not wait where Compositions do.
      return await results.recall(
        `${layer} ${hash}`,
        () => beginCompile(text, hash, layer),
        waiter,
      );
    },
    async decide(policy, principal, question, waiter = null) {
      const answer = await answers.recall(
        decisionKey(policy, principal, question),
        () => beginDecision(policy, principal, question),
        waiter,
      );
      if (answer.kind === "decision") return answer.decision;
      throw unavailable(`it came to no decision: ${answer.reason}`);
    },
    async close() {
      await Promise.all([compositions.close(), decisionsAndOperator.close()]);
    },
  };
}

/** What is known of a text before Cedar sees it. */
interface PolicyText {
  readonly objection: string | null;
  /** "" where there is an objection. */
  readonly hash: string;
}

function examine(text: string): PolicyText {
  const objection = objectionTo(text);
  if (objection !== null) return { objection, hash: "" };
  const hash = createHash("sha256").update(text).digest("hex");
  return { objection, hash };
}

function objectionTo(text: string): string | null {
  const sizeBytes = Buffer.byteLength(text);
  if (sizeBytes > maxPolicyBytes)
    return `expected at most ${maxPolicyBytes} bytes, got ${sizeBytes}`;
  if (/\p{Surrogate}/u.test(text))
    return "expected Unicode text, got half of a surrogate pair";
  return null;
}

function refusal(message: string): CompileResult {
  return Object.freeze({ kind: "error", message });
}

function tooComplex(reason: string): string {
  return `it is too complex for Cedar to judge: use more and simpler rules (${reason})`;
}

/** Why a job that came to nothing did. */
function reasonOf(outcome: JobOutcome): string {
  return escaped(outcome.kind === "stopped" ? outcome.reason : outcome.kind);
}

/** The failure is all that is kept, so it is not the policy's text that counts. */
function charsOfResult(result: CompileResult): number {
  return result.kind === "ok"
    ? result.policy.text.length
    : result.message.length;
}

function noAnswer(question: Question, outcome: JobOutcome): Answer {
  // A demand that cannot be denied is a demand.
  return question.action === "requireSignature"
    ? { kind: "decision", decision: signatureRequired }
    : { kind: "none", reason: reasonOf(outcome) };
}

function forEver<T>(value: T): Remembered<T> {
  return { value, holdsForMs: null };
}

/** An operator tries again by itself, and what was only slow may then be quicker. */
function holdsForMs(outcome: JobOutcome, layer: PolicyLayer): number {
  const wasSlow = outcome.kind === "stopped" && outcome.timedOut;
  return wasSlow && layer === "operator" ? 0 : tryAgainAfterMs;
}

function compiledPolicy(
  text: string,
  hash: string,
  { rules, scopedActions, warnings, dialAddress }: PolicyReport,
): CompiledPolicy {
  const { permit, forbid } = dialAddress;
  for (const prefix of [permit, forbid, ...permit, ...forbid])
    Object.freeze(prefix);
  return Object.freeze({
    text,
    hash,
    ruleCount: rules.length,
    warnings: Object.freeze(warnings),
    scopedActions: new Set(scopedActions),
    dialAddress: Object.freeze({ permit, forbid }),
  });
}
