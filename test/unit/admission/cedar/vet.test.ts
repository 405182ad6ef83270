import { beforeAll, describe, expect, it } from "vitest";

import {
  type Cedar,
  loadCedar,
} from "../../../../src/admission/cedar/cedar.js";
import { vet } from "../../../../src/admission/cedar/vet.js";

let cedar: Cedar;
beforeAll(async () => {
  ({ cedar } = await loadCedar());
});

describe("admission/cedar/vet", () => {
  describe("accepts", () => {
    it.each([
      { name: "no text", text: "", rules: 0 },
      {
        name: "comments only (C81)",
        text: "// nothing\n// at all",
        rules: 0,
      },
      {
        name: "a rule for every action",
        text: "permit (principal, action, resource);",
        rules: 1,
      },
      {
        name: "one that asks who it is",
        text: 'permit (principal, action, resource) when { principal.namespace == "a" && principal.xrKind == "X" };',
        rules: 1,
      },
      {
        name: "CRLF (C81)",
        text: "// a\r\npermit (principal, action, resource)\r\nwhen { true };\r\n",
        rules: 1,
      },
      {
        name: "annotations (C81)",
        text: '@id("a") @note("b") permit (principal, action, resource);',
        rules: 1,
      },
      {
        name: "one @id twice",
        text: '@id("a") permit (principal, action, resource);'.repeat(2),
        rules: 2,
      },
      {
        name: "context.repository after asking for it",
        text: 'permit (principal, action == Action::"spendCredential", resource) when { context has repository && context.repository in Repository::"ghcr.io" };',
        rules: 1,
      },
      {
        name: "context.repository without asking for it",
        text: 'permit (principal, action == Action::"spendCredential", resource) when { context.repository in Repository::"ghcr.io" };',
        rules: 1,
      },
      {
        name: "every attribute there is",
        text: `permit (principal, action == Action::"pullModule", resource)
            when { principal.namespace == "a" && principal.xrKind == "b" && principal.composition == "" };
          permit (principal, action == Action::"usePrivateTmp", resource == Capability::"privateTmp");
          permit (principal, action == Action::"setEnv", resource == Capability::"env")
            when { context.keys.contains("A") };
          permit (principal, action == Action::"grantEgress", resource)
            when { resource.host like "*.com" && context.method == "GET" && context.path like "/v1/*" && context.scheme == "https" && context.port == 443 };
          permit (principal == Module::"module", action == Action::"requireSignature", resource in Repository::"ghcr.io");
          permit (principal, action == Action::"dialAddress", resource == Module::"module")
            when { context.ip.isLoopback() };`,
        rules: 6,
      },
      {
        name: "the XR's attributes in a rule for every action, when it asks for the principal's type",
        text: 'permit (principal is Request, action, resource) when { principal.namespace == "a" };',
        rules: 1,
      },
      {
        name: "a rule that never applies",
        text: 'permit (principal, action == Action::"pullModule", resource in HostPattern::"x");',
        rules: 1,
      },
    ])("$name", ({ text, rules }) => {
      const vetted = vet(cedar, text);

      expect(vetted).toMatchObject({ kind: "ok" });
      expect(vetted.kind === "ok" && vetted.value.rules).toHaveLength(rules);
    });
  });

  it("refuses more than 10,000 rules", () => {
    const text = "permit(principal,action,resource);".repeat(10_001);

    expect(vet(cedar, text)).toEqual({
      kind: "error",
      message: "expected at most 10000 rules, got 10001",
    });
  });

  describe("warns of rules that never apply", () => {
    const never =
      "policy is impossible: the policy expression evaluates to false for all valid requests";

    it.each([
      {
        name: "a forbid of another resource's type",
        text: '\nforbid (principal, action == Action::"setEnv", resource in Repository::"ghcr.io/a");',
        want: [
          "line 2: for policy `policy0`, unable to find an applicable action given the policy scope constraints",
          `line 2: for policy \`policy0\`, ${never}`,
        ],
      },
      {
        name: "a condition that is never true",
        text: 'permit (principal, action == Action::"setEnv", resource) when { false };',
        want: [`line 1: for policy \`policy0\`, ${never}`],
      },
      {
        name: "no rule that only asks for a repository",
        text: `permit (principal, action == Action::"spendCredential", resource) when { context has repository };
          permit (principal, action == Action::"spendCredential", resource) unless { context has repository };
          permit (principal, action == Action::"spendCredential", resource) when { context.repository in Repository::"ghcr.io/a" };`,
        want: [],
      },
    ])("$name", ({ text, want }) => {
      const vetted = vet(cedar, text);

      expect(vetted.kind === "ok" && [...vetted.value.warnings].sort()).toEqual(
        [...want].sort(),
      );
    });
  });

  it("gives the rules in the order of the text", () => {
    const text = Array.from(
      { length: 12 },
      (_, i) => `@id("${i}") permit (principal, action, resource);`,
    ).join("");

    const vetted = vet(cedar, text);

    expect(
      vetted.kind === "ok" &&
        vetted.value.rules.map(({ annotations }) => annotations?.["id"]),
    ).toEqual(Array.from({ length: 12 }, (_, i) => String(i)));
  });

  describe("refuses, in Cedar's words and with the line,", () => {
    it.each([
      {
        name: "what does not parse",
        text: "permit (principal,\naction, resource)\n\n",
        want: "line 2: unexpected end of input (expected `;` or identifier)",
      },
      {
        name: "a variable that does not exist",
        text: "permit (principal, action, resource)\nwhen { nope == 1 };",
        want: "line 2: invalid variable: nope; the valid Cedar variables are `principal`, `action`, `resource`, and `context`; did you mean to enclose `nope` in quotes to make a string?",
      },
      {
        name: "an action that does not exist (C78)",
        text: '// é€𝄞\r\npermit (principal, action == Action::"pullModul", resource);',
        want: 'line 2: for policy `policy0`, unrecognized action `Action::"pullModul"`; did you mean `Action::"pullModule"`?',
      },
      {
        name: "an entity type that does not exist (C78)",
        text: 'permit (principal, action, resource in Repositry::"x");',
        want: "line 1: for policy `policy0`, unrecognized entity type `Repositry`; did you mean `Repository`?",
      },
      {
        name: "a capability that does not exist",
        text: 'permit (principal, action, resource == Capability::"tmp");',
        want: 'line 1: for policy `policy0`: entity `Capability::"tmp"` is of an enumerated entity type, but `"tmp"` is not declared as a valid eid; valid entity eids: "privateTmp", "env"',
      },
      {
        name: "an attribute of the principal that does not exist",
        text: 'permit (principal, action == Action::"setEnv", resource) when { principal.namespce == "a" };',
        want: "line 1: for policy `policy0`, attribute `namespce` on entity type `Request` not found; did you mean `namespace`?",
      },
      {
        name: "an attribute of the context that does not exist, beside a broad permit (C75)",
        text: 'permit (principal, action, resource);\nforbid (principal, action == Action::"setEnv", resource) when { context.nope == 1 };',
        want: 'line 2: for policy `policy1`, attribute `nope` in context for Action::"setEnv" not found; did you mean `keys`?',
      },
      {
        name: "a comparison of different types",
        text: 'permit (principal, action == Action::"grantEgress", resource) when { context.port == "443" };',
        want: "line 1: the types Long and String are not compatible; for policy `policy0`, both operands to a `==` expression must have compatible types. Types must be exactly equal to be compatible",
      },
      {
        name: "an address that is none",
        text: 'permit (principal, action == Action::"dialAddress", resource) when { context.ip.isInRange(ip("10.0.0")) };',
        want: 'line 1: for policy `policy0`, error during extension function argument validation: failed to parse as IP address: `"10.0.0"`; valid IP strings are IPv4/IPv6 addresses or CIDR ranges like `127.0.0.1`, `127.0.0.1/24`, or `ffee::/64`',
      },
      {
        name: "the first of several misfits",
        text: 'permit (principal, action == Action::"setEnv", resource) when { principal.namespce == "a" };\npermit (principal, action == Action::"b", resource);',
        want: "line 1: for policy `policy0`, attribute `namespce` on entity type `Request` not found; did you mean `namespace`?",
      },
      {
        name: "a byte order mark",
        text: "\ufeffpermit (principal, action, resource);",
        want: "line 1: invalid token",
      },
      {
        name: "a NUL",
        text: "permit (principal, action, resource);\n\0",
        want: "line 2: invalid token",
      },
      {
        name: "a template with ?principal (C81)",
        text: "permit (principal, action, resource);\npermit (principal ==\n?principal, action, resource);",
        want: "line 3: failed to parse policy from string: expected a static policy, got a template containing the slot ?principal; try removing the template slot(s) from this policy",
      },
      {
        name: "a template with ?resource, whose line is not known when a comment quotes it",
        text: "// permit (principal, action, resource in ?resource);\npermit (principal, action, resource in ?resource);",
        want: "failed to parse policy from string: expected a static policy, got a template containing the slot ?resource; try removing the template slot(s) from this policy",
      },
      {
        name: "a slot in a condition",
        text: "permit (principal, action, resource) when { ?resource == resource };",
        want: "line 1: found template slot ?resource in a `when` clause; slots are currently unsupported in `when` clauses",
      },
    ])("$name", ({ text, want }) => {
      expect(vet(cedar, text)).toEqual({ kind: "error", message: want });
    });

    it("the same of many, whatever order Cedar finds them in", () => {
      const text = "permit (principal, action, resource) when { context.x };";
      const messages = Array.from({ length: 20 }, () => vet(cedar, text));

      expect(new Set(messages.map((m) => JSON.stringify(m))).size).toBe(1);
    });
  });
});
