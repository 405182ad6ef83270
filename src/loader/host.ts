import { quoted } from "../errors.js";
import type { Parsed } from "../ports.js";

const MAX_CHARS = 253;
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/u;
const IPV6 = /^\[[0-9a-f:.]+\]$/u;

/**
 * Reads a host without its port, and writes it in the one way that fences see and that is dialled:
 * lower case, one trailing dot dropped, an IPv6 literal as a URL parser writes it.
 *
 * Any other spelling of a host is refused when a URL parser would read it as another one: `0x7f.1`
 * and `2130706433` are 127.0.0.1 to whoever dials, and neither to a fence.
 */
export function parseHost(text: string): Parsed<string> {
  const lower = text.toLowerCase();
  const host = lower.endsWith(".") ? lower.slice(0, -1) : lower;
  const isIpv6 = IPV6.test(host);
  if (!isIpv6 && !isName(host)) return refused(text, "is no host name");
  const dialled = hostOfUrl(host);
  if (dialled === undefined) return refused(text, "is no host name");
  if (!isIpv6 && dialled !== host)
    return refused(text, `is another spelling of ${dialled}, write that`);
  return { kind: "ok", value: dialled };
}

/**
 * Whether a host, as {@link parseHost} writes it, is this very machine: the whole name counts, so
 * that `localhost.example.com` and `127.0.0.1.example.com` are not.
 */
export function isLoopbackHost(host: string): boolean {
  return (
    host === "localhost" ||
    host === "[::1]" ||
    /^127\.[0-9]+\.[0-9]+\.[0-9]+$/u.test(host)
  );
}

function isName(host: string): boolean {
  return (
    host.length <= MAX_CHARS &&
    host.split(".").every((label) => LABEL.test(label))
  );
}

function hostOfUrl(host: string): string | undefined {
  const url = `https://${host}/`;
  return URL.canParse(url) ? new URL(url).hostname : undefined;
}

function refused(text: string, reason: string): Parsed<string> {
  return { kind: "error", message: `host ${quoted(text)} ${reason}` };
}
