import fc from "fast-check";
import ipaddr from "ipaddr.js";
import { beforeAll, describe, expect, it } from "vitest";

import {
  type Cedar,
  loadCedar,
} from "../../../../src/admission/cedar/cedar.js";
import { compileDialAddress } from "../../../../src/admission/cedar/dial-address.js";
import { readStructure } from "../../../../src/admission/cedar/structure.js";
import { vet } from "../../../../src/admission/cedar/vet.js";

let cedar: Cedar;
beforeAll(async () => {
  ({ cedar } = await loadCedar());
});

describe("admission/cedar/dial-address", () => {
  describe("reads", () => {
    it.each([
      {
        name: "a range",
        when: '{ context.ip.isInRange(ip("10.0.0.0/8")) }',
        want: ["10.0.0.0/8"],
      },
      {
        name: "a range of IPv6",
        when: '{ context.ip.isInRange(ip("fd00::/8")) }',
        want: ["fd00::/8"],
      },
      {
        name: "an address",
        when: '{ context.ip.isInRange(ip("192.0.2.7")) }',
        want: ["192.0.2.7/32"],
      },
      {
        name: "an address of IPv6, in its shortest form",
        when: '{ context.ip.isInRange(ip("2001:0DB8:0:0:0:0:0:1")) }',
        want: ["2001:db8::1/128"],
      },
      {
        name: "a range with host bits, as its network",
        when: '{ context.ip.isInRange(ip("10.1.2.3/8")) || context.ip.isInRange(ip("2001:db8::1/32")) }',
        want: ["10.0.0.0/8", "2001:db8::/32"],
      },
      {
        name: "everything",
        when: '{ context.ip.isInRange(ip("0.0.0.0/0")) }',
        want: ["0.0.0.0/0"],
      },
      {
        name: "loopback",
        when: "{ context.ip.isLoopback() }",
        want: ["127.0.0.0/8", "::1/128"],
      },
      {
        name: "||, from left to right",
        when: '{ context.ip.isInRange(ip("10.0.0.0/8")) || (context.ip.isLoopback() || context.ip.isInRange(ip("192.0.2.0/24"))) || context.ip.isInRange(ip("198.51.100.0/24")) }',
        want: [
          "10.0.0.0/8",
          "127.0.0.0/8",
          "::1/128",
          "192.0.2.0/24",
          "198.51.100.0/24",
        ],
      },
      {
        name: "an attribute in brackets",
        when: '{ context["ip"].isLoopback() }',
        want: ["127.0.0.0/8", "::1/128"],
      },
    ])("$name", ({ when, want }) => {
      expect(cidrsOf(`${dialRule("permit")} when ${when};`)).toEqual({
        permit: want,
        forbid: [],
      });
    });

    it("every address from a rule without a condition", () => {
      expect(cidrsOf(`${dialRule("forbid")};`)).toEqual({
        permit: [],
        forbid: ["0.0.0.0/0", "::/0"],
      });
    });

    it("a long list", () => {
      // Five times as many now and then overflow the stack of this thread, whose WebAssembly V8 has
      // not optimised yet; policies have threads of their own.
      const tests = Array.from(
        { length: 100 },
        (_, i) => `context.ip.isInRange(ip("10.1.${i}.0/24"))`,
      );

      const { permit } = cidrsOf(
        `${dialRule("permit")} when { ${tests.join(" || ")} };`,
      );

      expect(permit).toHaveLength(100);
      expect(permit[99]).toBe("10.1.99.0/24");
    });

    it("rules in their order, and says which rule named a prefix", () => {
      const compiled = compile(`
        permit (principal, action == Action::"setEnv", resource);
        ${dialRule("permit")} when { context.ip.isInRange(ip("10.0.0.0/8")) };
        @id("home") ${dialRule("forbid")} when { context.ip.isLoopback() };
        @id("lan") ${dialRule("permit")} when { context.ip.isInRange(ip("192.168.0.0/16")) };`);

      expect(compiled).toEqual({
        kind: "ok",
        value: {
          permit: [
            { cidr: "10.0.0.0/8", rule: "policy1" },
            { cidr: "192.168.0.0/16", rule: "lan" },
          ],
          forbid: [
            { cidr: "127.0.0.0/8", rule: "home" },
            { cidr: "::1/128", rule: "home" },
          ],
        },
      });
    });

    it("nothing from rules that do not name dialAddress", () => {
      expect(
        cidrsOf(`permit (principal, action, resource);
          forbid (principal, action, resource) when { action == Action::"dialAddress" };
          permit (principal, action in [Action::"setEnv", Action::"grantEgress"], resource);`),
      ).toEqual({ permit: [], forbid: [] });
    });
  });

  it("holds what Cedar's own tests hold", () => {
    const v4 = fc.ipV4();
    const cidr4 = fc
      .tuple(v4, fc.integer({ min: 0, max: 32 }))
      .map((parts) => parts.join("/"));
    const v6 = fc
      .array(fc.integer({ min: 0, max: 0xffff }), {
        minLength: 8,
        maxLength: 8,
      })
      .map((groups) => groups.map((group) => group.toString(16)).join(":"));
    const cidr6 = fc
      .tuple(v6, fc.integer({ min: 0, max: 128 }))
      .map((parts) => parts.join("/"));
    const test = fc.oneof(
      fc.constant("context.ip.isLoopback()"),
      fc
        .oneof(v4, cidr4, v6, cidr6)
        .map((cidr) => `context.ip.isInRange(ip("${cidr}"))`),
    );
    const address = fc.oneof(
      v4,
      v6,
      fc.constantFrom(
        "127.0.0.1",
        "127.255.255.255",
        "128.0.0.0",
        "::1",
        "::2",
      ),
    );
    fc.assert(
      fc.property(
        fc.array(test, { minLength: 1, maxLength: 4 }),
        address,
        (tests, ip) => {
          const text = `${dialRule("permit")} when { ${tests.join(" || ")} };`;

          expect(contains(cidrsOf(text).permit, ip)).toBe(
            cedarPermits(text, ip),
          );
        },
      ),
      { numRuns: 60 },
    );
  });

  describe("refuses", () => {
    it.each([
      {
        name: "an action in a set",
        rule: 'permit (principal, action in [Action::"dialAddress", Action::"setEnv"], resource);',
        want: 'must scope the action as == Action::"dialAddress", not an "in" set',
      },
      {
        name: "an action by in",
        rule: 'permit (principal, action in Action::"dialAddress", resource);',
        want: 'must scope the action as == Action::"dialAddress", not an "in" set',
      },
      {
        name: "a principal",
        rule: 'permit (principal == Module::"module", action == Action::"dialAddress", resource);',
        want: "must not constrain the principal or resource: the dial has neither identity",
      },
      {
        name: "a type of resource",
        rule: 'permit (principal, action == Action::"dialAddress", resource is Module);',
        want: "must not constrain the principal or resource: the dial has neither identity",
      },
      {
        name: "a second condition",
        rule: `${dialRule("permit")} when { context.ip.isLoopback() } when { context.ip.isLoopback() };`,
        want: "takes at most one when condition",
      },
      {
        name: "unless",
        rule: `${dialRule("permit")} unless { context.ip.isLoopback() };`,
        want: "may only use a when condition, not unless",
      },
      {
        name: "when and unless",
        rule: `${dialRule("permit")} when { context.ip.isLoopback() } unless { context.ip.isLoopback() };`,
        want: "may only use a when condition, not unless",
      },
      {
        name: "a condition that tests nothing",
        rule: `${dialRule("permit")} when { true };`,
        want: "the condition must be a single ip test",
      },
      {
        name: "another test",
        rule: `${dialRule("permit")} when { context.ip.isMulticast() };`,
        want: 'unsupported operation "isMulticast" (an ip test uses isInRange, isLoopback or ||)',
      },
      {
        name: "&&",
        rule: `${dialRule("permit")} when { context.ip.isLoopback() && context.ip.isIpv4() };`,
        want: 'unsupported operation "&&" (an ip test uses isInRange, isLoopback or ||)',
      },
      {
        name: "!",
        rule: `${dialRule("permit")} when { !context.ip.isLoopback() };`,
        want: 'unsupported operation "!" (an ip test uses isInRange, isLoopback or ||)',
      },
      {
        name: "==",
        rule: `${dialRule("permit")} when { context.ip == ip("10.0.0.1") };`,
        want: 'unsupported operation "==" (an ip test uses isInRange, isLoopback or ||)',
      },
      {
        name: "something unsupported on the right of ||",
        rule: `${dialRule("permit")} when { context.ip.isLoopback() || context.ip.isIpv4() };`,
        want: 'unsupported operation "isIpv4" (an ip test uses isInRange, isLoopback or ||)',
      },
      {
        name: "arguments the wrong way round (C76)",
        rule: `${dialRule("permit")} when { ip("10.0.0.0/8").isInRange(context.ip) };`,
        want: "an ip test may only test context.ip",
      },
      {
        name: "a test of a literal",
        rule: `${dialRule("permit")} when { ip("127.0.0.1").isLoopback() };`,
        want: "an ip test may only test context.ip",
      },
      {
        name: "a range that is no literal",
        rule: `${dialRule("permit")} when { context.ip.isInRange(context.ip) };`,
        want: 'isInRange takes context.ip and one ip("CIDR") literal',
      },
    ])("$name", ({ rule, want }) => {
      expect(compile(`@id("r") ${rule}`)).toEqual({
        kind: "error",
        message: `dialAddress rule "r": ${want}`,
      });
    });

    // Cedar refuses these before it is asked for the rule's structure.
    it.each([
      {
        name: "isLoopback with an argument",
        body: { isLoopback: [contextIp(), { ip: [{ Value: "::1" }] }] },
        want: "isLoopback takes context.ip and no argument",
      },
      {
        name: "isInRange with two ranges",
        body: {
          isInRange: [
            contextIp(),
            { ip: [{ Value: "::1" }] },
            { ip: [{ Value: "::1" }] },
          ],
        },
        want: 'isInRange takes context.ip and one ip("CIDR") literal',
      },
      {
        name: "isInRange without a range",
        body: { isInRange: [contextIp()] },
        want: 'isInRange takes context.ip and one ip("CIDR") literal',
      },
      ...[
        { left: { Var: "context" as const }, attr: "other" },
        { left: { Var: "principal" as const }, attr: "ip" },
        { left: { Value: "context" }, attr: "ip" },
      ].map((tested) => ({
        name: `a test of ${JSON.stringify(tested)}`,
        body: { isLoopback: [{ ".": tested }] },
        want: "an ip test may only test context.ip",
      })),
      {
        name: "a range that another function makes",
        body: { isInRange: [contextIp(), { decimal: [{ Value: "::1" }] }] },
        want: 'isInRange takes context.ip and one ip("CIDR") literal',
      },
      {
        name: "an expression without an operation",
        body: {},
        want: 'unsupported operation ""',
      },
      ...[
        "10.0.0",
        "010.0.0.1",
        "10.0.0.0/33",
        "10.0.0.0/8/8",
        "fe80::1%eth0",
        "::1/129",
        "",
        "a\nb",
      ].map((value) => ({
        name: `${JSON.stringify(value)} for an address`,
        body: { isInRange: [contextIp(), { ip: [{ Value: value }] }] },
        want: `"${value.replace("\n", "\\u000a")}" is not an ip literal: `,
      })),
    ])("$name", ({ body, want }) => {
      const compiled = compileDialAddress(
        [
          {
            effect: "permit",
            principal: { op: "All" },
            action: { op: "==", entity: { type: "Action", id: "dialAddress" } },
            resource: { op: "All" },
            conditions: [{ kind: "when", body }],
          },
        ],
        [{ id: "r", effect: "permit" }],
      );

      expect(compiled).toEqual({
        kind: "error",
        message: expect.stringContaining(
          `dialAddress rule "r": ${want}`,
        ) as unknown,
      });
    });
  });
});

function dialRule(effect: "permit" | "forbid"): string {
  return `${effect} (principal, action == Action::"dialAddress", resource)`;
}

function contextIp() {
  return { ".": { left: { Var: "context" as const }, attr: "ip" } };
}

function compile(text: string): ReturnType<typeof compileDialAddress> {
  const vetted = vet(cedar, text);
  if (vetted.kind === "error") throw new Error(vetted.message);
  const { rules } = vetted.value;
  return compileDialAddress(rules, readStructure(rules).rules);
}

function cidrsOf(text: string) {
  const compiled = compile(text);
  if (compiled.kind === "error") throw new Error(compiled.message);
  const { permit, forbid } = compiled.value;
  return {
    permit: permit.map(({ cidr }) => cidr),
    forbid: forbid.map(({ cidr }) => cidr),
  };
}

function contains(cidrs: readonly string[], ip: string): boolean {
  const address = ipaddr.parse(ip);
  return cidrs.some((cidr) => {
    const [network, bits] = ipaddr.parseCIDR(cidr);
    return network.kind() === address.kind() && address.match(network, bits);
  });
}

function cedarPermits(text: string, ip: string): boolean {
  cedar.preparsePolicySet("dial", { staticPolicies: text });
  const module = { type: "Module", id: "module" };
  const answer = cedar.statefulIsAuthorized({
    principal: module,
    action: { type: "Action", id: "dialAddress" },
    resource: module,
    context: { ip: { __extn: { fn: "ip", arg: ip } } },
    preparsedPolicySetId: "dial",
    validateRequest: false,
    entities: [],
  });
  if (answer.type === "failure") throw new Error(JSON.stringify(answer));
  return answer.response.decision === "allow";
}
