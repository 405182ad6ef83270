import type { X509Certificate } from "node:crypto";

/** Whether `nowMs` is within a certificate's dates, or up to `earlyMs` before them. */
export function isWithinDates(
  { validFrom, validTo }: X509Certificate,
  nowMs: number,
  earlyMs = 0,
): boolean {
  // Dates that do not parse compare as false.
  return (
    Date.parse(validFrom) - earlyMs <= nowMs && nowMs <= Date.parse(validTo)
  );
}

/** The beginning of a certificate, as ISO 8601. */
export function notBeforeOf({ validFrom }: X509Certificate): string {
  return isoDate(validFrom);
}

/** The end of a certificate, as ISO 8601. */
export function notAfterOf({ validTo }: X509Certificate): string {
  return isoDate(validTo);
}

function isoDate(text: string): string {
  const atMs = Date.parse(text);
  // A date of a year that JavaScript cannot tell must not end the process.
  return Number.isNaN(atMs) ? text : new Date(atMs).toISOString();
}
