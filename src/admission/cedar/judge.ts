import type { PolicyJson } from "@cedar-policy/cedar-wasm";

import { errorText } from "../../errors.js";
import type { Cedar } from "./cedar.js";
import { cedarMessage } from "./cedar-message.js";
import { compileDialAddress } from "./dial-address.js";
import { literalProblem } from "./literals.js";
import type { JobReply, PolicyJob, PolicyRule, Verdict } from "./messages.js";
import type { Principal, Question } from "./policy.js";
import { createPreparsedPolicies } from "./preparsed.js";
import { cedarRequest, type CedarRequest } from "./request.js";
import { signatureProblem, signatureRules } from "./signature-rules.js";
import { isForEveryAction, readStructure } from "./structure.js";
import { vet } from "./vet.js";

/** Does jobs one after the other, whatever comes of them; of no use after `trapped`. */
export type Judge = (job: PolicyJob) => JobReply;

/** A judge that works with one instance of Cedar. */
export function createJudge(cedar: Cedar): Judge {
  const preparsed = createPreparsedPolicies(cedar);

  function compile({ hash, text }: JobOf<"compile">): JobReply {
    const vetted = vet(cedar, text);
    if (vetted.kind === "error")
      return { kind: "refused", message: vetted.message };
    const { rules } = vetted.value;
    const structure = readStructure(rules);
    const problem = problemIn(rules, structure.rules);
    if (problem !== null) return { kind: "refused", message: problem };
    const dialAddress = compileDialAddress(rules, structure.rules);
    if (dialAddress.kind === "error")
      return { kind: "refused", message: dialAddress.message };
    // What overflows Cedar's stack when it is evaluated is better found now than by a request.
    for (const question of trialQuestions)
      decideBy(idFor(hash, text, question), trialPrincipal, question);
    const warnings = [
      ...vetted.value.warnings,
      ...generalPermits(rules, structure.rules),
    ];
    const report = { ...structure, warnings, dialAddress: dialAddress.value };
    return { kind: "compiled", report };
  }

  /** Cedar's id for the rules that a question is put to; undefined when it has them no more. */
  function idFor(hash: string, text: string | null, question: Question) {
    const isDemand = question.action === "requireSignature";
    const key = isDemand ? `${hash} requireSignature` : hash;
    const known = preparsed.idOf(key);
    if (known !== undefined || text === null) return known;
    return preparsed.keep(key, isDemand ? signatureRules(cedar, text) : text);
  }

  function decideBy(
    id: string | undefined,
    principal: Principal,
    question: Question,
  ): JobReply {
    if (id === undefined) return { kind: "unknown" };
    const request = cedarRequest(principal, question);
    const verdict = request === null ? unjudged : evaluate(cedar, id, request);
    return { kind: "decided", verdict };
  }

  return (job) => {
    try {
      if (job.kind === "compile") return compile(job);
      const { hash, text, principal, question } = job;
      return decideBy(idFor(hash, text, question), principal, question);
    } catch (thrown) {
      return { kind: "trapped", reason: errorText(thrown) };
    }
  };
}

type JobOf<K extends PolicyJob["kind"]> = Extract<PolicyJob, { kind: K }>;

/** As if a rule had failed that Cedar did not name. */
const unjudged: Verdict = { allowed: false, deciding: [], failed: [NaN] };

const repository = "registry.example.com/team/module";

/** One for each action that is asked. */
const trialQuestions: readonly Question[] = [
  { action: "pullModule", location: repository },
  { action: "requireSignature", location: repository },
  { action: "spendCredential", credential: "name", repository },
  { action: "usePrivateTmp" },
  { action: "setEnv", keys: ["NAME"] },
  {
    action: "grantEgress",
    host: "api.example.com",
    method: "GET",
    path: "/v1",
    scheme: "https",
    port: 443,
  },
];

const trialPrincipal: Principal = { namespace: "team", xrKind: "XApp" };

/** The first rule that cannot mean what it says. */
function problemIn(
  rules: readonly PolicyJson[],
  named: readonly PolicyRule[],
): string | null {
  for (const [position, rule] of rules.entries()) {
    const problem = literalProblem(rule) ?? signatureProblem(rule);
    if (problem !== null)
      return `rule "${named[position]?.id ?? ""}": ${problem}`;
  }
  return null;
}

/** It may be meant, and is more than most authors mean: it opens every fence. */
function generalPermits(
  rules: readonly PolicyJson[],
  named: readonly PolicyRule[],
): string[] {
  return rules.flatMap((rule, position) =>
    rule.effect === "permit" && isForEveryAction(rule)
      ? [
          `rule "${named[position]?.id ?? ""}" permits every action, pullModule and spendCredential included`,
        ]
      : [],
  );
}

function evaluate(cedar: Cedar, id: string, request: CedarRequest): Verdict {
  const answer = cedar.statefulIsAuthorized({
    ...request,
    preparsedPolicySetId: id,
    // See policySchema.
    validateRequest: false,
  });
  if (answer.type === "failure")
    throw new Error(cedarMessage(answer.errors, null));
  const { decision, diagnostics } = answer.response;
  return {
    allowed: decision === "allow",
    deciding: positions(diagnostics.reason),
    failed: positions(diagnostics.errors.map(({ policyId }) => policyId)),
  };
}

/** Cedar calls the rules of a text `policy0`, `policy1`, …, and lists them in any order. */
function positions(ids: readonly string[]): number[] {
  return ids
    .map((id) => Number(/^policy(\d+)$/.exec(id)?.[1] ?? NaN))
    .sort((a, b) => a - b);
}
