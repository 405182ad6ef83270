import { quoted } from "../../errors.js";
import type { Parsed } from "../../ports.js";

/** What a path may hold as it is, and percent escapes. */
const PATH = /^\/(?:[\w\-.~!$&'()*+,;=:@/]|%[0-9a-f]{2})*$/iu;
/** A slash, a backslash or a dot that not every server sees before it decodes. */
const HIDDEN = /%(?:2f|5c|2e)/iu;
/** With parameters or not: servlet containers drop them, and `/a/..;/b` is `/b`. */
const DOTS = /^\.{1,2}(?:;|%3b|$)/iu;

/**
 * Reads the beginning of a URL's path, as a URL parser writes it. Whatever might mean another path
 * to the server than to us is refused: dot segments, with parameters (`..;x`) or without, backslashes, hidden slashes and dots.
 */
export function parsePathPrefix(text: string): Parsed<string> {
  const problem = problemOf(text);
  if (problem === undefined) return { kind: "ok", value: text };
  return {
    kind: "error",
    message: `expected a path such as "/v1/", got ${quoted(text)}: ${problem}`,
  };
}

function problemOf(text: string): string | undefined {
  if (!text.startsWith("/")) return 'it does not start with "/"';
  if (/[?#]/u.test(text)) return "it has a query or a fragment";
  if (text.includes("\\")) return "it has a backslash";
  if (text.split("/").some((segment) => DOTS.test(segment)))
    return 'it has a segment "." or ".."';
  if (HIDDEN.test(text)) return "it has an escaped slash, backslash or dot";
  if (!PATH.test(text) || new URL(`http://h${text}`).pathname !== text)
    return "it has characters that a URL escapes";
  return undefined;
}
