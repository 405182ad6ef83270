import type { X509Certificate } from "node:crypto";

import { isWithinDates, notAfterOf, notBeforeOf } from "./certificate-dates.js";
import { subjectBytes } from "./certificate-der.js";

/** Why no client could come in with a set of certificates, whose files are all in order. */
export interface Unusable {
  readonly file: "ca.crt" | "tls.crt";
  /** For whoever runs the server. */
  readonly reason: string;
}

/** Whoever made the certificate just now may have a clock that is ahead of ours. */
const clockSkewMs = 300_000;

/**
 * A server names all its authorities to every client. Go reads no handshake message of more than
 * 65,536 bytes, and OpenSSL writes no longer list than 65,535: every handshake would fail.
 */
const maxSubjectBytes = 60_000;

/** Before each name there is its length. */
const lengthBytes = 2;

/** What keeps every client out, or null. */
export function whyUnusable(
  leaf: X509Certificate,
  clientAuthorities: readonly X509Certificate[],
  nowMs: number,
): Unusable | null {
  const isValid = (certificate: X509Certificate) =>
    isWithinDates(certificate, nowMs, clockSkewMs);
  if (!isValid(leaf)) {
    return {
      file: "tls.crt",
      reason: `expected a certificate that is valid now, got one from ${notBeforeOf(leaf)} to ${notAfterOf(leaf)}`,
    };
  }
  const authorities = clientAuthorities.filter(({ ca }) => ca);
  const [first] = authorities;
  if (first === undefined) {
    return {
      file: "ca.crt",
      reason: `expected the certificate of an authority (CA:TRUE), got ${clientAuthorities.length} of others`,
    };
  }
  if (!authorities.some(isValid)) {
    return {
      file: "ca.crt",
      reason: `expected an authority that is valid now, got ${authorities.length}, the first from ${notBeforeOf(first)} to ${notAfterOf(first)}`,
    };
  }
  const namesBytes = clientAuthorities
    .map((authority) => subjectBytes(authority) + lengthBytes)
    .reduce((sum, bytes) => sum + bytes, 0);
  if (namesBytes > maxSubjectBytes) {
    return {
      file: "ca.crt",
      reason: `expected authorities whose subjects take at most ${maxSubjectBytes} bytes together, got ${namesBytes} in ${clientAuthorities.length}`,
    };
  }
  return null;
}
