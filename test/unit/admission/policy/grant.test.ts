import { describe, expect, it } from "vitest";

import type { Question } from "../../../../src/admission/cedar/policy.js";
import { AdmissionError } from "../../../../src/admission/index.js";
import type { EgressRule } from "../../../../src/admission/manifest/manifest.js";
import {
  grantRequirements,
  NO_GRANTS,
} from "../../../../src/admission/policy/grant.js";
import { fakeLayer, manifestOf } from "./fixtures.js";

const MODULE = "OCI ghcr.io/example/greeter@sha256:ab";

const rule = (rest: Partial<EgressRule> = {}): EgressRule => ({
  host: "api.example.com",
  methods: ["GET"],
  pathPrefix: "",
  scheme: "https",
  port: 443,
  ...rest,
});

const all = {
  privateTmp: true,
  egress: [rule({ methods: ["GET", "POST"], pathPrefix: "/v1" })],
  env: [
    { name: "A", credential: "db", key: "url" },
    { name: "B", credential: "api", key: "token" },
  ],
  credentials: ["cmdb", "db"],
};

const everyAction = [
  "usePrivateTmp",
  "grantEgress",
  "setEnv",
  "spendCredential",
] as const;

const permitsAll = () => fakeLayer(() => true);

/** The questions that `all` raises, in order. */
const questions: Question[] = [
  { action: "usePrivateTmp" },
  {
    action: "grantEgress",
    host: "api.example.com",
    method: "GET",
    path: "/v1",
    scheme: "https",
    port: 443,
  },
  {
    action: "grantEgress",
    host: "api.example.com",
    method: "POST",
    path: "/v1",
    scheme: "https",
    port: 443,
  },
  { action: "setEnv", keys: ["A", "B"] },
  { action: "spendCredential", credential: "db", repository: null },
  { action: "spendCredential", credential: "api", repository: null },
  { action: "spendCredential", credential: "cmdb", repository: null },
  { action: "spendCredential", credential: "db", repository: null },
];

/** Rows of design §7.4: what is said after `module <type> <location> requires `. */
const sentences = [
  {
    name: "a private /tmp",
    requires: { privateTmp: true },
    requirement: "a private /tmp (requires.filesystem.privateTmp)",
    without:
      "a private /tmp (requires.filesystem.privateTmp), but the runtime has no --sandbox-policy-file, which is required to grant sandbox capabilities",
    suffix: " for this request",
  },
  {
    name: "egress",
    requires: { egress: [rule()] },
    requirement:
      'egress GET to host "api.example.com" (requires.egress.http[0])',
    without:
      "egress (requires.egress.http), but the runtime has no --sandbox-policy-file, which is required to grant egress (grantEgress)",
    suffix: "",
  },
  {
    name: "env",
    requires: { env: all.env },
    requirement: "env [A, B] (requires.env)",
    without:
      "env [A, B] (requires.env), but the runtime has no --sandbox-policy-file, which is required to grant sandbox capabilities",
    suffix: " (setEnv)",
  },
  {
    name: "a credential",
    requires: { credentials: ["cmdb"] },
    requirement: 'credential "cmdb" (requires.credentials[0])',
    without:
      'credential "cmdb" (requires.credentials[0]), but the runtime has no --sandbox-policy-file, which is required to grant step credentials (spendCredential)',
    suffix: "",
  },
];

async function refusal(promise: Promise<unknown>): Promise<AdmissionError> {
  const thrown: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(thrown).toBeInstanceOf(AdmissionError);
  return thrown as AdmissionError;
}

describe("admission/policy/grant", () => {
  it("grants nothing to a module that requires nothing, and asks nobody", async () => {
    const operator = permitsAll();

    const grants = await grantRequirements(manifestOf(), MODULE, null, {
      composition: null,
      operator,
    });

    expect(grants).toBe(NO_GRANTS);
    expect(operator.asked).toEqual([]);
  });

  it("grants what the manifest requests and both layers permit", async () => {
    const composition = fakeLayer(() => true, everyAction);
    const operator = permitsAll();

    const grants = await grantRequirements(
      manifestOf({ env: all.env, credentials: all.credentials }),
      MODULE,
      "registry",
      { composition, operator },
    );

    expect(grants.env).toEqual(all.env);
    expect(grants.credentials).toEqual(["cmdb", "db"]);
    expect([...grants.carried].sort()).toEqual(["api", "cmdb", "db"]);
    expect(composition.asked).toEqual(questions.slice(3));
    expect(operator.asked).toEqual(questions.slice(3));
  });

  it.each(sentences)("says what is missing for $name", async (row) => {
    const manifest = manifestOf(row.requires);
    const yes = fakeLayer(() => true, everyAction);
    const no = fakeLayer(() => false, everyAction);

    const without = await refusal(
      grantRequirements(manifest, MODULE, null, {
        composition: yes,
        operator: null,
      }),
    );
    const byComposition = await refusal(
      grantRequirements(manifest, MODULE, null, {
        composition: no,
        operator: yes,
      }),
    );
    const byOperator = await refusal(
      grantRequirements(manifest, MODULE, null, {
        composition: yes,
        operator: no,
      }),
    );

    expect([without.code, without.message]).toEqual([
      "operator-policy-missing",
      `module ${MODULE} requires ${row.without}`,
    ]);
    expect([byComposition.code, byComposition.message]).toEqual([
      "composition-refused",
      `module ${MODULE} requires ${row.requirement}, which the compositionPolicy does not permit${row.suffix}`,
    ]);
    expect([byOperator.code, byOperator.message]).toEqual([
      "operator-refused",
      `module ${MODULE} requires ${row.requirement}, which the operator policy (--sandbox-policy-file) does not permit${row.suffix}`,
    ]);
  });

  it("names the variable whose credential a layer refuses", async () => {
    const manifest = manifestOf({ env: all.env });
    const notApi = (question: Question) =>
      question.action !== "spendCredential" || question.credential !== "api";

    const byComposition = await refusal(
      grantRequirements(manifest, MODULE, null, {
        composition: fakeLayer(notApi, everyAction),
        operator: permitsAll(),
      }),
    );
    const byOperator = await refusal(
      grantRequirements(manifest, MODULE, null, {
        composition: null,
        operator: fakeLayer(notApi),
      }),
    );

    expect(byComposition.message).toBe(
      `module ${MODULE} requires env B from credential "api", which the compositionPolicy does not permit (spendCredential)`,
    );
    expect(byOperator.message).toBe(
      `module ${MODULE} requires env B from credential "api", which the operator policy (--sandbox-policy-file) does not permit (spendCredential)`,
    );
  });

  it.each(questions.map((refused) => ({ refused })))(
    "lets one refusal of either layer refuse the module: $refused.action",
    async ({ refused }) => {
      const manifest = manifestOf(all);
      const same = (question: Question) =>
        JSON.stringify(question) === JSON.stringify(refused);
      const refuses = () =>
        fakeLayer((question) => !same(question), everyAction);

      const byComposition = await refusal(
        grantRequirements(manifest, MODULE, null, {
          composition: refuses(),
          operator: permitsAll(),
        }),
      );
      const byOperator = await refusal(
        grantRequirements(manifest, MODULE, null, {
          composition: null,
          operator: refuses(),
        }),
      );

      expect(byComposition.code).toBe("composition-refused");
      expect(byOperator.code).toBe("operator-refused");
    },
  );

  it("asks the composition layer about the actions it scopes only, and first", async () => {
    const composition = fakeLayer(() => false, ["setEnv"]);
    const operator = fakeLayer(() => false);
    const manifest = manifestOf({ privateTmp: true, env: all.env });

    const error = await refusal(
      grantRequirements(manifest, MODULE, null, { composition, operator }),
    );

    // The operator would have refused the private /tmp before that.
    expect(error.code).toBe("composition-refused");
    expect(composition.asked).toEqual([{ action: "setEnv", keys: ["A", "B"] }]);
    expect(operator.asked).toEqual([]);
  });

  it("does not narrow what the composition layer does not scope", async () => {
    const composition = fakeLayer(() => false);

    const grants = await grantRequirements(
      manifestOf({ credentials: ["cmdb"] }),
      MODULE,
      null,
      { composition, operator: permitsAll() },
    );

    expect(grants.credentials).toEqual(["cmdb"]);
  });

  it.each([
    {
      name: "whole",
      requires: { credentials: ["cmdb", "registry"] },
      want: 'credential "registry" (requires.credentials[1])',
    },
    {
      name: "as a variable",
      requires: { env: [{ name: "A", credential: "registry", key: "k" }] },
      want: 'env A from credential "registry"',
    },
  ])("never gives a module its pull credential $name", async (row) => {
    const error = await refusal(
      grantRequirements(manifestOf(row.requires), MODULE, "registry", {
        composition: null,
        operator: permitsAll(),
      }),
    );

    expect([error.code, error.message]).toEqual([
      "credential-refused",
      `module ${MODULE} requires ${row.want}, with which the module is pulled: a module never sees its pull credential`,
    ]);
  });

  it.each([
    {
      name: "a private /tmp",
      requires: { privateTmp: true },
      want: "a private /tmp (requires.filesystem.privateTmp)",
    },
    {
      name: "egress",
      requires: { egress: [rule()] },
      want: "egress (requires.egress.http)",
    },
  ])("refuses $name that every layer permits", async ({ requires, want }) => {
    const error = await refusal(
      grantRequirements(manifestOf(requires), MODULE, null, {
        composition: null,
        operator: permitsAll(),
      }),
    );

    expect([error.code, error.message]).toEqual([
      "capability-not-supported",
      `module ${MODULE} requires ${want}, which is permitted, but this runtime does not support it yet`,
    ]);
  });
});
