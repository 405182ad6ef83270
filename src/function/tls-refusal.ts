import { errorText } from "../errors.js";
import type { ClientRefusal, Clock, Logger } from "../ports.js";
import { createLineBudget } from "./line-budget.js";
import { createMemory } from "./memory.js";

/** Why a connection is closed. */
export interface Refusal {
  /** What it is counted as. */
  readonly kind: ClientRefusal;
  /** For whoever runs the server. */
  readonly reason: string;
}

/** Tells why a connection was closed. */
export type RefusalLog = (address: string | undefined, reason: string) => void;

const toldAgainAfterMs = 600_000;
const maxRemembered = 256;
const untoldAreToldAfterMs = 10_000;

/**
 * A client retries for as long as it lives; each reason is told once in ten minutes per peer. Of
 * all peers together there are 10 lines a second, and how many more it would have been is told
 * every 10 s.
 */
export function createRefusalLog(clock: Clock, logger: Logger): RefusalLog {
  const told = createMemory<true>(
    { max: maxRemembered, ttlMs: toldAgainAfterMs },
    clock,
  );
  const mayTell = createLineBudget(clock);
  let untold = 0;

  function leaveOut(): void {
    untold += 1;
    if (untold > 1) return;
    setTimeout(() => {
      logger.warn({ dropped: untold }, "clients refused, too many to tell");
      untold = 0;
    }, untoldAreToldAfterMs).unref();
  }

  return (address, reason) => {
    const peer = address ?? "unknown";
    const key = `${peer} ${reason}`;
    if (told.has(key)) return;
    if (!mayTell()) {
      leaveOut();
      return;
    }
    told.set(key, true);
    logger.warn({ peer, reason }, "client refused");
  };
}

/** For a client that may come in, but cannot speak gRPC. */
export const noHttp2: Refusal = {
  kind: "no-http2",
  reason: "the client does not offer HTTP/2",
};

/** OpenSSL's own sentences name source files and threads; these say what an operator can look for. */
const reasons: ReadonlyMap<string, string> = new Map([
  ["ECONNRESET", "the client hung up before the TLS handshake had ended"],
  ["ERR_TLS_HANDSHAKE_TIMEOUT", "the TLS handshake took more than 10 s"],
  ["ERR_SSL_HTTP_REQUEST", "the client does not speak TLS"],
  ["ERR_SSL_WRONG_VERSION_NUMBER", "the client does not speak TLS"],
  [
    "ERR_SSL_UNSUPPORTED_PROTOCOL",
    "the client speaks no TLS of version 1.2 or newer",
  ],
]);

/** What a client says that does not like the certificate it was shown. */
const distrust = /ALERT_(?:UNKNOWN_CA|\w*CERTIFICATE\w*)$/;

/** Why a TLS handshake failed. */
export function handshakeRefusal(error: Error): Refusal {
  const code = "code" in error ? String(error.code) : "";
  if (code === "ERR_SSL_NO_APPLICATION_PROTOCOL") return noHttp2;
  if (distrust.test(code)) {
    return {
      kind: "distrusts-us",
      reason: `the client does not accept tls.crt: ${code}`,
    };
  }
  const reason =
    reasons.get(code) ?? `TLS handshake: ${code || errorText(error)}`;
  return { kind: "handshake", reason };
}
