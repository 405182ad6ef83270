import { afterAll, describe, expect, it } from "vitest";

import {
  actionNames,
  type Principal,
  type Question,
} from "../../src/admission/cedar/policy.js";
import { createTestPolicyEngine } from "../support/policy-engine.js";
import { textOf } from "./committed-files.js";

const DOC = textOf("docs/cedar-policy.md");

/** An example of the page: a policy, and what it is said to answer. */
interface Example {
  readonly action: string;
  readonly policy: string;
  readonly rows: readonly (readonly [asked: string, answer: string])[];
}

const EXAMPLES = examples();
const ASKED = EXAMPLES.flatMap(({ action, policy, rows }) =>
  action === "dialAddress"
    ? []
    : rows.map(([asked, answer]) => ({ policy, asked, answer })),
);

describe("docs/cedar-policy.md", () => {
  const engine = createTestPolicyEngine();
  afterAll(() => engine.close());

  async function compiled(policy: string) {
    const result = await engine.compile(policy);
    if (result.kind === "error") throw new Error(result.message);
    return result.policy;
  }

  it("has one example for each action, all of which compile", async () => {
    expect(EXAMPLES.map(({ action }) => action)).toEqual([...actionNames]);
    for (const { action, policy } of EXAMPLES) {
      const { scopedActions } = await compiled(policy);
      expect([...scopedActions]).toEqual([action]);
    }
  });

  it("has rows for every action that is asked", () => {
    expect(ASKED.length).toBeGreaterThanOrEqual(25);
    expect(new Set(ASKED.map(({ answer }) => answer))).toEqual(
      new Set(["permit", "deny"]),
    );
  });

  it.each(ASKED)("says truly $answer to $asked", async (row) => {
    const [principal, question] = readAsked(row.asked);

    const { allowed } = await engine.decide(
      await compiled(row.policy),
      principal,
      question,
    );

    expect(allowed ? "permit" : "deny").toBe(row.answer);
  });

  it("lists the prefixes of dialAddress", async () => {
    const example = EXAMPLES.find(({ action }) => action === "dialAddress");
    const { dialAddress } = await compiled(example?.policy ?? "");

    const cidrs = (text: string) =>
      [...text.matchAll(/`([^`]+)`/g)].map((match) => match[1]);
    expect(example?.rows.map(([list, prefixes]) => [list, cidrs(prefixes)]))
      // As the page lists them.
      .toEqual([
        ["forbid", dialAddress.forbid.map(({ cidr }) => cidr)],
        ["permit", dialAddress.permit.map(({ cidr }) => cidr)],
      ]);
  });
});

/** The sections under "One example for each action". */
function examples(): Example[] {
  const part = DOC.slice(
    DOC.indexOf("## One example for each action"),
    DOC.indexOf("## What a refusal says"),
  );
  return part
    .split(/^### /m)
    .slice(1)
    .map((section) => {
      const action = /^`(\w+)`/.exec(section)?.[1] ?? "";
      const policy = /```cedar\n(.*?)```/s.exec(section)?.[1] ?? "";
      const rows = [...section.matchAll(/^\|(.+)\|(.+)\|$/gm)]
        .map(
          (match) => [match[1]?.trim() ?? "", match[2]?.trim() ?? ""] as const,
        )
        .filter(([first]) => !/^(?:-+|asked|list)$/.test(first));
      return { action, policy, rows };
    });
}

/** For example `` `spendCredential registry` from `ghcr.io/x` for `team-a` ``. */
function readAsked(text: string): [Principal, Question] {
  const match =
    /^`(?<action>\w+)(?<rest>[^`]*)`(?: from `(?<from>[^`]+)`)?(?: for `(?<namespace>[^`]+)`)?$/.exec(
      text,
    )?.groups ?? {};
  const principal = { namespace: match["namespace"] ?? "", xrKind: "XApp" };
  const [first = "", second = ""] = (match["rest"] ?? "").trim().split(" ");
  switch (match["action"]) {
    case "pullModule":
      return [principal, { action: "pullModule", location: first }];
    case "requireSignature":
      return [principal, { action: "requireSignature", location: first }];
    case "spendCredential":
      return [
        principal,
        {
          action: "spendCredential",
          credential: first,
          repository: match["from"] ?? null,
        },
      ];
    case "usePrivateTmp":
      return [principal, { action: "usePrivateTmp" }];
    case "setEnv":
      return [
        principal,
        { action: "setEnv", keys: (match["rest"] ?? "").trim().split(" ") },
      ];
    case "grantEgress":
      return [principal, egress(first, second)];
    case undefined:
    default:
      throw new Error(`cannot read the row ${text}`);
  }
}

function egress(method: string, url: string): Question {
  const {
    scheme = "",
    host = "",
    port,
  } = /^(?<scheme>https?):\/\/(?<host>[^:/]+)(?::(?<port>\d+))?$/.exec(url)
    ?.groups ?? {};
  return {
    action: "grantEgress",
    host,
    method,
    path: "",
    scheme,
    port: Number(port ?? (scheme === "https" ? 443 : 80)),
  };
}
