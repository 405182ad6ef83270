import fc from "fast-check";
import { describe, expect, it } from "vitest";

import {
  parseHost,
  parseHostPattern,
} from "../../../../src/admission/manifest/host.js";

const LONGEST_LABEL = "a".repeat(63);
const LONGEST_NAME = [
  LONGEST_LABEL,
  LONGEST_LABEL,
  LONGEST_LABEL,
  "b".repeat(61),
].join(".");

describe("admission/manifest/host", () => {
  describe("parseHost", () => {
    it.each([
      { name: "a name", text: "api.example.com", want: "api.example.com" },
      { name: "one label", text: "vault", want: "vault" },
      { name: "upper case", text: "API.Example.COM", want: "api.example.com" },
      { name: "a trailing dot", text: "example.com.", want: "example.com" },
      {
        name: "hyphens and digits",
        text: "a-1.2b.example",
        want: "a-1.2b.example",
      },
      {
        name: "an international name in ASCII",
        text: "xn--mnchen-3ya.de",
        want: "xn--mnchen-3ya.de",
      },
      { name: "the longest label", text: LONGEST_LABEL, want: LONGEST_LABEL },
      {
        name: "the longest name",
        text: `${LONGEST_NAME}.`,
        want: LONGEST_NAME,
      },
      { name: "IPv4", text: "169.254.169.254", want: "169.254.169.254" },
      { name: "IPv6", text: "2001:DB8:0:0::1", want: "2001:db8::1" },
      {
        name: "IPv6 in brackets",
        text: "[2001:db8::0001]",
        want: "2001:db8::1",
      },
      { name: "the IPv6 loopback", text: "::1", want: "::1" },
      { name: "no IPv6 address yet", text: "::", want: "::" },
    ])("reads $name", ({ text, want }) => {
      expect(parseHost(text)).toEqual({ kind: "ok", value: want });
    });

    it.each([
      { name: "nothing", text: "", hint: "" },
      {
        name: "a URL",
        text: "https://example.com",
        hint: ": a host has no scheme and no path",
      },
      {
        name: "a path",
        text: "example.com/v1",
        hint: ": a host has no scheme and no path",
      },
      {
        name: "a port",
        text: "example.com:443",
        hint: ": the port has its own field",
      },
      {
        name: "a port after IPv6",
        text: "[::1]:443",
        hint: ": the port has its own field",
      },
      {
        name: "a user",
        text: "user@example.com",
        hint: ": a host has no user",
      },
      {
        name: "a wildcard",
        text: "*.example.com",
        hint: ": a wildcard belongs in hostPattern",
      },
      {
        name: "a zone",
        text: "fe80::1%eth0",
        hint: ": an address has no zone",
      },
      {
        name: "an international name",
        text: "münchen.de",
        hint: ": write an international name in its ASCII form (xn--…)",
      },
      {
        name: "a name that looks like another",
        text: "ｅxample.com",
        hint: ": write an international name in its ASCII form (xn--…)",
      },
      {
        name: "a short IPv4",
        text: "127.1",
        hint: ": an IPv4 address is four decimal numbers",
      },
      {
        name: "an IPv4 of one number",
        text: "2130706433",
        hint: ": an IPv4 address is four decimal numbers",
      },
      {
        name: "a hexadecimal IPv4",
        text: "0x7f.0.0.1",
        hint: ": an IPv4 address is four decimal numbers",
      },
      {
        name: "an octal IPv4",
        text: "0177.0.0.1",
        hint: ": an IPv4 address is four decimal numbers",
      },
      {
        name: "an IPv4 out of range",
        text: "1.2.3.256",
        hint: ": an IPv4 address is four decimal numbers",
      },
      { name: "an IPv6 too long", text: "1:2:3:4:5:6:7:8:9", hint: "" },
      { name: "half a bracket", text: "[::1", hint: "" },
      { name: "the other half", text: "::1]", hint: "" },
      { name: "brackets around IPv4", text: "[127.0.0.1]", hint: "" },
      { name: "two trailing dots", text: "example.com..", hint: "" },
      { name: "a leading dot", text: ".example.com", hint: "" },
      { name: "an underscore", text: "_dmarc.example.com", hint: "" },
      { name: "a leading hyphen", text: "-a.example", hint: "" },
      { name: "a trailing hyphen", text: "a-.example", hint: "" },
      { name: "a label too long", text: `${LONGEST_LABEL}a`, hint: "" },
      { name: "a blank", text: "exa mple.com", hint: "" },
      { name: "broken punycode", text: "xn--a.example", hint: "" },
    ])("refuses $name", ({ text, hint }) => {
      expect(parseHost(text)).toEqual({
        kind: "error",
        message: `expected a DNS name or an IP address, got "${text}"${hint}`,
      });
    });

    it.each([
      { name: "mapped", text: "::ffff:127.0.0.1" },
      { name: "mapped, in hex", text: "::FFFF:7f00:1" },
      { name: "mapped, in brackets", text: "[::ffff:10.0.0.1]" },
      { name: "mapped, in full", text: "0:0:0:0:0:ffff:a00:1" },
      { name: "compatible", text: "::127.0.0.1" },
      { name: "compatible, next to loopback", text: "::2" },
      { name: "translated", text: "::ffff:0:127.0.0.1" },
      { name: "by NAT64", text: "64:ff9b::169.254.169.254" },
      { name: "by a local NAT64", text: "64:ff9b:1::a9fe:a9fe" },
      { name: "by 6to4", text: "2002:7f00:1::1" },
      { name: "by Teredo", text: "2001:0:a00:1::1" },
    ])("refuses an IPv4 address inside an IPv6 one, $name", ({ text }) => {
      expect(parseHost(text)).toEqual({
        kind: "error",
        message: `"${text}" is an IPv6 address with an IPv4 address inside, write the IPv4 address`,
      });
    });

    it("refuses a name too long", () => {
      expect(parseHost(`${LONGEST_NAME}b`).kind).toBe("error");
    });

    it("yields only what a URL parser leaves as it is", () => {
      const text = fc.oneof(
        fc.domain(),
        fc.ipV4Extended(),
        fc.ipV6(),
        fc.stringMatching(/^[\da-fx.:[\]%A-Z-]{1,12}$/),
        fc.string(),
      );

      fc.assert(
        fc.property(text, (host) => {
          const parsed = parseHost(host);
          if (parsed.kind === "error") return;
          const { value } = parsed;
          const inUrl = value.includes(":") ? `[${value}]` : value;
          expect(new URL(`https://${inUrl}/`).hostname).toBe(inUrl);
          expect(parseHost(value)).toEqual(parsed);
        }),
      );
    });
  });

  describe("parseHostPattern", () => {
    it.each([
      { text: "*.example.com", want: "*.example.com" },
      { text: "*.EXAMPLE.com.", want: "*.example.com" },
      { text: "*.svc", want: "*.svc" },
    ])("reads $text", ({ text, want }) => {
      expect(parseHostPattern(text)).toEqual({ kind: "ok", value: want });
    });

    it.each([
      { name: "every name", text: "*" },
      { name: "nothing after the dot", text: "*." },
      { name: "a name", text: "example.com" },
      { name: "a wildcard inside", text: "api.*.com" },
      { name: "two wildcards", text: "*.*.com" },
      { name: "half a label", text: "api*.example.com" },
      { name: "a wildcard and half a label", text: "*api.example.com" },
      { name: "IPv4", text: "*.0.0.1" },
      { name: "a whole IPv4", text: "*.127.0.0.1" },
      { name: "IPv6", text: "*.::1" },
      { name: "a port", text: "*.example.com:443" },
    ])("refuses $name", ({ text }) => {
      expect(parseHostPattern(text)).toEqual({
        kind: "error",
        message: `expected "*." and a DNS name, such as "*.example.com", got "${text}"`,
      });
    });
  });
});
