import type { RequestScope } from "../../ports.js";

/** The actions of the one schema both layers share. */
export const actionNames = [
  "pullModule",
  "spendCredential",
  "usePrivateTmp",
  "setEnv",
  "grantEgress",
  "requireSignature",
  "dialAddress",
] as const;

export type ActionName = (typeof actionNames)[number];

/** How long a policy may be, in bytes of UTF-8. */
export const maxPolicyBytes = 1024 * 1024;

/** Who asks: the observed XR; empty strings without one. */
export interface Principal {
  readonly namespace: string;
  readonly xrKind: string;
}

/** What a layer is asked. Locations and hosts are canonical already. */
export type Question =
  | { readonly action: "pullModule"; readonly location: string }
  | {
      readonly action: "spendCredential";
      readonly credential: string;
      /** Where an XR-chosen module comes from; null for every other credential. */
      readonly repository: string | null;
    }
  | { readonly action: "usePrivateTmp" }
  | { readonly action: "setEnv"; readonly keys: readonly string[] }
  /** Whether a module at that location must be signed; nobody in particular asks. */
  | { readonly action: "requireSignature"; readonly location: string }
  | {
      readonly action: "grantEgress";
      /** A host, or `*.domain`. */
      readonly host: string;
      readonly method: string;
      /** The rule's pathPrefix, "" when it has none. */
      readonly path: string;
      readonly scheme: string;
      readonly port: number;
    };

/** A range of addresses, as `dialAddress` rules name them. */
export interface AddressPrefix {
  /** CIDR notation, for example `10.0.0.0/8`. */
  readonly cidr: string;
  /** Id of the rule that names it. */
  readonly rule: string;
}

/** A policy that parses, type-checks and can be evaluated. Frozen. */
export interface CompiledPolicy {
  readonly text: string;
  /** SHA-256 of `text` in hex: equal policies are one. */
  readonly hash: string;
  /** 0 = it has no rule, only comments at most. */
  readonly ruleCount: number;
  /** What its author may not have meant, a line each: rules that never apply, or apply to everything. */
  readonly warnings: readonly string[];
  /** Actions that at least one rule names as `action ==` or `action in`. */
  readonly scopedActions: ReadonlySet<ActionName>;
  /** What its `dialAddress` rules say; `forbid` wins. */
  readonly dialAddress: {
    readonly permit: readonly AddressPrefix[];
    readonly forbid: readonly AddressPrefix[];
  };
}

/** What came of compiling a policy; `message` is one line, made of Cedar's own words. */
export type CompileResult =
  | { readonly kind: "ok"; readonly policy: CompiledPolicy }
  | { readonly kind: "error"; readonly message: string };

/** A layer's answer. */
export interface Decision {
  readonly allowed: boolean;
  /**
   * Ids of the rules that decided, then of those that failed to evaluate, 32 at most: `@id("…")`,
   * escaped and cut to 120 characters, or `policy<n>` by position.
   */
  readonly rules: readonly string[];
}

/** Whose policy it is. */
export type PolicyLayer = "composition" | "operator";

/** Cedar, out of harm's way. Work is done for all who ask for it, and only while somebody waits. */
export interface PolicyEngine {
  /**
   * Compiles a policy, or recalls the result: equal texts are compiled once for a layer, failures
   * included. Compositions' policies wait for each other, the shortest first, and nothing else waits
   * for them; an operator's goes before all that waits.
   * @param layer default composition
   * @param waiter the request it is for; null, the default, waits as long as it takes
   * @throws AdmissionError policy-unavailable when Cedar cannot be started, too much waits for it, or
   *   the request ends first
   */
  compile(
    text: string,
    layer?: PolicyLayer,
    waiter?: RequestScope | null,
  ): Promise<CompileResult>;
  /**
   * Whether a policy permits something: some `permit` matches, no `forbid` does, and no `forbid`
   * fails to evaluate. What Cedar cannot be asked is not permitted; a signature is then required,
   * and also where Cedar gives no answer.
   * @param waiter as for `compile`
   * @throws AdmissionError policy-unavailable as for `compile`, and when Cedar gives no answer
   */
  decide(
    policy: CompiledPolicy,
    principal: Principal,
    question: Question,
    waiter?: RequestScope | null,
  ): Promise<Decision>;
  /** Idempotent. */
  close(): Promise<void>;
}
