import { beforeAll, describe, expect, it } from "vitest";

import {
  type Cedar,
  loadCedar,
} from "../../../../src/admission/cedar/cedar.js";
import { createJudge } from "../../../../src/admission/cedar/judge.js";
import type { PolicyJob } from "../../../../src/admission/cedar/messages.js";
import type { Question } from "../../../../src/admission/cedar/policy.js";

const PULL = { action: "pullModule", location: "ghcr.io/example/a" } as const;
const PERMIT_ALL = "permit (principal, action, resource);";

let cedar: Cedar;
beforeAll(async () => {
  ({ cedar } = await loadCedar());
});

describe("admission/cedar/judge", () => {
  it("reports what a policy says", () => {
    const reply = createJudge(cedar)(
      compileJob(`@id("a") permit (principal, action == Action::"pullModule", resource);
        forbid (principal, action == Action::"dialAddress", resource) when { context.ip.isInRange(ip("10.0.0.0/8")) };`),
    );

    expect(reply).toEqual({
      kind: "compiled",
      report: {
        rules: [
          { id: "a", effect: "permit" },
          { id: "policy1", effect: "forbid" },
        ],
        scopedActions: ["pullModule", "dialAddress"],
        warnings: [],
        dialAddress: {
          permit: [],
          forbid: [{ cidr: "10.0.0.0/8", rule: "policy1" }],
        },
      },
    });
  });

  it.each([
    {
      name: "a policy that does not fit",
      text: "permit (principal, action, resource) when { resource };",
      want: "line 1: ",
    },
    {
      name: "dialAddress rules that are no prefixes",
      text: 'permit (principal, action == Action::"dialAddress", resource) when { context.ip.isMulticast() };',
      want: 'dialAddress rule "policy0": ',
    },
  ])("refuses $name, and does not keep it", ({ text, want }) => {
    const judge = createJudge(cedar);

    expect(judge(compileJob(text))).toMatchObject({
      kind: "refused",
      message: expect.stringContaining(want) as unknown,
    });
    expect(judge(decideJob(text, null, PULL))).toEqual({ kind: "unknown" });
  });

  it("decides by a policy that it has compiled", () => {
    const judge = createJudge(cedar);
    judge(compileJob(PERMIT_ALL));

    expect(judge(decideJob(PERMIT_ALL, null, PULL))).toEqual({
      kind: "decided",
      verdict: { allowed: true, deciding: [0], failed: [] },
    });
  });

  it("asks for the text of one that it does not have, and keeps it", () => {
    const judge = createJudge(cedar);
    const decided = {
      kind: "decided",
      verdict: { allowed: true, deciding: [0], failed: [] },
    };

    expect(judge(decideJob(PERMIT_ALL, null, PULL))).toEqual({
      kind: "unknown",
    });
    expect(judge(decideJob(PERMIT_ALL, PERMIT_ALL, PULL))).toEqual(decided);
    expect(judge(decideJob(PERMIT_ALL, null, PULL))).toEqual(decided);
  });

  it("names rules by their position, in order", () => {
    const text = Array.from({ length: 13 }, (_, i) =>
      i % 2 === 0
        ? PERMIT_ALL
        : 'permit (principal, action == Action::"grantEgress", resource) when { context.port + 9223372036854775807 > 0 };',
    ).join("");
    const judge = createJudge(cedar);
    judge(compileJob(text));

    expect(
      judge(
        decideJob(text, null, {
          action: "grantEgress",
          host: "a.com",
          method: "GET",
          path: "",
          scheme: "https",
          port: 443,
        }),
      ),
    ).toEqual({
      kind: "decided",
      verdict: {
        allowed: true,
        deciding: [0, 2, 4, 6, 8, 10, 12],
        failed: [1, 3, 5, 7, 9, 11],
      },
    });
  });

  it("permits nothing for a location with too many levels, whatever the policy", () => {
    const judge = createJudge(cedar);
    judge(compileJob(PERMIT_ALL));
    const location = `ghcr.io${"/a".repeat(200)}`;

    expect(
      judge(decideJob(PERMIT_ALL, null, { action: "pullModule", location })),
    ).toEqual({
      kind: "decided",
      verdict: { allowed: false, deciding: [], failed: [NaN] },
    });
  });

  it.each<{ name: string; broken: Partial<Cedar>; want: string }>([
    {
      name: "Cedar traps",
      broken: {
        validate: () => {
          throw new RangeError("memory access\nout of bounds");
        },
      },
      want: "memory access out of bounds",
    },
    {
      name: "Cedar cannot put a vetted rule into JSON",
      broken: {
        policyToJson: () => ({ type: "failure", errors: [cedarError("no")] }),
      },
      want: "no",
    },
    {
      name: "Cedar cannot answer a trial question",
      broken: {
        statefulIsAuthorized: () => ({
          type: "failure",
          errors: [cedarError("no")],
          warnings: [],
        }),
      },
      want: "no",
    },
  ])("says that it is of no use any more when $name", ({ broken, want }) => {
    const judge = createJudge({ ...cedar, ...broken });

    expect(judge(compileJob(PERMIT_ALL))).toEqual({
      kind: "trapped",
      reason: want,
    });
  });

  it.each([
    "pullModule",
    "spendCredential",
    "usePrivateTmp",
    "setEnv",
    "grantEgress",
  ])("tries %s before it accepts a policy", (action) => {
    const asked: string[] = [];
    const judge = createJudge({
      ...cedar,
      statefulIsAuthorized(call) {
        asked.push((call.action as { id: string }).id);
        return cedar.statefulIsAuthorized(call);
      },
    });

    judge(compileJob(PERMIT_ALL));

    expect(asked).toContain(action);
  });
});

/** The text is its own hash. */
function compileJob(text: string): PolicyJob {
  return { kind: "compile", hash: text, text };
}

function decideJob(
  hash: string,
  text: string | null,
  question: Question,
): PolicyJob {
  const principal = { namespace: "", xrKind: "" };
  return { kind: "decide", hash, text, principal, question };
}

function cedarError(message: string) {
  return { message, help: null, code: null, url: null, severity: null };
}
