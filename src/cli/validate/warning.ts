import type { AdmittedInput, InputCeilings } from "../../admission/index.js";
import { quoted } from "../../errors.js";
import type { ModuleSource } from "../../ports.js";
import { objectOrEmpty } from "../files/fields.js";
import type { Subject } from "./subject.js";

/** What is admitted, and may all the same not be meant. Never changes the exit code. */
export interface Warning {
  readonly code: WarningCode;
  /** One line, escaped. */
  readonly message: string;
}

/** `docs/validate.md` lists them. */
export type WarningCode =
  | "credential-undeclared"
  | "deprecated-version"
  | "egress-unsigned"
  | "limit-at-ceiling"
  | "not-resolved"
  | "manifest-for-any-module"
  | "path-source"
  | "policy-remark"
  | "tag-not-answered"
  | "xr-mismatch";

/** What an Input alone gives reason to say. */
export function inputWarnings(
  { input, step }: Subject,
  admitted: AdmittedInput,
  ceilings: InputCeilings,
): Warning[] {
  const { apiVersion, deprecated, limits, module } = admitted;
  const warnings: Warning[] = [];
  const warn = (code: WarningCode, message: string) =>
    warnings.push({ code, message });
  if (deprecated) {
    warn(
      "deprecated-version",
      `apiVersion ${apiVersion} is deprecated: write wasm.fn.crossplane.io/v1`,
    );
  }
  const type = module.kind === "static" ? module.source.type : module.type;
  if (type === "Path" && step !== null) {
    warn(
      "path-source",
      "module.type Path names a file under the --module-dir of each runtime, and nothing pins what is in it: use OCI or HTTP in a Composition",
    );
  }
  const written = objectOrEmpty(input?.["limits"]);
  const warnAtCeiling = (limit: "timeout" | "memory", ceiling: string) => {
    if ((written[limit] ?? null) === null) return;
    warn(
      "limit-at-ceiling",
      `limits.${limit} equals the runtime's ${ceiling}: a runtime with a lower one refuses it`,
    );
  };
  if (limits.timeoutMs === ceilings.timeoutMs)
    warnAtCeiling("timeout", `--module-timeout of ${ceilings.timeoutText}`);
  if (limits.memoryBytes === ceilings.memoryBytes)
    warnAtCeiling("memory", `--module-memory-limit of ${ceilings.memoryText}`);
  return warnings;
}

/** What the compositionPolicy may not mean, and what the XR may borrow. */
export function policyWarnings(
  remarks: readonly string[],
  { module }: AdmittedInput,
): Warning[] {
  const warnings = remarks.map((remark): Warning => ({
    code: "policy-remark",
    message: `compositionPolicy: ${remark}`,
  }));
  if (module.kind === "from" && module.manifestPath !== null) {
    warnings.push({
      code: "manifest-for-any-module",
      message:
        "module.manifestPath is the manifest of whichever file the composite resource names: what it is granted, every module under --module-dir is",
    });
  }
  return warnings;
}

/** Whether the step lacks the credential that its module is pulled with. */
export function pullWarnings(
  { step }: Subject,
  source: ModuleSource,
  field: string,
): Warning[] {
  if (source.type !== "OCI" || source.credentials === null) return [];
  if (step === null || step.credentials.has(source.credentials)) return [];
  return [
    {
      code: "credential-undeclared",
      message: `${field} names the credential ${quoted(source.credentials)}, which the pipeline step does not declare: the module cannot be pulled with it`,
    },
  ];
}
