import type { Logger, RequestScope } from "../../ports.js";
import type {
  ActionName,
  CompiledPolicy,
  PolicyEngine,
  Principal,
  Question,
} from "../cedar/policy.js";

/** One policy, asked on behalf of one request. */
export interface Layer {
  /** Whether some `permit` matches and no `forbid` does. */
  permits(question: Question): Promise<boolean>;
  /** Whether some rule names the action: `action == …` or `action in […]`. */
  scopes(action: ActionName): boolean;
}

/** On whose behalf policies are asked. */
export interface Asker {
  readonly engine: PolicyEngine;
  readonly logger: Logger;
  /** The request that waits for the answers; null = nobody is in a hurry. */
  readonly scope: RequestScope | null;
}

/** Ties a policy to who asks; every decision is logged at debug level with the rules that made it. */
export function createLayer(
  name: "composition" | "operator",
  policy: CompiledPolicy,
  principal: Principal,
  { engine, logger, scope }: Asker,
): Layer {
  return {
    async permits(question) {
      const { allowed, rules } = await engine.decide(
        policy,
        principal,
        question,
        scope,
      );
      logger.debug(
        { layer: name, question, allowed, rules },
        "policy decision",
      );
      return allowed;
    },
    scopes: (action) => policy.scopedActions.has(action),
  };
}
