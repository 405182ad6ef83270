import { domainToUnicode } from "node:url";

import ipaddr from "ipaddr.js";

import { quoted } from "../errors.js";
import type { Parsed } from "../ports.js";

const MAX_CHARS = 253;
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/u;
const IPV6 = /^\[[0-9a-f:.]+\]$/u;
/** By ipaddr.js's names: IPv4-mapped, IPv4-translated, NAT64, 6to4 and Teredo. */
const IPV4_INSIDE = ["ipv4Mapped", "rfc6145", "rfc6052", "6to4", "teredo"];
/** IPv4-compatible, which includes the unspecified address and loopback. */
const COMPATIBLE = ipaddr.IPv6.parseCIDR("::/96");

/**
 * Reads a host without its port, and writes it in the one way that fences see and that is dialled:
 * lower case, one trailing dot dropped, an IPv6 literal as a URL parser writes it.
 *
 * Any other spelling of a host is refused when a URL parser would read it as another one: `0x7f.1`
 * and `2130706433` are 127.0.0.1 to whoever dials, and neither to a fence. The same goes for an IPv4
 * address inside an IPv6 one, such as `[::ffff:127.0.0.1]`.
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
  if (isIpv6 && hasIpv4Inside(dialled)) {
    return refused(
      text,
      "is an IPv6 address with an IPv4 address inside, write the IPv4 address",
    );
  }
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
    host.split(".").every((label) => LABEL.test(label) && !isBroken(label))
  );
}

/** Whether a label is no international name in spite of its prefix: Node 24 parses those, too. */
function isBroken(label: string): boolean {
  if (!label.startsWith("xn--")) return false;
  const name = domainToUnicode(label);
  return name === "" || name.startsWith("xn--");
}

function hasIpv4Inside(literal: string): boolean {
  const address = ipaddr.IPv6.parse(literal.slice(1, -1));
  const range = address.range();
  if (range === "unspecified" || range === "loopback") return false;
  return IPV4_INSIDE.includes(range) || address.match(COMPATIBLE);
}

function hostOfUrl(host: string): string | undefined {
  const url = `https://${host}/`;
  return URL.canParse(url) ? new URL(url).hostname : undefined;
}

function refused(text: string, reason: string): Parsed<string> {
  return { kind: "error", message: `host ${quoted(text)} ${reason}` };
}
