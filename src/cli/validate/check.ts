import { create, toBinary } from "@bufbuild/protobuf";

import {
  type Admission,
  AdmissionError,
  type AdmittedInput,
  type ChosenSource,
  type CompositeResource,
  type InputCeilings,
} from "../../admission/index.js";
import { escaped } from "../../errors.js";
import { fatalFrom, readInput, scanRequest } from "../../function/index.js";
import { RunFunctionRequestSchema } from "../../gen/run_function_pb.js";
import type { Logger, ModuleSource } from "../../ports.js";
import type { Findings, ModuleFinding, Refusal, Verdict } from "./finding.js";
import { resolveModule, type ResolveParts } from "./resolve.js";
import type { CompositeType, Subject } from "./subject.js";
import { inputWarnings, policyWarnings, pullWarnings } from "./warning.js";

/** What Inputs are judged with. */
export interface CheckParts {
  readonly admission: Admission;
  readonly ceilings: InputCeilings;
  /** The observed composite resource; null = unknown. */
  readonly xr: ObservedXr | null;
  /** Stands for the composite resource where it is unknown. */
  readonly unknownXr: CompositeResource;
  /** null = modules are not looked at. */
  readonly resolve: ResolveParts | null;
  readonly logger: Logger;
}

/** A composite resource and what it is. */
export interface ObservedXr {
  readonly type: CompositeType;
  readonly resource: CompositeResource;
}

/**
 * Judges one Input with the server's code, in the order of the server.
 * @throws what keeps it from being judged and is not about it, such as a registry without an answer or
 * a sandbox that does not start
 */
export async function checkSubject(
  subject: Subject,
  parts: CheckParts,
): Promise<Verdict> {
  const findings: Findings = {
    module: null,
    from: null,
    limits: null,
    compositionPolicy: false,
    grants: null,
    warnings: [],
  };
  try {
    await admit(subject, findings, parts);
    return { subject, refusal: null, ...findings };
  } catch (thrown) {
    return { subject, refusal: refusalFrom(thrown), ...findings };
  }
}

async function admit(
  subject: Subject,
  findings: Findings,
  parts: CheckParts,
): Promise<void> {
  const { admission, ceilings, resolve } = parts;
  const request = scanRequest(requestBytes(subject));
  const input = admission.readInput(readInput(request));
  findings.limits = input.limits;
  findings.compositionPolicy = input.compositionPolicy !== null;
  findings.warnings.push(
    ...inputWarnings(subject, input, ceilings),
    ...policyWarnings(await admission.remarks(input), input),
  );
  const { module } = input;
  if (module.kind === "from") findings.from = module.pathText;

  const xr = fittingXr(subject, findings, parts);
  const chosen = await choose(input, xr, parts);
  if (chosen.kind === "empty") return;
  if (chosen.kind === "open") {
    findings.module = { type: chosen.type, location: null, digest: null };
    if (resolve === null) return;
    findings.warnings.push({
      code: "not-resolved",
      message:
        "not resolved: the composite resource chooses the module, give one with --xr",
    });
    return;
  }
  const { source, policy: compositionPolicy, redirectFence } = chosen;
  findings.module = describeModule(source);
  const field =
    module.kind === "from"
      ? `module.from: ${module.pathText} of the composite resource`
      : "module.oci.credentials";
  findings.warnings.push(...pullWarnings(subject, source, field));
  if (resolve === null) return;
  await resolveModule(
    {
      source,
      compositionPolicy,
      redirectFence,
      xr: xr ?? parts.unknownXr,
      request,
      credentials: subject.step?.credentials ?? null,
    },
    findings,
    resolve,
  );
}

/** What Crossplane would send, as far as it is known. The Secrets' data is not. */
function requestBytes({ input, step }: Subject): Uint8Array {
  const source = { case: "credentialData", value: {} } as const;
  const credentials = [...(step?.credentials ?? [])].map(
    (name) => [name, { source }] as const,
  );
  const request = create(RunFunctionRequestSchema, {
    ...(input !== null && { input }),
    credentials: Object.fromEntries(credentials),
  });
  return toBinary(RunFunctionRequestSchema, request);
}

/** The XR, unless it is of another kind than the Composition is for. */
function fittingXr(
  { step }: Subject,
  { warnings }: Findings,
  { xr }: CheckParts,
): CompositeResource | null {
  if (xr === null || step === null) return xr?.resource ?? null;
  const want = typeText(step.compositeType);
  const got = typeText(xr.type);
  if (want === got || want === "") return xr.resource;
  warnings.push({
    code: "xr-mismatch",
    message: `checked as without --xr, which is ${got}: the Composition is for ${want}`,
  });
  return null;
}

function typeText({ apiVersion, kind }: CompositeType): string {
  return escaped(`${apiVersion} ${kind}`.trim(), 400);
}

type Choice =
  ChosenSource | { readonly kind: "open"; readonly type: ModuleSource["type"] };

/** Without a composite resource, everything about its choice but the choice itself is judged. */
async function choose(
  input: AdmittedInput,
  xr: CompositeResource | null,
  { admission, unknownXr, logger }: CheckParts,
): Promise<Choice> {
  const { module } = input;
  if (module.kind === "static" || xr !== null)
    return await admission.chooseSource(input, xr ?? unknownXr, logger);
  try {
    await admission.chooseSource(input, unknownXr, logger);
  } catch (thrown) {
    const isUnset =
      thrown instanceof AdmissionError && thrown.code === "from-unset";
    if (!isUnset) throw thrown;
  }
  return { kind: "open", type: module.type };
}

/** Without the query of a URL, which may be a secret. */
function describeModule(source: ModuleSource): ModuleFinding {
  const { type } = source;
  switch (type) {
    case "Path":
      return { type, location: source.path, digest: null };
    case "HTTP":
      return { type, location: source.url.location, digest: source.digest };
    case "OCI": {
      const { ref, expectedDigest } = source;
      const digest = ref.digest ?? expectedDigest;
      return { type, location: ref.text, digest };
    }
  }
}

/** Nothing that these say is about the Input. */
const TOOL_FAILURES: ReadonlySet<string> = new Set([
  "internal",
  "engine-fault",
  "load-failed",
  "operator-policy-invalid",
  "policy-unavailable",
  "cache-unwritable",
  "registry-unreachable",
  "tls-failed",
  "registry-auth-failed",
  "token-realm-refused",
  "access-unproven",
  "still-resolving",
  "pull-credential-invalid",
]);

function refusalFrom(thrown: unknown): Refusal {
  const { code, message } = fatalFrom(thrown);
  if (TOOL_FAILURES.has(code)) throw thrown;
  return { code, message };
}
