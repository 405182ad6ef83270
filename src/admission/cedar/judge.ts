import { errorText } from "../../errors.js";
import type { Cedar } from "./cedar.js";
import { cedarMessage } from "./cedar-message.js";
import { compileDialAddress } from "./dial-address.js";
import type { JobReply, PolicyJob, Verdict } from "./messages.js";
import type { Question } from "./policy.js";
import { createPreparsedPolicies } from "./preparsed.js";
import { cedarRequest, type CedarRequest } from "./request.js";
import { readStructure } from "./structure.js";
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
    const structure = readStructure(vetted.value);
    const dialAddress = compileDialAddress(vetted.value, structure.rules);
    if (dialAddress.kind === "error")
      return { kind: "refused", message: dialAddress.message };
    const id = preparsed.keep(hash, text);
    // What overflows Cedar's stack when it is evaluated is better found now than by a request.
    for (const request of trialRequests) evaluate(cedar, id, request);
    const report = { ...structure, dialAddress: dialAddress.value };
    return { kind: "compiled", report };
  }

  function decide(job: JobOf<"decide">): JobReply {
    const { hash, text } = job;
    const known = preparsed.idOf(hash);
    if (known === undefined && text === null) return { kind: "unknown" };
    const id = known ?? preparsed.keep(hash, text ?? "");
    const request = cedarRequest(job.principal, job.question);
    const verdict = request === null ? unjudged : evaluate(cedar, id, request);
    return { kind: "decided", verdict };
  }

  return (job) => {
    try {
      return job.kind === "compile" ? compile(job) : decide(job);
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

const trialRequests = trialQuestions.flatMap(
  (question) =>
    cedarRequest({ namespace: "team", xrKind: "XApp" }, question) ?? [],
);

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
