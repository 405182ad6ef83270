import { domainToUnicode } from "node:url";

import ipaddr from "ipaddr.js";

import { quoted } from "../../errors.js";
import type { Parsed } from "../../ports.js";

const MAX_CHARS = 253;
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/u;
const IPV6 = /^(?<open>\[?)(?<address>[0-9a-f:.]*:[0-9a-f:.]*)(?<close>\]?)$/iu;
/** By ipaddr.js's names: IPv4-mapped, IPv4-translated, NAT64, 6to4 and Teredo. */
const IPV4_INSIDE = ["ipv4Mapped", "rfc6145", "rfc6052", "6to4", "teredo"];
/** IPv4-compatible, which includes the unspecified address and loopback. */
const COMPATIBLE = ipaddr.IPv6.parseCIDR("::/96");

/**
 * Reads a DNS name or an IP address as a URL parser writes it: lower case, without trailing dot,
 * IPv6 compressed and without brackets. What a URL parser would take for another host, such as
 * `127.1` or `0x7f.0.0.1`, is refused: a policy would see one host and the network another. So is an
 * IPv4 address inside an IPv6 one, such as `::ffff:127.0.0.1`.
 */
export function parseHost(text: string): Parsed<string> {
  const ipv6 = parseIpv6(text);
  if (ipv6 !== undefined) {
    if (!hasIpv4Inside(ipv6)) return { kind: "ok", value: ipv6 };
    return {
      kind: "error",
      message: `${quoted(text)} is an IPv6 address with an IPv4 address inside, write the IPv4 address`,
    };
  }
  const name = canonicalName(text);
  if (name !== undefined) return { kind: "ok", value: name };
  return {
    kind: "error",
    message: `expected a DNS name or an IP address, got ${quoted(text)}${hint(text)}`,
  };
}

/** Reads `*.` and a DNS name of at least one label: the names under it, not itself. */
export function parseHostPattern(text: string): Parsed<string> {
  const name = text.startsWith("*.") ? canonicalName(text.slice(2)) : undefined;
  if (name !== undefined && !isIpv4(name))
    return { kind: "ok", value: `*.${name}` };
  return {
    kind: "error",
    message: `expected "*." and a DNS name, such as "*.example.com", got ${quoted(text)}`,
  };
}

function parseIpv6(text: string): string | undefined {
  const { open, address, close } = IPV6.exec(text)?.groups ?? {};
  if ((open === "[") !== (close === "]") || address === undefined)
    return undefined;
  const canonical = urlHost(`[${address}]`);
  return canonical?.slice(1, -1);
}

function hasIpv4Inside(text: string): boolean {
  const address = ipaddr.IPv6.parse(text);
  const range = address.range();
  if (range === "unspecified" || range === "loopback") return false;
  return IPV4_INSIDE.includes(range) || address.match(COMPATIBLE);
}

function canonicalName(text: string): string | undefined {
  const name = text.toLowerCase().replace(/\.$/u, "");
  if (name.length > MAX_CHARS) return undefined;
  if (!name.split(".").every((label) => LABEL.test(label))) return undefined;
  if (name.split(".").some(isBroken)) return undefined;
  return urlHost(name) === name ? name : undefined;
}

/** Whether a label is no international name in spite of its prefix: Node 24 parses those, too. */
function isBroken(label: string): boolean {
  if (!label.startsWith("xn--")) return false;
  const decoded = domainToUnicode(label);
  return decoded === "" || decoded.startsWith("xn--");
}

function urlHost(host: string): string | undefined {
  const url = `http://${host}/`;
  return URL.canParse(url) ? new URL(url).hostname : undefined;
}

function isIpv4(name: string): boolean {
  return /^[\d.]+$/u.test(name);
}

function hint(text: string): string {
  if (text.includes("*")) return ": a wildcard belongs in hostPattern";
  if (text.includes("/")) return ": a host has no scheme and no path";
  if (text.includes("@")) return ": a host has no user";
  if (text.includes("%")) return ": an address has no zone";
  if (/^[^:]*:\d*$|\]:\d*$/u.test(text)) return ": the port has its own field";
  if (/[^\p{ASCII}]/u.test(text))
    return ": write an international name in its ASCII form (xn--…)";
  if (/^(?:[\d.]|0x[\da-f]*)+$/iu.test(text))
    return ": an IPv4 address is four decimal numbers";
  return "";
}
