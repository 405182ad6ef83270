import type { Socket } from "node:net";

import { LRUCache } from "lru-cache";

import { errorText } from "../errors.js";
import type { Logger } from "../ports.js";

/** Tells why a connection was closed. */
export type RefusalLog = (socket: Socket, reason: string) => void;

/** A client retries for as long as it lives; each reason is told once per peer. */
export function createRefusalLog(logger: Logger): RefusalLog {
  const told = new LRUCache<string, true>({ max: 256 });
  return (socket, reason) => {
    const peer = socket.remoteAddress ?? "unknown";
    const key = `${peer} ${reason}`;
    if (told.has(key)) return;
    told.set(key, true);
    logger.warn({ peer, reason }, "client refused");
  };
}

/** Why a client is refused that may come in, but cannot speak gRPC. */
export const noHttp2 = "the client does not offer HTTP/2";

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
  ["ERR_SSL_NO_APPLICATION_PROTOCOL", noHttp2],
]);

/** What a client says that does not like the certificate it was shown. */
const distrust = /ALERT_(?:UNKNOWN_CA|\w*CERTIFICATE\w*)$/;

/** Why a TLS handshake failed. */
export function handshakeReason(error: Error): string {
  const code = "code" in error ? String(error.code) : "";
  if (distrust.test(code)) {
    return `the client does not accept tls.crt: ${code}`;
  }
  return reasons.get(code) ?? `TLS handshake: ${code || errorText(error)}`;
}
