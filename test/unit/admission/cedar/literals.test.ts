import { beforeAll, describe, expect, it } from "vitest";

import {
  type Cedar,
  loadCedar,
} from "../../../../src/admission/cedar/cedar.js";
import { createJudge } from "../../../../src/admission/cedar/judge.js";

let cedar: Cedar;
beforeAll(async () => {
  ({ cedar } = await loadCedar());
});

/** What compiling a policy comes to: null, or why it is refused. */
function refusalOf(text: string): string | null {
  const reply = createJudge(cedar)({ kind: "compile", hash: text, text });
  if (reply.kind === "compiled") return null;
  return reply.kind === "refused" ? reply.message : reply.kind;
}

const pull = (id: string) =>
  `permit (principal, action == Action::"pullModule", resource in Repository::"${id}");`;
const egress = (id: string) =>
  `@id("e") permit (principal, action == Action::"grantEgress", resource) when { [HostPattern::"${id}"].contains(resource) };`;

describe("admission/cedar/literals", () => {
  it.each([
    "ghcr.io",
    "ghcr.io/",
    "ghcr.io/example",
    "ghcr.io/example/",
    "index.docker.io/library",
    "localhost/x",
    "localhost:5000/x",
    "reg:5000",
    "[::1]:5000/x",
    "10.0.0.1/x",
    "https://example.com",
    "https://example.com/A/b",
    "https://example.com:8443/a",
    "http://localhost:8080/a",
  ])("takes the location %s", (id) => {
    expect(refusalOf(pull(id))).toBeNull();
  });

  it.each([
    ["docker.io/acme", 'Docker Hub is "index.docker.io"'],
    ["registry-1.docker.io/acme", 'Docker Hub is "index.docker.io"'],
    ["GHCR.IO/secure", "a host is in lower case"],
    ["ghcr.io/Secure", "a repository is in lower case"],
    ["ghcr.io:443/secure", 'the default port is left out: "ghcr.io"'],
    [
      "https://example.com:443/a",
      'the default port is left out: "example.com"',
    ],
    ["http://localhost:80/a", 'the default port is left out: "localhost"'],
    ["https://Example.com/a", "a host is in lower case"],
    ["HTTPS://example.com/a", "expected https:// or http://, in lower case"],
    ["ghcr.io./secure", "a host has no dot at its end"],
    ["ghcr.io/secure/*", 'a location has no "*"'],
    ["ghcr.io/secure@sha256:ab", "without tag, digest or query"],
    ["library/nginx", "expected a registry first"],
    ["/example", "expected a host"],
  ])("refuses the location %s, which nothing is ever at", (id, want) => {
    const refusal = refusalOf(pull(id));

    expect(refusal).toMatch(`rule "policy0": Repository::"${id}": `);
    expect(refusal).toContain(want);
  });

  it.each(["example.com", "*.example.com", "com", "10.0.0.1", "::1", "[::1]"])(
    "takes the host %s",
    (id) => {
      expect(refusalOf(egress(id))).toBeNull();
    },
  );

  it.each([
    ["API.Example.com", "a host is in lower case"],
    [".example.com", "expected a host"],
    ["example.com.", "a host has no dot at its end"],
    ["*", 'with no other "*"'],
    ["a.*.com", 'with no other "*"'],
    ["https://example.com", "without scheme and path"],
    ["example.com:443", "the port is context.port"],
  ])("refuses the host %s, which nothing ever asks for", (id, want) => {
    const refusal = refusalOf(egress(id));

    expect(refusal).toMatch(`rule "e": HostPattern::"${id}": `);
    expect(refusal).toContain(want);
  });

  it.each([
    [
      'forbid (principal == Request::"me", action == Action::"setEnv", resource);',
      'rule "policy0": Request::"me": expected Request::"self", the only one',
    ],
    [
      'forbid (principal == Module::"me", action, resource);',
      'rule "policy0": Module::"me": expected Module::"module", the only one',
    ],
    [
      'permit (principal, action == Action::"requireSignature", resource) when { principal.namespace == "prod" };',
      'rule "policy0": a requireSignature rule cannot look at the principal: a signature is demanded whoever asks',
    ],
    [
      '@id("s") permit (principal is Module, action in [Action::"requireSignature"], resource);',
      'rule "s": a requireSignature rule cannot look at the principal: a signature is demanded whoever asks',
    ],
  ])("refuses %s", (text, want) => {
    expect(refusalOf(text)).toBe(want);
  });

  it("looks into sets of any length", () => {
    const hosts = Array.from(
      { length: 20_000 },
      (_, i) => `HostPattern::"h${i}"`,
    );
    const rule = (last: string) =>
      `permit (principal, action == Action::"grantEgress", resource) when { [${[...hosts, `HostPattern::"${last}"`].join(",")}].contains(resource) };`;

    expect(refusalOf(rule("last"))).toBeNull();
    expect(refusalOf(rule("LAST"))).toContain("a host is in lower case");
  });

  it("warns of a permit for every action, and of no other rule", () => {
    const reply = createJudge(cedar)({
      kind: "compile",
      hash: "h",
      text: `permit (principal, action, resource) when { principal.namespace == "a" };
        forbid (principal, action, resource);
        permit (principal, action == Action::"setEnv", resource);`,
    });

    expect(reply).toMatchObject({
      kind: "compiled",
      report: {
        warnings: [
          'rule "policy0" permits every action, pullModule and spendCredential included',
        ],
      },
    });
  });
});
