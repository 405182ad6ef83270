import { isUtf8 } from "node:buffer";

import { AdmissionError, type EnvBinding } from "../admission/index.js";
import { escaped, quoted } from "../errors.js";
import type { EnvVariable } from "../ports.js";
import { readCredentials, type CredentialData } from "./credentials.js";
import type { ScannedRequest } from "./request.js";

/**
 * The variables of a module's environment, in the order of `bindings`, from the request's step
 * credentials.
 * @param bindings as in `requires.env` of the module's manifest: all of them, for a refusal tells
 *   the place of one
 * @param isAsked leaves out those it is false for; default none
 * @throws AdmissionError credential-missing, env-invalid; FunctionError wire-malformed
 */
export function materialiseEnv(
  request: ScannedRequest,
  bindings: readonly EnvBinding[],
  moduleDescription: string,
  isAsked: (binding: EnvBinding) => boolean = () => true,
): EnvVariable[] {
  const asked = bindings.filter(isAsked);
  if (asked.length === 0) return [];
  const names = asked.map(({ credential }) => credential);
  const carried = readCredentials(request, names);
  return asked.map((binding) => {
    const { name, credential } = binding;
    const data = carried.get(credential);
    const place = `requires.env[${bindings.indexOf(binding)}]`;
    const field = `${place} (${escaped(name)})`;
    if (data === undefined)
      throw credentialMissing(moduleDescription, field, credential);
    const result = textAt(data, binding);
    if (result.kind === "ok") return { name, value: result.value };
    throw new AdmissionError(
      result.code,
      `module ${moduleDescription}: ${field}: ${result.message}`,
    );
  });
}

/**
 * Makes sure that the request carries every credential its module reads from it.
 * @param names as in `requires.credentials` of the module's manifest
 * @throws AdmissionError credential-missing, FunctionError wire-malformed
 */
export function requireCredentials(
  request: ScannedRequest,
  names: readonly string[],
  moduleDescription: string,
): void {
  const carried = readCredentials(request, names);
  for (const [index, name] of names.entries()) {
    if (carried.has(name)) continue;
    const field = `requires.credentials[${index}]`;
    throw credentialMissing(moduleDescription, field, name);
  }
}

type TextResult =
  | { readonly kind: "ok"; readonly value: string }
  | {
      readonly kind: "error";
      readonly code: "credential-missing" | "env-invalid";
      /** Says nothing of the value: it is a secret. */
      readonly message: string;
    };

function textAt(
  data: CredentialData,
  { credential, key }: EnvBinding,
): TextResult {
  const bytes = data.get(key);
  if (bytes === undefined) {
    const message = `credential ${quoted(credential)} has no key ${quoted(key)}`;
    return { kind: "error", code: "credential-missing", message };
  }
  const what = `key ${quoted(key)} of credential ${quoted(credential)}`;
  if (!isUtf8(bytes)) {
    const message = `${what} is not UTF-8 text`;
    return { kind: "error", code: "env-invalid", message };
  }
  // A variable ends at the first one: the module would see another value than the author wrote.
  if (bytes.includes(0)) {
    const message = `${what} holds a NUL character`;
    return { kind: "error", code: "env-invalid", message };
  }
  return { kind: "ok", value: textOf(bytes) };
}

/** A byte order mark is a character like any other. */
function textOf(bytes: Uint8Array): string {
  const { buffer, byteOffset, byteLength } = bytes;
  return Buffer.from(buffer, byteOffset, byteLength).toString("utf8");
}

function credentialMissing(
  moduleDescription: string,
  field: string,
  name: string,
): AdmissionError {
  return new AdmissionError(
    "credential-missing",
    `module ${moduleDescription}: ${field}: the request carries no credential ` +
      `${quoted(name)}; declare it on the pipeline step`,
  );
}
