import { Worker } from "node:worker_threads";

import {
  afterAll,
  afterEach,
  beforeAll,
  describe,
  expect,
  it,
  vi,
} from "vitest";

import type { JobReply } from "../../../../src/admission/cedar/messages.js";
import {
  maxPolicyBytes,
  type CompiledPolicy,
  type PolicyEngine,
  type Principal,
  type Question,
} from "../../../../src/admission/cedar/policy.js";
import { createPolicyEngine } from "../../../../src/admission/cedar/policy-engine.js";
import {
  createTestPolicyEngine,
  startSourceWorker,
} from "../../../support/policy-engine.js";
import { createRequestScope } from "../../../../src/request-scope.js";
import { createScriptedWorkers } from "./scripted-worker.js";

const monotonicMs = () => performance.now();

const NOBODY: Principal = { namespace: "", xrKind: "" };
const PERMIT_ALL = "permit (principal, action, resource);";
const PULL = { action: "pullModule", location: "ghcr.io/example/a" } as const;
const TOO_COMPLEX =
  "it is too complex for Cedar to judge: use more and simpler rules";

describe("admission/cedar/policy-engine", () => {
  describe("with Cedar", () => {
    let engine: PolicyEngine;
    let workersStarted = 0;
    beforeAll(() => {
      engine = createTestPolicyEngine({
        startWorker: () => {
          workersStarted++;
          return startSourceWorker();
        },
        // Not what is tested here, and the machine may be busy.
        limits: { compileMs: 60_000, decideMs: 60_000 },
      });
    });
    afterAll(() => engine.close());

    it("compiles a policy", async () => {
      const text = `permit (principal, action == Action::"pullModule", resource);
        forbid (principal, action == Action::"dialAddress", resource) when { context.ip.isInRange(ip("10.0.0.0/8")) };`;

      const policy = await compiled(text);

      expect(policy).toEqual({
        text,
        hash: expect.stringMatching(/^[0-9a-f]{64}$/) as unknown,
        ruleCount: 2,
        warnings: [],
        scopedActions: new Set(["pullModule", "dialAddress"]),
        dialAddress: {
          permit: [],
          forbid: [{ cidr: "10.0.0.0/8", rule: "policy1" }],
        },
      });
      expect(Object.isFrozen(policy)).toBe(true);
      expect(Object.isFrozen(policy.dialAddress.forbid[0])).toBe(true);
    });

    it("compiles a policy that is only comments, and it permits nothing (C81)", async () => {
      const policy = await compiled("// nothing yet\n");

      expect(policy.ruleCount).toBe(0);
      expect(policy.scopedActions.size).toBe(0);
      await expect(engine.decide(policy, NOBODY, PULL)).resolves.toEqual({
        allowed: false,
        rules: [],
      });
    });

    it("refuses a policy that does not fit the schema (C75)", async () => {
      await expect(
        engine.compile(
          `${PERMIT_ALL}\nforbid (principal, action, resource) when { context.nope == 1 };`,
        ),
      ).resolves.toEqual({
        kind: "error",
        message: expect.stringMatching(
          /^line 2: for policy `policy1`, attribute `nope` in context for /,
        ) as unknown,
      });
    });

    it("knows the address rules of a policy that scopes nothing else (C79)", async () => {
      const { scopedActions, dialAddress } = await compiled(PERMIT_ALL);

      expect(scopedActions.size).toBe(0);
      expect(dialAddress).toEqual({ permit: [], forbid: [] });
    });

    describe("decides", () => {
      const TEAM: Principal = { namespace: "team-a", xrKind: "XApp" };
      const EXAMPLE = scoped("pullModule", 'in Repository::"ghcr.io/example"');
      const HOST = scoped("grantEgress", 'in HostPattern::"example.com"');
      const UNDER = scoped("grantEgress", 'in HostPattern::"*.example.com"');
      const OVERFLOW =
        'forbid (principal, action == Action::"grantEgress", resource) when { 9223372036854775807 + context.port > 0 };';

      it.each<{
        name: string;
        policy: string;
        principal?: Principal;
        question: Question;
        want: boolean;
      }>([
        // Boundaries of Repository.
        pull("the repository itself", EXAMPLE, "ghcr.io/example", true),
        pull("what is under it", EXAMPLE, "ghcr.io/example/a/b", true),
        pull(
          "a name that starts alike",
          EXAMPLE,
          "ghcr.io/example-evil/a",
          false,
        ),
        pull("what is above it", EXAMPLE, "ghcr.io", false),
        pull("another registry", EXAMPLE, "evil.test/ghcr.io/example/a", false),
        pull(
          "a prefix with a slash",
          scoped("pullModule", 'in Repository::"ghcr.io/example/"'),
          "ghcr.io/example/a",
          true,
        ),
        pull(
          "the repository itself by a prefix with a slash",
          scoped("pullModule", 'in Repository::"ghcr.io/example/"'),
          "ghcr.io/example",
          true,
        ),
        pull(
          "a repository by ==, not what is under it",
          scoped("pullModule", '== Repository::"ghcr.io/example"'),
          "ghcr.io/example/a",
          false,
        ),
        pull(
          "a URL by its host",
          scoped("pullModule", 'in Repository::"https://example.com"'),
          "https://example.com/a/fn.wasm",
          true,
        ),
        pull(
          "a URL by its path",
          scoped("pullModule", 'in Repository::"https://example.com/a"'),
          "https://example.com/a/fn.wasm",
          true,
        ),
        pull(
          "a URL of another port",
          scoped("pullModule", 'in Repository::"https://example.com"'),
          "https://example.com:8443/a",
          false,
        ),
        pull(
          "a URL by a scheme",
          scoped("pullModule", 'in Repository::"https:"'),
          "https://example.com/a",
          false,
        ),
        pull(
          "a location with too many levels, even where all are permitted",
          PERMIT_ALL,
          `ghcr.io${"/a".repeat(200)}`,
          false,
        ),
        // Boundaries of HostPattern.
        egress("the host itself", HOST, { host: "example.com" }, true),
        egress("a host under it", HOST, { host: "a.b.example.com" }, true),
        egress("its pattern", HOST, { host: "*.example.com" }, true),
        egress(
          "a name that ends alike",
          HOST,
          { host: "badexample.com" },
          false,
        ),
        egress(
          "a host below another",
          HOST,
          { host: "example.com.evil.test" },
          false,
        ),
        egress("what is above it", HOST, { host: "com" }, false),
        egress(
          "a host under a pattern",
          UNDER,
          { host: "a.example.com" },
          true,
        ),
        egress("the pattern itself", UNDER, { host: "*.example.com" }, true),
        egress("a pattern under it", UNDER, { host: "*.a.example.com" }, true),
        egress("a pattern's apex", UNDER, { host: "example.com" }, false),
        egress("a pattern above it", UNDER, { host: "*.com" }, false),
        egress(
          "an address by its last number",
          scoped("grantEgress", 'in HostPattern::"1"'),
          { host: "10.0.0.1" },
          false,
        ),
        egress(
          "an address by itself",
          scoped("grantEgress", '== HostPattern::"10.0.0.1"'),
          { host: "10.0.0.1" },
          true,
        ),
        egress(
          "a host by its attribute",
          `permit (principal, action == Action::"grantEgress", resource) when { resource.host == "a.test" };`,
          { host: "a.test" },
          true,
        ),
        // The rest of grantEgress.
        ...[
          { name: "everything that fits", asked: {}, want: true },
          { name: "another method", asked: { method: "POST" }, want: false },
          { name: "another path", asked: { path: "/v2" }, want: false },
          { name: "another scheme", asked: { scheme: "http" }, want: false },
          { name: "another port", asked: { port: 80 }, want: false },
        ].map(({ name, asked, want }) =>
          egress(
            name,
            `permit (principal, action == Action::"grantEgress", resource)
             when { context.method == "GET" && context.path == "/v1" && context.scheme == "https" && context.port == 443 };`,
            { path: "/v1", ...asked },
            want,
          ),
        ),
        // spendCredential.
        ...[
          { name: "the credential", credential: "db", want: true },
          { name: "another credential", credential: "db2", want: false },
        ].map(({ name, credential, want }) => ({
          name,
          policy: scoped("spendCredential", '== Credential::"db"'),
          question: spend(credential, null),
          want,
        })),
        ...[
          {
            name: "for its repository",
            repository: "ghcr.io/example/a",
            want: true,
          },
          {
            name: "for another repository",
            repository: "ghcr.io/other",
            want: false,
          },
          { name: "for no repository", repository: null, want: false },
        ].flatMap(({ name, repository, want }) =>
          ["context has repository && ", ""].map((guard) => ({
            name: `a credential ${name}, ${guard === "" ? "without asking" : "after asking"} whether there is one`,
            policy: `permit (principal, action == Action::"spendCredential", resource)
              when { ${guard}context.repository in Repository::"ghcr.io/example" };`,
            question: spend("registry", repository),
            want,
          })),
        ),
        ...[
          { name: "for no repository", repository: null, want: true },
          { name: "for a repository", repository: "ghcr.io/a", want: false },
        ].map(({ name, repository, want }) => ({
          name: `a credential ${name}, when that is what the rule asks for`,
          policy: `permit (principal, action == Action::"spendCredential", resource)
            unless { context has repository };`,
          question: spend("db", repository),
          want,
        })),
        // usePrivateTmp.
        {
          name: "the private /tmp",
          policy: scoped("usePrivateTmp", '== Capability::"privateTmp"'),
          question: { action: "usePrivateTmp" },
          want: true,
        },
        {
          name: "the private /tmp by a rule for another action",
          policy: scoped("setEnv", '== Capability::"env"'),
          question: { action: "usePrivateTmp" },
          want: false,
        },
        // setEnv.
        ...[
          { name: "all of the variables", keys: ["A", "B"], want: true },
          { name: "some of the variables", keys: ["B"], want: true },
          { name: "one variable too many", keys: ["A", "C"], want: false },
        ].map(({ name, keys, want }) => ({
          name,
          policy: `permit (principal, action == Action::"setEnv", resource)
            when { ["A", "B"].containsAll(context.keys) };`,
          question: { action: "setEnv" as const, keys },
          want,
        })),
        // The principal.
        ...[
          { name: "its namespace and kind", principal: TEAM, want: true },
          {
            name: "another namespace",
            principal: { ...TEAM, namespace: "team-b" },
            want: false,
          },
          {
            name: "another kind",
            principal: { ...TEAM, xrKind: "XDb" },
            want: false,
          },
          { name: "nobody", principal: NOBODY, want: false },
        ].map(({ name, principal, want }) => ({
          name: `by ${name}`,
          policy: `permit (principal == Request::"self", action == Action::"pullModule", resource)
            when { principal.namespace == "team-a" && principal.xrKind == "XApp" && principal.composition == "" };`,
          principal,
          question: PULL,
          want,
        })),
        // How rules go together.
        pull("by a rule for every action", PERMIT_ALL, PULL.location, true),
        pull("by no rule at all", "", PULL.location, false),
        pull(
          "by a forbid beside a permit",
          `${PERMIT_ALL} ${scoped("pullModule", 'in Repository::"ghcr.io"').replace("permit", "forbid")}`,
          PULL.location,
          false,
        ),
        pull(
          "by a forbid that does not match",
          `${PERMIT_ALL} ${scoped("pullModule", 'in Repository::"quay.io"').replace("permit", "forbid")}`,
          PULL.location,
          true,
        ),
        // Rules that fail.
        egress(
          "by a forbid that fails",
          `${PERMIT_ALL} ${OVERFLOW}`,
          {},
          false,
        ),
        egress(
          "by a forbid for another action that would fail",
          `${PERMIT_ALL} ${OVERFLOW.replaceAll("grantEgress", "setEnv").replace("context.port", "9223372036854775807")}`,
          {},
          true,
        ),
        egress(
          "by a permit that fails beside one that does not",
          `${PERMIT_ALL} ${OVERFLOW.replace("forbid", "permit")}`,
          {},
          true,
        ),
        egress(
          "by a permit that fails",
          OVERFLOW.replace("forbid", "permit"),
          {},
          false,
        ),
        {
          name: "by a forbid that reads a repository where there is none",
          policy: `${PERMIT_ALL}
            forbid (principal, action == Action::"spendCredential", resource)
            when { context.repository in Repository::"ghcr.io/evil" };`,
          question: spend("db", null),
          want: false,
        },
        {
          name: "by a forbid that asks for a repository first",
          policy: `${PERMIT_ALL}
            forbid (principal, action == Action::"spendCredential", resource)
            when { context has repository && context.repository in Repository::"ghcr.io/evil" };`,
          question: spend("db", null),
          want: true,
        },

        // A demand for signatures: what cannot be judged is demanded.
        {
          name: "a signature, under a repository",
          policy: scoped("requireSignature", 'in Repository::"ghcr.io/secure"'),
          question: signature("ghcr.io/secure/a"),
          want: true,
        },
        {
          name: "a signature, elsewhere",
          policy: scoped("requireSignature", 'in Repository::"ghcr.io/secure"'),
          question: signature("ghcr.io/open/a"),
          want: false,
        },
        {
          name: "no signature, by a rule for every action",
          policy: PERMIT_ALL,
          question: signature("ghcr.io/open/a"),
          want: false,
        },
        {
          name: "a signature, whatever a forbid of every action says",
          policy: `${scoped("requireSignature", 'in Repository::"ghcr.io/secure"')}
            forbid (principal, action, resource) unless { principal.namespace like "prod-*" };`,
          question: signature("ghcr.io/secure/a"),
          want: true,
        },
        {
          name: "a signature, by a rule that names several actions",
          policy:
            'permit (principal, action in [Action::"setEnv", Action::"requireSignature"], resource);',
          question: signature("ghcr.io/open/a"),
          want: true,
        },
        {
          name: "a signature, by a name that is spelt with an escape",
          policy:
            'permit (principal, action == Action::"require\\u{53}ignature", resource);',
          question: signature("ghcr.io/open/a"),
          want: true,
        },
        {
          name: "a signature, where a forbid excepts a repository",
          policy: `permit (principal, action == Action::"requireSignature", resource);
            forbid (principal, action == Action::"requireSignature", resource in Repository::"ghcr.io/open");`,
          question: signature("ghcr.io/open/a"),
          want: false,
        },
        {
          name: "a signature, where a permit fails",
          policy:
            'permit (principal, action == Action::"requireSignature", resource) when { 9223372036854775807 + 1 > 0 };',
          question: signature("ghcr.io/open/a"),
          want: true,
        },
        {
          name: "a signature, of a location with too many levels",
          policy: scoped("requireSignature", 'in Repository::"ghcr.io/secure"'),
          question: signature(`ghcr.io${"/a".repeat(200)}`),
          want: true,
        },
      ])("$want: $name", async ({ policy, principal, question, want }) => {
        const { allowed } = await engine.decide(
          await compiled(policy),
          principal ?? NOBODY,
          question,
        );

        expect(allowed).toBe(want);
      });

      it("and names the rules that decided, then those that failed", async () => {
        const policy = await compiled(`
          @id("first") permit (principal, action, resource);
          permit (principal, action == Action::"grantEgress", resource);
          permit (principal, action == Action::"setEnv", resource);
          @id("broken") ${OVERFLOW}`);

        await expect(
          engine.decide(policy, NOBODY, egress("", "", {}, true).question),
        ).resolves.toEqual({
          allowed: false,
          rules: ["first", "policy1", "broken"],
        });
      });

      it("by the right one of more policies than the worker keeps", async () => {
        const policies = await Promise.all(
          Array.from({ length: 20 }, (_, i) =>
            compiled(
              `@id("r${i}") ${scoped("pullModule", `in Repository::"ghcr.io/${i}"`)}`,
            ),
          ),
        );

        for (const at of ["x", "y"]) {
          for (const [i, policy] of policies.entries()) {
            for (const [j, want] of [
              [i, true] as const,
              [i + 1, false] as const,
            ]) {
              const location = `ghcr.io/${j}/${at}`;
              await expect(
                engine.decide(policy, NOBODY, {
                  action: "pullModule",
                  location,
                }),
              ).resolves.toEqual({
                allowed: want,
                rules: want ? [`r${i}`] : [],
              });
            }
          }
        }
      });
    });

    it("compiles a text once, and the same text is the same policy", async () => {
      const [first, ...others] = await Promise.all(
        Array.from({ length: 100 }, () => compiled(`// once\n${PERMIT_ALL}`)),
      );

      for (const other of others) expect(other).toBe(first);
    });

    describe("outlives", () => {
      it.each([
        {
          name: "ten thousand nested parentheses (C77)",
          text: when(`${"(".repeat(10_000)}true${")".repeat(10_000)}`),
        },
        {
          name: "a thousand nested records",
          text: when(`${"{a: ".repeat(1_000)}1${"}".repeat(1_000)} has a`),
        },
        {
          name: "three thousand conditions joined by &&",
          text: when(
            Array(3_000).fill('principal.namespace != "a"').join("&&"),
          ),
        },
        {
          // Parses and fits the schema: found by the trial question.
          name: "five hundred conditions joined by ||, which overflow when they are evaluated",
          text: when(
            Array.from(
              { length: 500 },
              (_, i) => `resource in Repository::"ghcr.io/e/${i}"`,
            ).join("||"),
          ),
        },
      ])("$name", async ({ text }) => {
        const good = await compiled(`// before\n${PERMIT_ALL}`);
        const before = workersStarted;

        const result = await engine.compile(text);

        expect(result).toEqual({
          kind: "error",
          message: expect.stringContaining(TOO_COMPLEX) as unknown,
        });
        // As good as new, with the policies of before.
        const location = text.slice(0, 200);
        await expect(
          engine.decide(good, NOBODY, { action: "pullModule", location }),
        ).resolves.toMatchObject({ allowed: true });
        await expect(engine.compile(`${text}]`)).resolves.toMatchObject({
          kind: "error",
        });
        expect(workersStarted).toBeGreaterThan(before);

        // A failure that is recalled costs no worker.
        await engine.decide(good, NOBODY, {
          ...PULL,
          location: `${location}2`,
        });
        const after = workersStarted;
        await expect(engine.compile(text)).resolves.toBe(result);
        await engine.decide(good, NOBODY, {
          ...PULL,
          location: `${location}3`,
        });
        expect(workersStarted).toBe(after);
      });

      it("policies that wait behind a bad one, which do not notice", async () => {
        const bad = when(`${"[".repeat(5_000)}1${"]".repeat(5_000)} == [1]`);

        const results = await Promise.all([
          engine.compile(bad),
          ...["a", "b", "c"].map((name) =>
            engine.compile(`// behind ${name}\n${PERMIT_ALL}`),
          ),
        ]);

        expect(results.map(({ kind }) => kind)).toEqual([
          "error",
          "ok",
          "ok",
          "ok",
        ]);
      });
    });

    it("comes to no decision when only that overflows Cedar's stack, and goes on", async () => {
      const deep = Array.from(
        { length: 500 },
        (_, i) => `resource in Repository::"ghcr.io/e/${i}"`,
      ).join("||");
      const bad = await compiled(
        `${PERMIT_ALL} ${when(`resource in Repository::"quay.io" && (${deep})`)}`,
      );
      const before = workersStarted;
      const location = "quay.io/deep";

      await expect(
        engine.decide(bad, NOBODY, { action: "pullModule", location }),
      ).rejects.toMatchObject({
        code: "policy-unavailable",
        message: expect.stringMatching(
          /^the policy engine is not available: it came to no decision: /,
        ) as unknown,
      });
      await expect(engine.decide(bad, NOBODY, PULL)).resolves.toEqual({
        allowed: true,
        rules: ["policy0"],
      });
      expect(workersStarted).toBe(before + 1);
    });

    it("compiles a policy of a megabyte", async () => {
      const rule = scoped("pullModule", 'in Repository::"ghcr.io/example/a"');
      const text = `${rule} //`.padEnd(1023, " x").concat("\n").repeat(1024);

      const policy = await compiled(text);

      expect(text).toHaveLength(maxPolicyBytes);
      expect(policy.ruleCount).toBe(1024);
      await expect(engine.decide(policy, NOBODY, PULL)).resolves.toMatchObject({
        allowed: true,
      });
    });

    async function compiled(text: string): Promise<CompiledPolicy> {
      const result = await engine.compile(text);
      if (result.kind === "error") throw new Error(result.message);
      return result.policy;
    }
  });

  describe("refuses without Cedar", () => {
    const { workers, startWorker } = createScriptedWorkers();
    const engine = createPolicyEngine({ startWorker, monotonicMs });

    it.each([
      {
        name: "a byte more than a mebibyte",
        text: "x".repeat(maxPolicyBytes + 1),
        want: "expected at most 1048576 bytes, got 1048577",
      },
      {
        name: "five megabytes (C77)",
        text: PERMIT_ALL.repeat(140_000),
        want: "expected at most 1048576 bytes, got 5180000",
      },
      {
        name: "fewer characters with too many bytes",
        text: "€".repeat(maxPolicyBytes / 2),
        want: "expected at most 1048576 bytes, got 1572864",
      },
      {
        name: "half of a surrogate pair",
        text: `// \ud83d\n${PERMIT_ALL}`,
        want: "expected Unicode text, got half of a surrogate pair",
      },
    ])("$name", async ({ text, want }) => {
      await expect(engine.compile(text)).resolves.toEqual({
        kind: "error",
        message: want,
      });
      expect(workers).toHaveLength(0);
    });
  });

  describe("with a scripted worker", () => {
    const ALLOWED: JobReply = {
      kind: "decided",
      verdict: { allowed: true, deciding: [0], failed: [] },
    };
    afterEach(() => {
      vi.useRealTimers();
    });

    it("compiles one text once, however many ask for it", async () => {
      const { engine, worker } = open();

      const all = Array.from({ length: 100 }, () => engine.compile("a"));
      await worker.reply(0, COMPILED);
      const results = await Promise.all(all);

      expect(new Set(results).size).toBe(1);
      expect(worker.jobs()).toHaveLength(1);
    });

    it("decides one question once", async () => {
      const { engine, worker } = open();
      const policy = await compile(engine, worker);

      const both = [1, 2].map(() => engine.decide(policy, NOBODY, PULL));
      await worker.reply(1, ALLOWED);
      const [first, second] = await Promise.all(both);
      const third = await engine.decide(
        { ...policy },
        { ...NOBODY },
        { ...PULL },
      );

      expect(first).toEqual({ allowed: true, rules: ["policy0"] });
      expect(second).toBe(first);
      expect(third).toBe(first);
      expect(worker.jobs()).toHaveLength(2);
    });

    it("sends a text only to a worker that does not have it", async () => {
      const { engine, worker } = open();
      const policy = await compile(engine, worker);

      const decision = engine.decide(policy, NOBODY, PULL);
      await worker.reply(1, { kind: "unknown" });
      await worker.reply(1, ALLOWED);

      await expect(decision).resolves.toMatchObject({ allowed: true });
      expect(worker.jobs().slice(1)).toMatchObject([
        { kind: "decide", text: null, hash: policy.hash },
        { kind: "decide", text: policy.text, hash: policy.hash },
      ]);
    });

    describe("a decision that the worker does not survive", () => {
      it("is none, and is not tried again for two minutes", async () => {
        vi.useFakeTimers();
        const { engine, worker } = open();
        const policy = await compile(engine, worker);

        const decision = engine.decide(policy, NOBODY, PULL);
        await worker.reply(1, {
          kind: "trapped",
          reason: "memory\u001b access",
        });
        for (const one of [decision, engine.decide(policy, NOBODY, PULL)]) {
          await expect(one).rejects.toMatchObject({
            code: "policy-unavailable",
            message:
              "the policy engine is not available: it came to no decision: memory\\u001b access",
          });
        }
        expect(worker.started()).toBe(2);

        vi.advanceTimersByTime(120_000);
        const again = engine.decide(policy, NOBODY, PULL);
        await worker.reply(2, ALLOWED);

        await expect(again).resolves.toMatchObject({ allowed: true });
      });

      it("demands a signature, where that is the question", async () => {
        const { engine, worker } = open();
        const policy = await compile(engine, worker);
        const question = signature("ghcr.io/a");

        const decision = engine.decide(policy, NOBODY, question);
        await worker.reply(1, { kind: "trapped", reason: "memory access" });

        for (const one of [decision, engine.decide(policy, NOBODY, question)])
          await expect(one).resolves.toEqual({ allowed: true, rules: [] });
      });
    });

    it("comes to no decision when a worker does not know a policy whose text it was sent", async () => {
      const { engine, worker } = open();
      const policy = await compile(engine, worker);

      const decision = engine.decide(policy, NOBODY, PULL);
      await worker.reply(1, { kind: "unknown" });
      await worker.reply(1, { kind: "unknown" });

      await expect(decision).rejects.toMatchObject({
        message:
          "the policy engine is not available: it came to no decision: unknown",
      });
    });

    it("refuses a policy that breaks the worker, and does not try it again", async () => {
      const { engine, worker } = open();

      const result = engine.compile("a");
      await worker.reply(0, { kind: "trapped", reason: "memory\u001b access" });

      const want = {
        kind: "error",
        message: `${TOO_COMPLEX} (memory\\u001b access)`,
      };
      await expect(result).resolves.toEqual(want);
      await expect(engine.compile("a")).resolves.toEqual(want);
      expect(worker.started()).toBe(1);
    });

    describe("a compile that takes too long", () => {
      it.each([
        {
          name: "is tried again after two minutes",
          layer: "composition" as const,
          afterMs: 120_000,
        },
        {
          name: "is tried again at once when it is the operator's",
          layer: "operator" as const,
          afterMs: 0,
        },
      ])("$name", async ({ layer, afterMs }) => {
        vi.useFakeTimers();
        const { engine, worker } = open();
        const slow = engine.compile("slow", layer);
        worker.ready(0);
        vi.advanceTimersByTime(10_000);
        const tooSlow = {
          kind: "error",
          message: `${TOO_COMPLEX} (it takes longer than 10 s)`,
        };
        await expect(slow).resolves.toEqual(tooSlow);

        if (afterMs > 0) {
          vi.advanceTimersByTime(afterMs - 1);
          await expect(engine.compile("slow", layer)).resolves.toEqual(tooSlow);
          vi.advanceTimersByTime(1);
        }
        const again = engine.compile("slow", layer);
        await worker.reply(1, COMPILED);

        await expect(again).resolves.toMatchObject({ kind: "ok" });
      });
    });

    describe("keeps what Compositions compile out of the way", () => {
      it("of decisions and of the operator's policy", async () => {
        const { engine, worker } = open();
        const policy = await compile(engine, worker);
        void engine.compile("large");

        const decision = engine.decide(policy, NOBODY, PULL);
        const next = engine.decide(policy, NOBODY, signature("ghcr.io/a"));
        const operators = engine.compile("operator's", "operator");
        await worker.reply(1, ALLOWED);
        await worker.reply(1, COMPILED);
        await worker.reply(1, ALLOWED);

        await expect(decision).resolves.toMatchObject({ allowed: true });
        await expect(operators).resolves.toMatchObject({ kind: "ok" });
        await expect(next).resolves.toMatchObject({ allowed: true });
        expect(worker.jobs(0)).toMatchObject([{}, { text: "large" }]);
        expect(worker.jobs(1)).toMatchObject([
          { question: PULL },
          { text: "operator's" },
          { question: { action: "requireSignature" } },
        ]);
      });

      it("of the operator's, even when it is the same text", async () => {
        const { engine, worker } = open();
        void engine.compile("a");

        const operators = engine.compile("a", "operator");
        await worker.reply(1, COMPILED);

        await expect(operators).resolves.toMatchObject({ kind: "ok" });
      });

      it("of shorter ones", async () => {
        const { engine, worker } = open();
        for (const text of ["first", "longest", "long", "a"])
          void engine.compile(text);
        for (let i = 0; i < 4; i++) await worker.reply(0, COMPILED);

        expect(worker.jobs()).toMatchObject(
          ["first", "a", "long", "longest"].map((text) => ({ text })),
        );
      });
    });

    describe("refuses what is too much to wait", () => {
      const TOO_MUCH = {
        code: "policy-unavailable",
        message: "the policy engine is not available: too much waits for it",
      };

      it("beyond 64 policies of Compositions, and takes the operator's", async () => {
        const { engine, worker } = open();
        void engine.compile("a");
        const waiting = Array.from({ length: 64 }, (_, i) =>
          engine.compile(`b${i + 10}`),
        );

        await expect(engine.compile("b99")).rejects.toMatchObject(TOO_MUCH);
        const operators = engine.compile("b99", "operator");
        await worker.reply(1, COMPILED);
        await expect(operators).resolves.toMatchObject({ kind: "ok" });
        for (let i = 0; i < 65; i++) await worker.reply(0, COMPILED);

        await expect(Promise.all(waiting)).resolves.toHaveLength(64);
      });

      it("beyond 1024 decisions, and takes the operator's policy for one of them", async () => {
        const { engine, worker } = open();
        const policy = await compile(engine, worker);
        const ask = (i: number) =>
          engine.decide(policy, NOBODY, signature(`ghcr.io/${i}`));
        const waiting = Array.from({ length: 1025 }, (_, i) => ask(i));

        await expect(ask(1025)).rejects.toMatchObject(TOO_MUCH);
        const operators = engine.compile("operator's", "operator");
        await expect(waiting.pop()).rejects.toMatchObject(TOO_MUCH);
        await worker.reply(1, ALLOWED);
        await worker.reply(1, COMPILED);
        await expect(operators).resolves.toMatchObject({ kind: "ok" });
        for (let i = 0; i < 1023; i++) await worker.reply(1, ALLOWED);

        await expect(Promise.all(waiting)).resolves.toHaveLength(1024);
      });
    });

    describe("for a request that has ended", () => {
      it("does not begin to compile or to decide", async () => {
        vi.useFakeTimers();
        const { engine, worker } = open();
        const policy = await compile(engine, worker);
        const scope = createRequestScope({
          deadlineAtMs: performance.now() + 1_000,
        });
        const started = [
          engine.compile("started"),
          engine.decide(policy, NOBODY, PULL),
        ];
        const waits = [
          engine.compile("waits", "composition", scope),
          engine.decide(policy, NOBODY, signature("ghcr.io/a"), scope),
        ];

        vi.advanceTimersByTime(1_000);
        waits.push(
          engine.compile("late", "composition", scope),
          engine.decide(policy, NOBODY, signature("ghcr.io/b"), scope),
        );
        for (const wait of waits) {
          await expect(wait).rejects.toMatchObject({
            code: "policy-unavailable",
            message: "waiting for the policy engine: deadline exceeded",
          });
        }
        await worker.reply(0, COMPILED);
        await worker.reply(1, ALLOWED);
        await Promise.all(started);

        expect(worker.jobs()).toHaveLength(3);
      });
    });

    describe("forgets", () => {
      const LARGE = 1_000_000;

      it.each([
        { name: "policies beyond 1024", lengths: Array<number>(1024).fill(9) },
        {
          name: "policies beyond 32 MiB",
          lengths: Array<number>(34).fill(LARGE),
        },
      ])("$name", async ({ lengths }) => {
        const { engine, worker } = open();
        const texts = lengths.map((length, i) => `${i} `.padEnd(length));
        const compileNow = async (text: string) => {
          const result = engine.compile(text);
          await worker.reply(0, COMPILED);
          await result;
        };

        await compileNow("first");
        for (const text of texts.slice(0, -1)) await compileNow(text);
        await engine.compile("first");
        await compileNow(texts.at(-1) ?? "");
        expect(worker.jobs()).toHaveLength(texts.length + 1);

        // Asked for once more than the others, so it is the second that goes.
        await engine.compile("first");
        await compileNow(texts[0] ?? "");
        expect(worker.jobs()).toHaveLength(texts.length + 2);
      });

      it("not the failures of as many bytes, whose texts it does not keep", async () => {
        const { engine, worker } = open();
        const texts = Array.from({ length: 40 }, (_, i) =>
          `${i} `.padEnd(LARGE),
        );
        for (const text of texts) {
          const result = engine.compile(text);
          await worker.reply(0, { kind: "refused", message: "no" });
          await result;
        }

        for (const text of texts)
          await expect(engine.compile(text)).resolves.toMatchObject({
            message: "no",
          });
        expect(worker.jobs()).toHaveLength(40);
      });

      it.each([
        { name: "decisions beyond 4096", count: 4096, locationLength: 9 },
        {
          name: "decisions beyond 4 MiB of questions",
          count: 41,
          locationLength: 100_000,
        },
      ])("$name", async ({ count, locationLength }) => {
        const { engine, worker } = open();
        const policy = await compile(engine, worker);
        const ask = (i: number) =>
          engine.decide(policy, NOBODY, {
            action: "pullModule",
            location: `${i}/`.padEnd(locationLength, "a"),
          });
        const askNow = async (i: number) => {
          const decision = ask(i);
          await worker.reply(1, ALLOWED);
          await decision;
        };

        for (let i = 0; i < count; i++) await askNow(i);
        await ask(0);
        await askNow(count);
        expect(worker.jobs(1)).toHaveLength(count + 1);

        // Asked for once more than the others, so it is the second that goes.
        await ask(0);
        await askNow(1);
        expect(worker.jobs(1)).toHaveLength(count + 2);
      });
    });

    it("does not decide by a policy that another engine compiled", async () => {
      const { engine, worker } = open();
      const policy = await compile(engine, worker);

      await expect(
        open().engine.decide(policy, NOBODY, PULL),
      ).rejects.toMatchObject({
        code: "policy-unavailable",
        message:
          "the policy engine is not available: it did not compile this policy",
      });
    });

    it("ends what waits when it is closed", async () => {
      const { engine, worker } = open();
      const policy = await compile(engine, worker);

      const waiting = [
        engine.compile("b"),
        engine.decide(policy, NOBODY, PULL),
      ];
      await engine.close();
      await engine.close();

      for (const one of [...waiting, engine.compile("c")])
        await expect(one).rejects.toMatchObject({ code: "policy-unavailable" });
    });
  });

  it("is not available when its thread cannot be started, and says why", async () => {
    const program = new URL("./no-such-program.js", import.meta.url);
    const engine = createPolicyEngine({
      monotonicMs,
      startWorker: () => new Worker(program),
    });

    await expect(engine.compile(PERMIT_ALL)).rejects.toMatchObject({
      code: "policy-unavailable",
      message: expect.stringMatching(
        /^the policy engine is not available: it cannot be started: Cannot find module /,
      ) as unknown,
    });
    await engine.close();
  });
});

function scoped(action: string, resource: string): string {
  return `permit (principal, action == Action::"${action}", resource ${resource});`;
}

function when(condition: string): string {
  return `permit (principal, action == Action::"pullModule", resource) when { ${condition} };`;
}

/** A row of the truth table. */
interface Row {
  readonly name: string;
  readonly policy: string;
  readonly question: Question;
  readonly want: boolean;
}

function pull(
  name: string,
  policy: string,
  location: string,
  want: boolean,
): Row {
  return { name, policy, question: { action: "pullModule", location }, want };
}

function egress(
  name: string,
  policy: string,
  asked: Partial<Extract<Question, { action: "grantEgress" }>>,
  want: boolean,
): Row {
  const question: Question = {
    action: "grantEgress",
    host: "example.com",
    method: "GET",
    path: "",
    scheme: "https",
    port: 443,
    ...asked,
  };
  return { name, policy, question, want };
}

function signature(location: string): Question {
  return { action: "requireSignature", location };
}

function spend(credential: string, repository: string | null): Question {
  return { action: "spendCredential", credential, repository };
}

/** An engine and its workers; after a Composition's policy, number 0 is for those. */
function open() {
  const { workers, startWorker } = createScriptedWorkers();
  const engine = createPolicyEngine({
    startWorker,
    monotonicMs,
  });
  const isReady = new Set<number>();
  const answer = {
    started: () => workers.length,
    jobs: (number?: number) =>
      workers.flatMap(({ jobs }, i) =>
        number === undefined || number === i ? jobs : [],
      ),
    ready(number: number) {
      if (!isReady.has(number)) workers[number]?.ready();
      isReady.add(number);
    },
    /** Lets the worker of that number do its next job; the engine may only just be about to give it. */
    async reply(number: number, reply: JobReply) {
      await Promise.resolve();
      answer.ready(number);
      workers[number]?.reply(reply);
      await Promise.resolve();
    },
  };
  return { engine, worker: answer };
}

const COMPILED: JobReply = {
  kind: "compiled",
  report: {
    rules: [{ id: "policy0", effect: "permit" }],
    scopedActions: [],
    warnings: [],
    dialAddress: { permit: [], forbid: [] },
  },
};

async function compile(
  engine: PolicyEngine,
  worker: ReturnType<typeof open>["worker"],
): Promise<CompiledPolicy> {
  const result = engine.compile(PERMIT_ALL);
  await worker.reply(0, COMPILED);
  const compiled = await result;
  if (compiled.kind === "error") throw new Error(compiled.message);
  return compiled.policy;
}
