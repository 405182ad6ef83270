import type { PolicyRule, Verdict } from "./messages.js";
import type {
  CompiledPolicy,
  Decision,
  Principal,
  Question,
} from "./policy.js";

/** A decision names this many rules at most; they are for logs. */
const maxRulesNamed = 32;

/** The answer where Cedar gives none: nothing else may be wrong than that nobody can say. */
export const signatureRequired: Decision = Object.freeze({
  allowed: true,
  rules: Object.freeze([]),
});

/**
 * What follows from Cedar's answer. Cedar skips a rule that fails to evaluate; here a `forbid` that
 * fails forbids, and so does one that Cedar does not name. A signature is required where any rule
 * fails.
 * @param rules of the policy that was asked, by position
 */
export function decisionOf(
  { allowed, deciding, failed }: Verdict,
  rules: readonly PolicyRule[],
  { action }: Question,
): Decision {
  const mayBeForbidden = failed.some(
    (position) => rules[position]?.effect !== "permit",
  );
  const isAllowed =
    action === "requireSignature"
      ? allowed || failed.length > 0
      : allowed && !mayBeForbidden;
  const named = [...deciding, ...failed]
    .slice(0, maxRulesNamed)
    .flatMap((position) => rules[position]?.id ?? []);
  return Object.freeze({
    allowed: isAllowed,
    rules: Object.freeze(named),
  });
}

/** All that a decision follows from, as one text: equal for equal questions, and for no others. */
export function decisionKey(
  { hash }: CompiledPolicy,
  { namespace, xrKind }: Principal,
  question: Question,
): string {
  return JSON.stringify([hash, namespace, xrKind, ...partsOf(question)]);
}

function partsOf(question: Question): readonly unknown[] {
  const { action } = question;
  switch (action) {
    case "pullModule":
    case "requireSignature":
      return [action, question.location];
    case "spendCredential":
      return [action, question.credential, question.repository];
    case "usePrivateTmp":
      return [action];
    case "setEnv":
      return [action, question.keys];
    case "grantEgress": {
      const { host, method, path, scheme, port } = question;
      return [action, host, method, path, scheme, port];
    }
  }
}
