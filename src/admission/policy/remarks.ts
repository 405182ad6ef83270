import type { ActionName, CompiledPolicy } from "../cedar/policy.js";

/** Actions that a layer is never asked about. */
const UNASKED = {
  composition: ["requireSignature", "dialAddress"],
  operator: ["pullModule"],
} as const satisfies Record<string, readonly ActionName[]>;

/** What the author of a policy may not have meant, a line each. */
export function policyRemarks(
  policy: CompiledPolicy,
  layer: keyof typeof UNASKED,
): string[] {
  const remarks = [...policy.warnings];
  if (policy.ruleCount === 0)
    remarks.push("it has no rule: it permits nothing");
  for (const action of UNASKED[layer]) {
    if (!policy.scopedActions.has(action)) continue;
    remarks.push(
      `it has a rule for ${action}, about which this layer is never asked`,
    );
  }
  return remarks;
}
