import { createHash } from "node:crypto";

import { escaped } from "../../errors.js";
import { AdmissionError } from "../error.js";
import { decisionKey, decisionOf, undecided } from "./decision.js";
import {
  createJobQueue,
  type JobLimits,
  type JobOutcome,
} from "./job-queue.js";
import { createMemory, type Remembered } from "./memory.js";
import type { PolicyReport, PolicyRule } from "./messages.js";
import type {
  CompiledPolicy,
  CompileResult,
  Decision,
  PolicyEngine,
  Principal,
  Question,
} from "./policy.js";
import { type PolicyWorker, startPolicyWorker } from "./start-worker.js";

const mebibyte = 1024 * 1024;

/** How long a policy may be, in bytes of UTF-8. */
export const maxPolicyBytes = mebibyte;

/** For tests: each has a default. */
export interface PolicyEngineOptions {
  readonly startWorker?: () => PolicyWorker;
  readonly limits?: Partial<JobLimits>;
}

const defaultLimits: JobLimits = {
  startMs: 30_000,
  compileMs: 10_000,
  decideMs: 5_000,
  // Leaves two thirds of the memory that Cedar may have to the next job.
  workerMemoryBytes: 128 * mebibyte,
  maxWaiting: 1024,
};

/** What took too long may have met a busy machine. */
const tryAgainAfterMs = 120_000;

/**
 * A policy engine that has compiled nothing yet. It remembers 64 texts of 4 MiB together, and 4096
 * decisions: a decision follows from the policy, the principal and the question alone.
 */
export function createPolicyEngine(
  options: PolicyEngineOptions = {},
): PolicyEngine {
  const queue = createJobQueue(options.startWorker ?? startPolicyWorker, {
    ...defaultLimits,
    ...options.limits,
  });
  const results = createMemory<CompileResult>({
    maxKeys: 64,
    maxChars: 4 * mebibyte,
  });
  const decisions = createMemory<Decision>({
    maxKeys: 4096,
    maxChars: 4 * mebibyte,
  });
  const rulesOf = new WeakMap<CompiledPolicy, readonly PolicyRule[]>();

  async function compile(text: string): Promise<Remembered<CompileResult>> {
    const objection = objectionTo(text);
    if (objection !== null) return remembered(refusal(objection));
    const hash = createHash("sha256").update(text).digest("hex");
    const outcome = await queue.run({ kind: "compile", hash, text });
    if (outcome.kind === "refused") return remembered(refusal(outcome.message));
    if (outcome.kind !== "compiled")
      return remembered(refusal(tooComplex(outcome)), outcome);
    const policy = compiledPolicy(text, hash, outcome.report);
    rulesOf.set(policy, outcome.report.rules);
    return remembered({ kind: "ok", policy });
  }

  async function decide(
    policy: CompiledPolicy,
    principal: Principal,
    question: Question,
  ): Promise<Remembered<Decision>> {
    const rules = rulesOf.get(policy);
    if (rules === undefined) throw notCompiledHere();
    const { hash, text } = policy;
    const job = { kind: "decide", hash, principal, question } as const;
    let outcome = await queue.run({ ...job, text: null });
    if (outcome.kind === "unknown") outcome = await queue.run({ ...job, text });
    if (outcome.kind !== "decided")
      return remembered(undecided(question), outcome);
    return remembered(decisionOf(outcome.verdict, rules, question));
  }

  return {
    compile: (text) => results.recall(text, () => compile(text)),
    decide: (policy, principal, question) =>
      decisions.recall(decisionKey(policy, principal, question), () =>
        decide(policy, principal, question),
      ),
    close: () => queue.close(),
  };
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

function tooComplex(outcome: JobOutcome): string {
  const reason = outcome.kind === "stopped" ? outcome.reason : outcome.kind;
  return `it is too complex for Cedar to judge: use more and simpler rules (${escaped(reason)})`;
}

/** The same work comes to the same, unless it was only cut short. */
function remembered<T>(value: T, outcome?: JobOutcome): Remembered<T> {
  const wasCutShort = outcome?.kind === "stopped" && outcome.timedOut;
  return { value, holdsForMs: wasCutShort ? tryAgainAfterMs : null };
}

function compiledPolicy(
  text: string,
  hash: string,
  { rules, scopedActions, dialAddress }: PolicyReport,
): CompiledPolicy {
  const { permit, forbid } = dialAddress;
  for (const prefix of [permit, forbid, ...permit, ...forbid])
    Object.freeze(prefix);
  return Object.freeze({
    text,
    hash,
    ruleCount: rules.length,
    scopedActions: new Set(scopedActions),
    dialAddress: Object.freeze({ permit, forbid }),
  });
}

function notCompiledHere(): AdmissionError {
  return new AdmissionError(
    "policy-unavailable",
    "the policy engine is not available: it did not compile this policy",
  );
}
