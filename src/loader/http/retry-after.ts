import type { HttpResponse } from "./transport.js";

/** How long a server asks to wait. */
export type RetryAfter =
  | { readonly kind: "delay"; readonly delayMs: number }
  /** On `Clock.nowMs`. */
  | { readonly kind: "date"; readonly atMs: number };

const SECONDS = /^[0-9]{1,10}$/u;
/** RFC 9110's IMF-fixdate; the forms it calls obsolete are not read. */
const HTTP_DATE =
  /^[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT$/u;

/** What a response's `Retry-After` says; `null` when there is none, several, or nonsense. */
export function retryAfterOf(response: HttpResponse): RetryAfter | null {
  const [text, ...others] = response.headers("retry-after");
  if (text === undefined || others.length > 0) return null;
  if (SECONDS.test(text))
    return { kind: "delay", delayMs: Number(text) * 1_000 };
  const atMs = HTTP_DATE.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(atMs) ? null : { kind: "date", atMs };
}
