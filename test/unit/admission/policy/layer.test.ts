import { describe, expect, it } from "vitest";

import type {
  Principal,
  Question,
} from "../../../../src/admission/cedar/policy.js";
import { createLayer } from "../../../../src/admission/policy/layer.js";
import { openScope, recordingLogger } from "../../function/fixtures.js";
import { compiledPolicy, fakePolicyEngine } from "./fixtures.js";

const principal: Principal = { namespace: "team-a", xrKind: "XApp" };
const question: Question = { action: "setEnv", keys: ["A"] };

describe("admission/policy/layer", () => {
  it("asks its policy on behalf of the request, and logs the rules that decided", async () => {
    const policy = compiledPolicy("permit …", ["setEnv"]);
    const asked: unknown[] = [];
    const engine = fakePolicyEngine((...args) => {
      asked.push(args);
      return Promise.resolve({
        allowed: asked.length === 1,
        rules: ["no-env"],
      });
    });
    const { logger, lines } = recordingLogger();
    const scope = openScope();
    const layer = createLayer("operator", policy, principal, {
      engine,
      logger,
      scope,
    });

    const answers = [
      await layer.permits(question),
      await layer.permits(question),
    ];

    expect(answers).toEqual([true, false]);
    expect(asked).toEqual([
      [policy, principal, question, scope],
      [policy, principal, question, scope],
    ]);
    expect(lines.map(({ level, fields }) => [level, fields])).toEqual(
      [true, false].map((allowed) => [
        "debug",
        {
          layer: "operator",
          question,
          allowed,
          rules: ["no-env"],
        },
      ]),
    );
  });

  it("knows the actions its policy scopes", () => {
    const policy = compiledPolicy("permit …", ["setEnv"]);
    const { logger } = recordingLogger();
    const engine = fakePolicyEngine();

    const layer = createLayer("composition", policy, principal, {
      engine,
      logger,
      scope: null,
    });

    expect(layer.scopes("setEnv")).toBe(true);
    expect(layer.scopes("usePrivateTmp")).toBe(false);
  });
});
