import type { Logger } from "../../ports.js";
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

/** Ties a policy to who asks; every decision is logged at debug level with the rules that made it. */
export function createLayer(
  name: "composition" | "operator",
  policy: CompiledPolicy,
  principal: Principal,
  engine: PolicyEngine,
  logger: Logger,
): Layer {
  return {
    async permits(question) {
      const { allowed, rules } = await engine.decide(
        policy,
        principal,
        question,
      );
      logger.debug(
        {
          layer: name,
          question,
          allowed,
          rules,
        },
        "policy decision",
      );
      return allowed;
    },
    scopes: (action) => policy.scopedActions.has(action),
  };
}
