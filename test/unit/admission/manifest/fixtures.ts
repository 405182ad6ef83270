import type { JsonValue } from "../../../../src/admission/json.js";
import type { ModuleManifest } from "../../../../src/admission/manifest/manifest.js";
import { readManifest } from "../../../../src/admission/manifest/read-manifest.js";

/** The bytes of a text. */
export function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** Reads a manifest in the form of an OCI layer. */
export function readLayer(manifest: JsonValue | object) {
  return readManifest("layer", utf8(JSON.stringify(manifest)));
}

/** What a manifest of abi 2 with these fields says. */
export function manifestWith(fields: object): ModuleManifest {
  const result = readLayer({ abi: 2, ...fields });
  if (result.kind === "error") throw new Error(result.message);
  return result.value;
}

/** Why a manifest of abi 2 with these fields is refused. */
export function refusalOf(fields: object): string {
  const result = readLayer({ abi: 2, ...fields });
  if (result.kind === "ok") throw new Error("it was read");
  return result.message;
}
