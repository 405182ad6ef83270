import type { PolicyJson } from "@cedar-policy/cedar-wasm";

import type { Parsed } from "../../ports.js";
import type { Cedar } from "./cedar.js";
import { cedarMessage } from "./cedar-message.js";
import { inertRules } from "./inert.js";
import { policySchema } from "./schema.js";
import { inTextOrder } from "./structure.js";

/** A megabyte of ordinary rules has fewer; each costs Cedar about a millisecond. */
const maxRules = 10_000;

/** What Cedar makes of a policy that may be used. */
export interface VettedPolicy {
  /** In the order of the text. */
  readonly rules: readonly PolicyJson[];
  /** About rules that never apply, a line each. */
  readonly warnings: readonly string[];
}

/**
 * Whether a policy parses, has no templates and fits the schema; if so, what Cedar read. A refusal is
 * in Cedar's words.
 */
export function vet(cedar: Cedar, text: string): Parsed<VettedPolicy> {
  const parts = cedar.policySetTextToParts(text);
  if (parts.type === "failure")
    return refused(cedarMessage(parts.errors, text));
  const [template] = parts.policy_templates;
  if (template !== undefined)
    return refused(objectionToTemplate(cedar, text, template));
  if (parts.policies.length > maxRules) {
    return refused(
      `expected at most ${maxRules} rules, got ${parts.policies.length}`,
    );
  }
  const checked = cedar.validate({
    schema: policySchema,
    policies: { staticPolicies: text },
    validationSettings: { mode: "strict" },
  });
  if (checked.type === "failure")
    return refused(cedarMessage(checked.errors, text));
  const { validationErrors, validationWarnings } = checked;
  if (validationErrors.length > 0) {
    const errors = validationErrors.map(({ error }) => error);
    return refused(cedarMessage(errors, text));
  }
  const rules = inTextOrder(parts.policies).map((rule) => jsonOf(cedar, rule));
  const warnings = inertRules(cedar, text, validationWarnings);
  return { kind: "ok", value: { rules, warnings } };
}

/** Asked for as a rule, Cedar says which slot makes a template of it. */
function objectionToTemplate(
  cedar: Cedar,
  text: string,
  template: string,
): string {
  const answer = cedar.policyToJson(template);
  if (answer.type === "success") return "expected a rule, got a template";
  const start = text.indexOf(template);
  // A second one may be in a comment, and Cedar does not say which is the template.
  const isOnlyOne = text.lastIndexOf(template) === start;
  return cedarMessage(
    answer.errors,
    isOnlyOne ? text : null,
    Buffer.byteLength(text.slice(0, start)),
  );
}

/** Cedar's account of one rule. */
export function jsonOf(cedar: Cedar, rule: string): PolicyJson {
  const answer = cedar.policyToJson(rule);
  if (answer.type === "success") return answer.json;
  throw new Error(cedarMessage(answer.errors, null));
}

function refused(message: string): { kind: "error"; message: string } {
  return { kind: "error", message };
}
