import type { IncomingHttpHeaders } from "node:http2";

const header = "grpc-timeout";

/** Milliseconds of gRPC's units. */
const unitsMs: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};

/** Node's timers, and grpc-js's 32-bit arithmetic, know nothing later: 24.8 days. */
const maxMs = 2 ** 31 - 1;

/** What a status that grpc-js makes of {@link notATimeout} starts with. */
export const invalidTimeoutDetails = `Invalid ${header} value`;

/** What to tell the caller instead. */
export const expectedTimeout = `${header}: expected up to 8 digits and one of H, M, S, m, u and n`;

/** Refused by grpc-js's own parser. */
const notATimeout = "invalid";

/**
 * Rewrites `grpc-timeout` where grpc-js would not read it as gRPC defines it: it looks for something
 * like a timeout anywhere in the value, and one of more than 24.8 days overflows, so that the call
 * would end at once with DEADLINE_EXCEEDED. What is so far away is no deadline; what is no timeout
 * is made one that grpc-js refuses.
 */
export function correctTimeout(headers: IncomingHttpHeaders): void {
  const text = headers[header];
  if (text === undefined) return;
  const timeoutMs = parseTimeoutMs(String(text));
  if (timeoutMs === null) headers[header] = notATimeout;
  else if (timeoutMs > maxMs) headers[header] = undefined;
}

function parseTimeoutMs(text: string): number | null {
  const match = /^(?<value>[0-9]{1,8})(?<unit>[HMSmun])$/.exec(text);
  const unitMs = unitsMs[match?.groups?.["unit"] ?? ""];
  if (unitMs === undefined) return null;
  return Number(match?.groups?.["value"]) * unitMs;
}
