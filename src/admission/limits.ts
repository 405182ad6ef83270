import { escaped } from "../errors.js";
import type { RunLimits } from "../ports.js";
import { parseGoDuration } from "./duration.js";
import { AdmissionError } from "./error.js";
import { describe, invalid, objectField, readFields } from "./fields.js";
import type { JsonValue } from "./json.js";
import { parseQuantity } from "./quantity.js";

/** What the operator allows. The texts are the flags' values in the operator's own notation. */
export interface LimitCeilings {
  readonly timeoutMs: number;
  readonly timeoutText: string;
  readonly memoryBytes: number;
  readonly memoryText: string;
}

const NANOS_PER_MS = 1_000_000;

/**
 * Reads the Input's `limits`; what is absent is the operator's ceiling, concurrency excepted.
 * @throws AdmissionError input-invalid, limit-exceeded, field-unknown
 */
export function readLimits(
  value: JsonValue | undefined,
  ceilings: LimitCeilings,
): RunLimits {
  const limits = readFields(objectField(value, "limits") ?? {}, "limits", {
    supported: ["timeout", "memory", "concurrency"],
  });
  return {
    timeoutMs: readTimeoutMs(limits.get("timeout"), ceilings),
    memoryBytes: readMemoryBytes(limits.get("memory"), ceilings),
    concurrency: readConcurrency(limits.get("concurrency")),
  };
}

/** Whole milliseconds, rounded up: a timeout of 1us must not become none. */
function readTimeoutMs(
  value: JsonValue | undefined,
  ceilings: LimitCeilings,
): number {
  if (value === undefined) return ceilings.timeoutMs;
  if (typeof value !== "string") {
    throw invalid(
      `limits.timeout: expected a Go duration such as "5s", got ${describe(value)}`,
    );
  }
  const duration = parseGoDuration(value);
  if (duration.kind === "error")
    throw invalid(`limits.timeout: ${duration.message}`);
  if (duration.nanos <= 0n) {
    throw invalid(
      `limits.timeout: expected more than 0, got ${describe(value)}`,
    );
  }
  if (duration.nanos > ceilings.timeoutMs * NANOS_PER_MS) {
    throw exceeded(
      "limits.timeout",
      value,
      `--module-timeout of ${ceilings.timeoutText}`,
    );
  }
  const timeoutMs = Math.ceil(Number(duration.nanos) / NANOS_PER_MS);
  return Math.min(timeoutMs, ceilings.timeoutMs);
}

function readMemoryBytes(
  value: JsonValue | undefined,
  ceilings: LimitCeilings,
): number {
  if (value === undefined) return ceilings.memoryBytes;
  const bytes = readBytes(value);
  if (bytes <= 0n)
    throw invalid(
      `limits.memory: expected more than 0, got ${describe(value)}`,
    );
  if (bytes > ceilings.memoryBytes) {
    const limit = `--module-memory-limit of ${ceilings.memoryText}`;
    throw exceeded(
      "limits.memory",
      typeof value === "string" ? value : describe(value),
      limit,
    );
  }
  return Number(bytes);
}

function readBytes(value: JsonValue): bigint {
  if (typeof value === "number" && Number.isInteger(value))
    return BigInt(value);
  if (typeof value !== "string") {
    throw invalid(
      `limits.memory: expected a Kubernetes quantity such as "128Mi" or a whole number of bytes, got ${describe(value)}`,
    );
  }
  const quantity = parseQuantity(value);
  if (quantity.kind === "error")
    throw invalid(`limits.memory: ${quantity.message}`);
  return quantity.value;
}

function readConcurrency(value: JsonValue | undefined): number | null {
  if (value === undefined) return null;
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 1)
    return value;
  // A double does not hold every number up there: what it shows may not be what was written.
  const found =
    typeof value === "number" && value > Number.MAX_SAFE_INTEGER
      ? "more"
      : describe(value);
  throw invalid(
    `limits.concurrency: expected a whole number from 1 to ${Number.MAX_SAFE_INTEGER}, got ${found}`,
  );
}

function exceeded(
  field: string,
  found: string,
  ceiling: string,
): AdmissionError {
  return new AdmissionError(
    "limit-exceeded",
    `${field} ${escaped(found)} exceeds the runtime's ${ceiling}`,
  );
}
