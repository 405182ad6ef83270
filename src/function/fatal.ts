import { AdmissionError, type AdmissionErrorCode } from "../admission/index.js";
import type { EngineErrorCode } from "../engine/index.js";
import { WasmFunctionError } from "../errors.js";
import type { LoaderErrorCode } from "../loader/index.js";
import type { RequestOutcome } from "../ports.js";
import type { FunctionErrorCode } from "./error.js";

type ErrorCode =
  AdmissionErrorCode | EngineErrorCode | FunctionErrorCode | LoaderErrorCode;

/** What a caller is told when a request cannot go on. */
export interface Fatal {
  readonly code: ErrorCode | "internal";
  readonly message: string;
  /**
   * A permanent failure may be replayed from Crossplane's response cache for `--ttl`; a transient
   * one must not be.
   */
  readonly permanence: "permanent" | "transient";
  /** How the request is counted. */
  readonly outcome: Extract<RequestOutcome, "refused" | "error">;
}

/** Turns anything that was thrown into what the caller is told. Never throws. */
export function fatalFrom(thrown: unknown): Fatal {
  if (isKnown(thrown)) {
    const { code, message } = thrown;
    const isRefusal =
      thrown instanceof AdmissionError
        ? code !== "policy-unavailable"
        : code === "input-missing" || code === "input-unreadable";
    const outcome = isRefusal ? "refused" : "error";
    return { code, message, permanence: permanenceByCode[code], outcome };
  }
  // A fault of ours: what it says is for the operator's log, not for an XR author.
  const message = "internal error of the function runtime: see its log";
  return {
    code: "internal",
    message,
    permanence: "transient",
    outcome: "error",
  };
}

/**
 * Permanent is what the same request meets again until somebody changes something: it follows from
 * the request, the operator's flags and policy, and the module's bytes alone. A guest has a clock and may depend on the
 * outside world, so nothing it does is permanent, and neither is what depends on load or on files.
 */
const permanenceByCode = {
  "input-version": "permanent",
  "input-invalid": "permanent",
  "field-unknown": "permanent",
  "field-removed": "permanent",
  "limit-exceeded": "permanent",
  "source-refused": "permanent",
  "from-unset": "permanent",
  "from-invalid": "permanent",
  "policy-missing": "permanent",
  "policy-invalid": "permanent",
  "operator-policy-invalid": "transient",
  "policy-unavailable": "transient",
  "pull-refused": "permanent",
  "spend-refused": "permanent",
  "signature-unverifiable": "permanent",
  "manifest-invalid": "transient",
  "abi-mismatch": "permanent",
  "runtime-too-old": "permanent",
  "config-invalid": "permanent",
  "operator-policy-missing": "permanent",
  "composition-refused": "permanent",
  "operator-refused": "permanent",
  "capability-not-supported": "permanent",
  "credential-missing": "permanent",
  "credential-refused": "permanent",
  "env-invalid": "permanent",

  "module-dir-unset": "permanent",
  "module-dir-unreadable": "transient",
  "path-invalid": "permanent",
  "path-outside-module-dir": "transient",
  "module-not-found": "transient",
  "module-not-regular": "transient",
  "module-too-large": "transient",
  "module-empty": "transient",
  "module-unreadable": "transient",
  "module-changed": "transient",
  "resolve-cancelled": "transient",
  "still-resolving": "transient",
  "registry-unreachable": "transient",
  "tls-failed": "transient",
  "plain-http-refused": "transient",
  "redirect-refused": "transient",
  "registry-refused": "transient",
  "registry-auth-failed": "transient",
  "token-realm-refused": "transient",
  "pull-credential-invalid": "transient",
  "pull-credential-missing": "transient",
  "answer-too-large": "transient",
  "answer-invalid": "transient",
  "digest-mismatch": "transient",
  "expected-digest-mismatch": "transient",
  "artifact-invalid": "transient",
  "access-unproven": "transient",
  "cache-unwritable": "transient",

  "module-invalid": "permanent",
  "compile-failed": "transient",
  "still-compiling": "transient",
  "load-failed": "transient",
  "slot-wait": "transient",
  "run-timeout": "transient",
  "run-deadline": "transient",
  "run-cancelled": "transient",
  "run-memory": "transient",
  "run-trap": "transient",
  "run-error": "transient",
  "response-invalid": "transient",
  "engine-fault": "transient",

  "wire-malformed": "permanent",
  "input-missing": "permanent",
  "input-unreadable": "permanent",
  "response-too-large": "transient",
  "response-malformed": "transient",
  "start-refused": "permanent",
} as const satisfies Record<ErrorCode, Fatal["permanence"]>;

function isKnown(thrown: unknown): thrown is WasmFunctionError<ErrorCode> {
  return (
    thrown instanceof WasmFunctionError &&
    Object.hasOwn(permanenceByCode, String(thrown.code))
  );
}
