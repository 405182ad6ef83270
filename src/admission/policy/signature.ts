import type { ModuleSource } from "../../ports.js";
import type { CompiledPolicy, Principal } from "../cedar/policy.js";
import { AdmissionError } from "../error.js";
import { type Asker, createLayer } from "./layer.js";

/** The demand does not depend on who asks. */
const NOBODY: Principal = { namespace: "", xrKind: "" };

/**
 * Refuses a module that the operator policy wants signed (`requireSignature`): this version cannot
 * verify a signature, and must not run what nobody has verified. A Path module is never demanded to
 * be signed.
 * @throws AdmissionError signature-unverifiable
 */
export async function refuseUnverifiable(
  source: ModuleSource,
  policy: CompiledPolicy,
  asker: Asker,
): Promise<void> {
  if (source.type === "Path") return;
  if (!policy.scopedActions.has("requireSignature")) return;
  const { location } = source.type === "OCI" ? source.ref : source.url;
  const layer = createLayer("operator", policy, NOBODY, asker);
  if (!(await layer.permits({ action: "requireSignature", location }))) return;
  const module =
    source.type === "OCI" ? `OCI ${source.ref.text}` : `HTTP ${location}`;
  throw new AdmissionError(
    "signature-unverifiable",
    `cannot verify module ${module}: the operator policy requires a signature (requireSignature), and this runtime does not support signatures yet`,
  );
}
