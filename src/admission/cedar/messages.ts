import type {
  ActionName,
  CompiledPolicy,
  Principal,
  Question,
} from "./policy.js";

/** One rule of a policy, in the place it has in the text. */
export interface PolicyRule {
  /** `@id("…")`, escaped, at most 120 characters; `policy<n>` by position without one. */
  readonly id: string;
  readonly effect: "permit" | "forbid";
}

/** What a policy turned out to say. */
export interface PolicyReport {
  /** By position in the text. */
  readonly rules: readonly PolicyRule[];
  readonly scopedActions: readonly ActionName[];
  /** As in {@link CompiledPolicy.warnings}. */
  readonly warnings: readonly string[];
  readonly dialAddress: CompiledPolicy["dialAddress"];
}

/** What Cedar answered; rules are named by their position in the text, in ascending order. */
export interface Verdict {
  readonly allowed: boolean;
  readonly deciding: readonly number[];
  /** Rules that failed to evaluate, which Cedar skips; NaN for one it did not name. */
  readonly failed: readonly number[];
}

/** What the worker is told to do, one at a time. */
export type PolicyJob =
  | { readonly kind: "compile"; readonly hash: string; readonly text: string }
  | {
      readonly kind: "decide";
      readonly hash: string;
      /** Of a policy that compiled; null = the worker may still have it. */
      readonly text: string | null;
      readonly principal: Principal;
      readonly question: Question;
    };

/** What came of a job. */
export type JobReply =
  | { readonly kind: "compiled"; readonly report: PolicyReport }
  /** The policy is refused. */
  | { readonly kind: "refused"; readonly message: string }
  | { readonly kind: "decided"; readonly verdict: Verdict }
  /** The worker has no policy of that hash any more: send its text. */
  | { readonly kind: "unknown" }
  /** Something was thrown inside Cedar, which is of no use after that. */
  | { readonly kind: "trapped"; readonly reason: string };

/** What the worker says. */
export type WorkerMessage =
  /** Once: Cedar is loaded. */
  | { readonly kind: "ready" }
  | {
      readonly kind: "reply";
      readonly reply: JobReply;
      /** How large Cedar's memory is now; it never shrinks. */
      readonly memoryBytes: number;
    };
