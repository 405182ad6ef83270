import type { X509Certificate } from "node:crypto";

import type { Clock, Logger } from "../ports.js";
import type { TlsIdentity } from "./tls-files.js";

const dayMs = 86_400_000;
const soonMs = 30 * dayMs;

/**
 * Warns of every certificate of a set that has less than 30 days left: when the set is first seen,
 * and then once a day for as long as somebody asks.
 */
export function createExpiryWarning(
  clock: Clock,
  logger: Logger,
): (identity: TlsIdentity) => void {
  let told: { readonly identity: TlsIdentity; readonly atMs: number } | null =
    null;
  return (identity) => {
    const nowMs = clock.nowMs();
    if (told?.identity === identity && nowMs - told.atMs < dayMs) return;
    told = { identity, atMs: nowMs };
    warn("tls.crt", identity.leaf, nowMs);
    for (const authority of identity.clientAuthorities) {
      warn("ca.crt", authority, nowMs);
    }
  };

  function warn(file: string, certificate: X509Certificate, nowMs: number) {
    const leftMs = Date.parse(certificate.validTo) - nowMs;
    if (leftMs >= soonMs) return;
    logger.warn(
      { file, notAfter: notAfterOf(certificate) },
      leftMs < 0 ? "certificate has expired" : "certificate expires soon",
    );
  }
}

/** The end of a certificate, as ISO 8601. */
export function notAfterOf(certificate: X509Certificate): string {
  const atMs = Date.parse(certificate.validTo);
  // A date of a year that JavaScript cannot tell must not end the process.
  return Number.isNaN(atMs)
    ? certificate.validTo
    : new Date(atMs).toISOString();
}
