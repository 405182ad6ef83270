import type { X509Certificate } from "node:crypto";

import type { Clock, Logger } from "../ports.js";
import { notAfterOf } from "./certificate-dates.js";
import type { TlsIdentity } from "./tls-files.js";

const dayMs = 86_400_000;
const soonMs = 30 * dayMs;

/** A certificate of a set, with what is asked of it every time. */
interface Watched {
  readonly file: string;
  /** The same for the same certificate in another set. */
  readonly key: string;
  readonly endsAtMs: number;
  readonly notAfter: string;
}

/**
 * Warns of every certificate of a set that has less than 30 days left: when it is first seen, and
 * then once a day for as long as somebody asks, in whatever set it is.
 */
export function createExpiryWarning(
  clock: Clock,
  logger: Logger,
): (identity: TlsIdentity) => void {
  const toldAtMs = new Map<string, number>();
  let watched: readonly Watched[] = [];
  let watchedIn: TlsIdentity | null = null;
  return (identity) => {
    const nowMs = clock.nowMs();
    if (watchedIn !== identity) {
      watchedIn = identity;
      watched = certificatesOf(identity);
      forgetBefore(nowMs - dayMs);
    }
    for (const certificate of watched) {
      if (certificate.endsAtMs - nowMs < soonMs) warn(certificate, nowMs);
    }
  };

  function warn({ key, file, endsAtMs, notAfter }: Watched, nowMs: number) {
    const atMs = toldAtMs.get(key);
    if (atMs !== undefined && nowMs - atMs < dayMs) return;
    toldAtMs.set(key, nowMs);
    logger.warn(
      { file, notAfter },
      endsAtMs < nowMs ? "certificate has expired" : "certificate expires soon",
    );
  }

  function forgetBefore(limitMs: number): void {
    for (const [key, atMs] of toldAtMs) {
      if (atMs <= limitMs) toldAtMs.delete(key);
    }
  }
}

function certificatesOf(identity: TlsIdentity): readonly Watched[] {
  return [
    watch("tls.crt", identity.leaf),
    ...identity.clientAuthorities.map((each) => watch("ca.crt", each)),
  ];
}

function watch(file: string, certificate: X509Certificate): Watched {
  return {
    file,
    key: `${file} ${certificate.fingerprint256}`,
    endsAtMs: Date.parse(certificate.validTo),
    notAfter: notAfterOf(certificate),
  };
}
