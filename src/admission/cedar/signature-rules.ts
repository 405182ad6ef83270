import type { PolicyJson } from "@cedar-policy/cedar-wasm";

import type { Cedar } from "./cedar.js";
import { objectsIn } from "./rule-parts.js";
import { actionsNamedBy, inTextOrder } from "./structure.js";
import { jsonOf } from "./vet.js";

/**
 * The rules of a policy that name `requireSignature` in their head, under Cedar's ids for them. A
 * signature is demanded by these alone: a rule for every action means what modules may do, and a
 * `forbid` among such rules must not switch demands off.
 */
export function signatureRules(
  cedar: Cedar,
  text: string,
): Record<string, string> {
  const parts = cedar.policySetTextToParts(text);
  if (parts.type === "failure")
    throw new Error("a policy that was vetted does not parse");
  const named = inTextOrder(parts.policies)
    .map((rule, position) => [`policy${position}`, rule] as const)
    .filter(([, rule]) => mayNameIt(rule) && namesIt(jsonOf(cedar, rule)));
  return Object.fromEntries(named);
}

/**
 * What is wrong with a rule that demands signatures, or null: whether a module must be signed does
 * not depend on who asks, so a rule that looks at the principal would never apply.
 */
export function signatureProblem(policy: PolicyJson): string | null {
  if (!namesIt(policy)) return null;
  if (policy.principal.op === "All" && !looksAtPrincipal(policy.conditions))
    return null;
  return "a requireSignature rule cannot look at the principal: a signature is demanded whoever asks";
}

function namesIt(policy: PolicyJson): boolean {
  return actionsNamedBy(policy).includes("requireSignature");
}

/** Quick, and never wrong about no: only an escape can hide a name. */
function mayNameIt(rule: string): boolean {
  return rule.includes("requireSignature") || rule.includes("\\");
}

function looksAtPrincipal(conditions: PolicyJson["conditions"]): boolean {
  for (const part of objectsIn(conditions))
    if ((part as { Var?: unknown }).Var === "principal") return true;
  return false;
}
