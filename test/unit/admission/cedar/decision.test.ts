import fc from "fast-check";
import { describe, expect, it } from "vitest";

import {
  decisionKey,
  decisionOf,
} from "../../../../src/admission/cedar/decision.js";
import type { PolicyRule } from "../../../../src/admission/cedar/messages.js";
import type {
  CompiledPolicy,
  Principal,
  Question,
} from "../../../../src/admission/cedar/policy.js";

const RULES: PolicyRule[] = [
  { id: "allow", effect: "permit" },
  { id: "deny", effect: "forbid" },
  { id: "policy2", effect: "permit" },
];

const PULL: Question = { action: "pullModule", location: "a/b" };
const SIGNATURE: Question = { action: "requireSignature", location: "a/b" };

describe("admission/cedar/decision", () => {
  describe("decisionOf", () => {
    it.each([
      {
        name: "a permit",
        verdict: { allowed: true, deciding: [0], failed: [] },
        want: { allowed: true, rules: ["allow"] },
      },
      {
        name: "no rule",
        verdict: { allowed: false, deciding: [], failed: [] },
        want: { allowed: false, rules: [] },
      },
      {
        name: "a forbid",
        verdict: { allowed: false, deciding: [1], failed: [] },
        want: { allowed: false, rules: ["deny"] },
      },
      {
        name: "a permit, while another one fails",
        verdict: { allowed: true, deciding: [0], failed: [2] },
        want: { allowed: true, rules: ["allow", "policy2"] },
      },
      {
        name: "a permit, while a forbid fails",
        verdict: { allowed: true, deciding: [0, 2], failed: [1] },
        want: { allowed: false, rules: ["allow", "policy2", "deny"] },
      },
      {
        name: "a permit, while a rule fails that Cedar does not name",
        verdict: { allowed: true, deciding: [0], failed: [NaN] },
        want: { allowed: false, rules: ["allow"] },
      },
      {
        name: "a permit, while a rule fails that the policy does not have",
        verdict: { allowed: true, deciding: [0], failed: [3] },
        want: { allowed: false, rules: ["allow"] },
      },
    ])("is right about $name", ({ verdict, want }) => {
      expect(decisionOf(verdict, RULES, PULL)).toEqual(want);
    });

    it.each([
      {
        name: "a permit",
        verdict: { allowed: true, deciding: [0], failed: [] },
        want: true,
      },
      {
        name: "no rule",
        verdict: { allowed: false, deciding: [], failed: [] },
        want: false,
      },
      {
        name: "a forbid",
        verdict: { allowed: false, deciding: [1], failed: [] },
        want: false,
      },
      {
        name: "a permit that fails",
        verdict: { allowed: false, deciding: [], failed: [2] },
        want: true,
      },
      {
        name: "a forbid that fails",
        verdict: { allowed: true, deciding: [0], failed: [1] },
        want: true,
      },
      {
        name: "a rule that fails and that Cedar does not name",
        verdict: { allowed: false, deciding: [], failed: [NaN] },
        want: true,
      },
    ])("demands a signature by $name: $want", ({ verdict, want }) => {
      const { allowed } = decisionOf(verdict, RULES, SIGNATURE);

      expect(allowed).toBe(want);
    });

    it("names 32 rules at most", () => {
      const rules = Array.from({ length: 40 }, (_, i): PolicyRule => {
        return { id: `r${i}`, effect: "permit" };
      });
      const deciding = rules.map((_, i) => i);

      const decision = decisionOf(
        { allowed: true, deciding, failed: [] },
        rules,
        PULL,
      );

      expect(decision.rules).toHaveLength(32);
      expect(decision.rules[31]).toBe("r31");
    });

    it("cannot be changed by one of those who share it", () => {
      const decision = decisionOf(
        { allowed: true, deciding: [0], failed: [] },
        RULES,
        PULL,
      );

      expect(Object.isFrozen(decision)).toBe(true);
      expect(Object.isFrozen(decision.rules)).toBe(true);
    });
  });

  describe("decisionKey", () => {
    const text = fc.constantFrom("", "a", "b", 'a","b', "null", "[", "\\");
    const question: fc.Arbitrary<Question> = fc.oneof(
      fc.record({
        action: fc.constant("pullModule" as const),
        location: text,
      }),
      fc.record({
        action: fc.constant("spendCredential" as const),
        credential: text,
        repository: fc.option(text),
      }),
      fc.constant({ action: "usePrivateTmp" as const }),
      fc.record({
        action: fc.constant("setEnv" as const),
        keys: fc.array(text, { maxLength: 2 }),
      }),
      fc.record({
        action: fc.constant("grantEgress" as const),
        host: text,
        method: text,
        path: text,
        scheme: text,
        port: fc.constantFrom(80, 443),
      }),
    );
    const asked = fc.tuple(
      fc.record({ hash: text }),
      fc.record({ namespace: text, xrKind: text }),
      question,
    );

    it("is equal for equal questions, and for no others", () => {
      fc.assert(
        fc.property(asked, asked, (a, b) => {
          expect(keyOf(a) === keyOf(b)).toBe(
            JSON.stringify(a) === JSON.stringify(b),
          );
        }),
        { numRuns: 500 },
      );
    });

    it.each([
      { name: "the policy", other: { hash: "other" } },
      { name: "the namespace", other: { namespace: "other" } },
      { name: "the kind", other: { xrKind: "other" } },
      { name: "the host", other: { host: "other" } },
      { name: "the method", other: { method: "other" } },
      { name: "the path", other: { path: "other" } },
      { name: "the scheme", other: { scheme: "other" } },
      { name: "the port", other: { port: 1 } },
    ])("depends on $name", ({ other }) => {
      const all = {
        hash: "h",
        namespace: "n",
        xrKind: "k",
        host: "h",
        method: "m",
        path: "p",
        scheme: "s",
        port: 0,
        action: "grantEgress" as const,
      };
      const changed = { ...all, ...other };

      expect(keyOf([changed, changed, changed])).not.toBe(
        keyOf([all, all, all]),
      );
    });

    it("takes nothing else from the principal", () => {
      const principal = { namespace: "n", xrKind: "k", other: "x" };
      const key = keyOf([
        { hash: "h" },
        principal,
        { action: "usePrivateTmp" },
      ]);

      expect(key).toBe('["h","n","k","usePrivateTmp"]');
    });
  });
});

function keyOf([policy, principal, question]: readonly [
  Pick<CompiledPolicy, "hash">,
  Principal,
  Question,
]): string {
  return decisionKey(policy as CompiledPolicy, principal, question);
}
