import type { PolicyJson } from "@cedar-policy/cedar-wasm";

import type { Parsed } from "../../ports.js";
import type { Cedar } from "./cedar.js";
import { cedarMessage } from "./cedar-message.js";
import { policySchema } from "./schema.js";
import { inTextOrder } from "./structure.js";

/**
 * Whether a policy parses, has no templates and fits the schema; if so, what Cedar read, in the order
 * of the text. A refusal is in Cedar's words.
 */
export function vet(cedar: Cedar, text: string): Parsed<PolicyJson[]> {
  const parts = cedar.policySetTextToParts(text);
  if (parts.type === "failure")
    return refused(cedarMessage(parts.errors, text));
  const [template] = parts.policy_templates;
  if (template !== undefined)
    return refused(objectionToTemplate(cedar, text, template));
  const misfit = misfitOf(cedar, text);
  if (misfit !== null) return refused(misfit);
  const rules = inTextOrder(parts.policies);
  return { kind: "ok", value: rules.map((rule) => jsonOf(cedar, rule)) };
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

function misfitOf(cedar: Cedar, text: string): string | null {
  const checked = cedar.validate({
    schema: policySchema,
    policies: { staticPolicies: text },
    validationSettings: { mode: "strict" },
  });
  if (checked.type === "failure") return cedarMessage(checked.errors, text);
  // Its warnings are about rules that never apply, which does no harm.
  const errors = checked.validationErrors.map(({ error }) => error);
  return errors.length === 0 ? null : cedarMessage(errors, text);
}

function jsonOf(cedar: Cedar, rule: string): PolicyJson {
  const answer = cedar.policyToJson(rule);
  if (answer.type === "success") return answer.json;
  throw new Error(cedarMessage(answer.errors, null));
}

function refused(message: string): { kind: "error"; message: string } {
  return { kind: "error", message };
}
