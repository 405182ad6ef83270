import type { PolicyJson } from "@cedar-policy/cedar-wasm";
import { beforeAll, describe, expect, it } from "vitest";

import {
  type Cedar,
  loadCedar,
} from "../../../../src/admission/cedar/cedar.js";
import {
  inTextOrder,
  readStructure,
} from "../../../../src/admission/cedar/structure.js";

let cedar: Cedar;
beforeAll(async () => {
  ({ cedar } = await loadCedar());
});

describe("admission/cedar/structure", () => {
  describe("the actions that rules name", () => {
    it.each([
      {
        name: "an action by ==",
        text: 'permit (principal, action == Action::"setEnv", resource);',
        want: ["setEnv"],
      },
      {
        name: "an action by in",
        text: 'permit (principal, action in Action::"setEnv", resource);',
        want: ["setEnv"],
      },
      {
        name: "several by in, in the schema's order",
        text: 'forbid (principal, action in [Action::"setEnv", Action::"pullModule"], resource);',
        want: ["pullModule", "setEnv"],
      },
      {
        name: "none by an empty set",
        text: "permit (principal, action in [], resource);",
        want: [],
      },
      {
        name: "none by any action",
        text: "permit (principal, action, resource);",
        want: [],
      },
      {
        name: "none by a condition",
        text: 'permit (principal, action, resource) when { action == Action::"setEnv" };',
        want: [],
      },
      {
        name: "none by a comment, an annotation or a string",
        text: `// action == Action::"pullModule"
          @id("action == Action::\\"usePrivateTmp\\"")
          permit (principal, action == Action::"setEnv", resource)
          when { principal.namespace == "action in [Action::\\"pullModule\\"]" };`,
        want: ["setEnv"],
      },
      {
        name: "an action that is spelt with escapes",
        text: 'permit (principal, action == Action::"set\\u{45}nv", resource);',
        want: ["setEnv"],
      },
      {
        name: "those of all rules, each once",
        text: `permit (principal, action == Action::"setEnv", resource);
          forbid (principal, action == Action::"setEnv", resource);
          permit (principal, action == Action::"dialAddress", resource);`,
        want: ["setEnv", "dialAddress"],
      },
    ])("are $name", ({ text, want }) => {
      expect(readStructure(policiesOf(text)).scopedActions).toEqual(want);
    });
  });

  describe("the rules", () => {
    it("have the effect they have, in the order of the text", () => {
      const { rules } = readStructure(
        policiesOf(`permit (principal, action, resource);
          forbid (principal, action, resource);`),
      );

      expect(rules).toEqual([
        { id: "policy0", effect: "permit" },
        { id: "policy1", effect: "forbid" },
      ]);
    });

    it("keep the order of the text beyond ten", () => {
      const positions = Array.from({ length: 123 }, (_, i) => i);
      const text = positions
        .map((i) => `@id("r${i}") permit (principal, action, resource);`)
        .join("\n");

      const { rules } = readStructure(policiesOf(text));

      expect(rules.map(({ id }) => id)).toEqual(positions.map((i) => `r${i}`));
    });

    it.each([
      { name: "its @id", annotations: '@id("a b")', want: "a b" },
      {
        name: "its @id among others",
        annotations: '@x("y") @id("a")',
        want: "a",
      },
      {
        name: "its position without @id",
        annotations: '@ID("a")',
        want: "policy0",
      },
      {
        name: "its position for an @id without a value",
        annotations: "@id",
        want: "policy0",
      },
      {
        name: "its position for an empty @id",
        annotations: '@id("")',
        want: "policy0",
      },
      {
        name: "an escaped @id",
        annotations: '@id("a\\nlevel=info \\u{202e}\\"")',
        want: 'a\\u000alevel=info \\u202e\\"',
      },
      {
        name: "the start of a long @id",
        annotations: `@id("${"x".repeat(121)}")`,
        want: `${"x".repeat(120)}…`,
      },
    ])("are called by $name", ({ annotations, want }) => {
      const text = `${annotations} permit (principal, action, resource);`;

      expect(readStructure(policiesOf(text)).rules[0]?.id).toBe(want);
    });

    it("may share an @id", () => {
      const text = '@id("a") permit (principal, action, resource);'.repeat(2);

      expect(readStructure(policiesOf(text)).rules).toEqual([
        { id: "a", effect: "permit" },
        { id: "a", effect: "permit" },
      ]);
    });
  });
});

function policiesOf(text: string): PolicyJson[] {
  const parts = cedar.policySetTextToParts(text);
  if (parts.type === "failure") throw new Error(JSON.stringify(parts.errors));
  return inTextOrder(parts.policies).map((part) => {
    const answer = cedar.policyToJson(part);
    if (answer.type === "failure") throw new Error(JSON.stringify(answer));
    return answer.json;
  });
}
