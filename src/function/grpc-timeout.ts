import { EventEmitter } from "node:events";
import type { IncomingHttpHeaders } from "node:http2";

import type { Server } from "@grpc/grpc-js";

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

/**
 * Makes `server` read `grpc-timeout` as gRPC defines it. By itself grpc-js looks for something like
 * a timeout anywhere in the value, and one of more than 24.8 days overflows: such a call would end
 * at once with DEADLINE_EXCEEDED. What is so far away is no deadline; what is no timeout is made
 * one that grpc-js refuses.
 *
 * grpc-js reads the header before any interceptor, and tells it to nobody; so this comes first on
 * the HTTP/2 servers beneath, which are private. To be called once they have been made.
 * @throws Error when there is none, which only another version of grpc-js can bring about
 */
export function readTimeoutsStrictly(server: Server): void {
  const servers: unknown = Reflect.get(server, "http2Servers");
  const emitters = servers instanceof Map ? [...servers.keys()] : [];
  if (emitters.length === 0) throw new Error("grpc-js has no HTTP/2 server");
  for (const emitter of emitters) {
    if (!(emitter instanceof EventEmitter)) {
      throw new Error("grpc-js has an HTTP/2 server of an unknown kind");
    }
    emitter.prependListener(
      "stream",
      (_stream: unknown, headers: IncomingHttpHeaders) =>
        correctTimeout(headers),
    );
  }
}

/** What a status that grpc-js makes of {@link notATimeout} starts with. */
export const invalidTimeoutDetails = `Invalid ${header} value`;

/** What to tell the caller instead. */
export const expectedTimeout = `${header}: expected up to 8 digits and one of H, M, S, m, u and n`;

/** Refused by grpc-js's own parser. */
const notATimeout = "invalid";

/** Rewrites the header where grpc-js would misread it. */
function correctTimeout(headers: IncomingHttpHeaders): void {
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
