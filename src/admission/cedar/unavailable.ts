import { AdmissionError } from "../error.js";

/** The error for work that the policy engine did not do, for a reason that may pass. */
export function unavailable(reason: string, cause?: unknown): AdmissionError {
  return new AdmissionError(
    "policy-unavailable",
    `the policy engine is not available: ${reason}`,
    { cause },
  );
}
