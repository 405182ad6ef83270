import type { ValidationError } from "@cedar-policy/cedar-wasm";

import type { Cedar } from "./cedar.js";
import { cedarMessage } from "./cedar-message.js";
import { policySchemaWithoutRepository } from "./schema.js";

const maxWarnings = 32;

/**
 * The rules that Cedar says never apply, a line each. A `forbid` that never applies forbids nothing,
 * which its author cannot have meant.
 * @param warnings of Cedar's validator, with a repository in every context that may have one
 */
export function inertRules(
  cedar: Cedar,
  text: string,
  warnings: readonly ValidationError[],
): string[] {
  const never = warnings.filter(isAboutNever);
  if (never.length === 0) return [];
  const checked = cedar.validate({
    schema: policySchemaWithoutRepository,
    policies: { staticPolicies: text },
    validationSettings: { mode: "strict" },
  });
  if (checked.type === "failure") return [];
  const inertWithout = new Set(
    [
      ...checked.validationErrors,
      ...checked.validationWarnings.filter(isAboutNever),
    ].map(({ policyId }) => policyId),
  );
  const inert = never.filter(({ policyId }) => inertWithout.has(policyId));
  const lines = inert.map(({ error }) => cedarMessage([error], text));
  return [...new Set(lines)].slice(0, maxWarnings);
}

function isAboutNever({ error }: ValidationError): boolean {
  return /policy is impossible|unable to find an applicable action/u.test(
    error.message,
  );
}
