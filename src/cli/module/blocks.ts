import type { JsonObject } from "@bufbuild/protobuf";

import type { ModuleManifest } from "../../admission/index.js";
import { writeYaml } from "../render/write-yaml.js";

/** What a module cannot run without, as in its manifest: what the operator has to grant. */
export type RequiresObject = JsonObject;

/** `requires` as a manifest has it, hosts and defaults written out; null = nothing. */
export function requiresObject({
  requires,
}: ModuleManifest): RequiresObject | null {
  const { credentials, egress, env, privateTmp } = requires;
  const object: JsonObject = {
    ...(egress.length > 0 && { egress: { http: egress.map(egressObject) } }),
    ...(privateTmp && { filesystem: { privateTmp } }),
    ...(env.length > 0 && {
      env: env.map(({ name, credential, key }) => ({
        name,
        fromCredential: { name: credential, key },
      })),
    }),
    ...(credentials.length > 0 && { credentials: [...credentials] }),
  };
  return Object.keys(object).length === 0 ? null : object;
}

/** The block `requires:`, or a line that there is none. */
export function requiresBlock(requires: RequiresObject | null): string {
  return requires === null
    ? "requires nothing: the operator has nothing to grant\n"
    : writeYaml({ requires });
}

/** The `module` of an Input that runs what a reference with a digest names. */
export function moduleObject(ref: string) {
  return { type: "OCI", oci: { ref } };
}

/** The block `module:` to paste into an Input. */
export function moduleBlock(ref: string): string {
  // The type first, as people write it.
  return `module:\n  type: OCI\n  oci:\n    ${writeYaml({ ref })}`;
}

function egressObject(
  rule: ModuleManifest["requires"]["egress"][number],
): JsonObject {
  const { host, methods, pathPrefix, scheme, port } = rule;
  return {
    ...(host.startsWith("*.") ? { hostPattern: host } : { host }),
    methods: [...methods],
    ...(pathPrefix !== "" && { pathPrefix }),
    scheme,
    port,
  };
}
