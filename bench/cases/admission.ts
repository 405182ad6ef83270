import { writeFile } from "node:fs/promises";
import { join } from "node:path";

import { requestFile, type Bench, type Case } from "../bench.js";
import { allGood } from "../load-client.js";
import { percentile } from "../percentile.js";
import { smallState, type RequestParts } from "../request.js";
import { startFunction, withServers } from "../server-process.js";
import { formatRatio, formatUs, judge, type Row } from "../table.js";

/** What a Composition may say of a module that the composite resource chooses. */
const COMPOSITION_POLICY = `
permit (principal, action == Action::"pullModule",
        resource in Repository::"ghcr.io/example");
permit (principal, action == Action::"setEnv", resource)
when { principal.namespace == "team-a" && context.keys.contains("TOKEN") };
permit (principal, action == Action::"spendCredential",
        resource == Credential::"db");
permit (principal, action == Action::"spendCredential",
        resource == Credential::"cmdb");
`;

const OPERATOR_POLICY = `
permit (principal, action in [Action::"setEnv", Action::"spendCredential"], resource)
when { principal.namespace like "team-*" };
`;

const MANIFEST = `
abi: 1
requires:
  env:
    - name: TOKEN
      fromCredential: { name: db, key: token }
  credentials: [cmdb]
config:
  schema:
    type: object
    properties:
      greeting: { type: string, minLength: 1 }
      labels: { type: object, additionalProperties: { type: string } }
    additionalProperties: false
`;

const CONFIG = { greeting: "hello", labels: { team: "a", tier: "gold" } };

const CREDENTIALS = {
  db: { token: "x".repeat(40), url: "postgres://db.example.com/app" },
  cmdb: { token: "y".repeat(40) },
  registry: { ".dockerconfigjson": "z".repeat(200) },
};

const MIB = 1024 * 1024;

/** What admission adds to a request, and that a policy of a megabyte is compiled once. */
export const admission: Case = {
  name: "admission",
  async run(bench) {
    const { echo } = bench.guests;
    const manifestPath = "admission.wasmfn.yaml";
    const policyFile = join(bench.workDir, "admission.cedar");
    await writeFile(join(bench.moduleDir, manifestPath), MANIFEST);
    await writeFile(policyFile, OPERATOR_POLICY);
    const write = (name: string, parts: Partial<RequestParts>) =>
      requestFile(bench, `admission-${name}`, echo, parts);
    const files = {
      bare: await write("bare", {}),
      typical: await write("typical", {
        module: { from: "spec.module", manifestPath },
        observed: smallState({ module: echo.path }),
        compositionPolicy: COMPOSITION_POLICY,
        config: CONFIG,
        credentials: CREDENTIALS,
      }),
      // Texts of one size: to receive a megabyte takes time, too.
      config: await write("config", { config: { text: "x".repeat(MIB) } }),
      policy: await write("policy", {
        compositionPolicy: `${COMPOSITION_POLICY}${manyRules(MIB - COMPOSITION_POLICY.length)}`,
      }),
    };
    const [bare = NaN, typical = NaN, config = NaN, policy = NaN] =
      await measure(bench, files, policyFile);
    return [
      {
        what: "admission of a typical Input, p50",
        ours: formatUs(typical),
        beside: `bare Input ${formatUs(bare)}`,
        ratio: `+${formatUs(typical - bare)}`,
        target: judge(typical - bare, {
          kind: "at-most",
          limit: 150,
          unit: "µs more",
        }),
      },
      {
        what: "compositionPolicy of 1 MiB, p50",
        ours: formatUs(policy),
        beside: `config of 1 MiB ${formatUs(config)}`,
        ratio: formatRatio(policy / config),
        target: judge(policy / config, {
          kind: "at-most",
          limit: 1.1,
          unit: "× config",
        }),
      },
    ] satisfies Row[];
  },
};

async function measure(
  bench: Bench,
  files: Readonly<Record<string, string>>,
  policyFile: string,
): Promise<number[]> {
  const starting = [
    startFunction({
      moduleDir: bench.moduleDir,
      cacheDir: `${bench.workDir}/admission`,
      flags: ["--sandbox-policy-file", policyFile],
    }),
  ];
  const results = await withServers(starting, ([ours]) =>
    bench.client.load({
      targets: Object.entries(files).map(([name, file]) => ({
        name,
        address: ours?.address ?? "",
        method: "v1",
        requestFile: file,
      })),
      rounds: bench.quick ? 300 : 3000,
      roundCalls: 1,
      warmupCalls: 200,
      concurrency: 1,
      deadlineMs: 30_000,
      maxDurationMs: 180_000,
    }),
  );
  return allGood(results).map(({ samplesUs }) => percentile(samplesUs, 50));
}

/** Rules that name other namespaces, at most `maxChars` of them. */
function manyRules(maxChars: number): string {
  let text = "";
  for (let n = 0; ; n++) {
    const rule = `permit (principal, action == Action::"setEnv", resource) when { principal.namespace == "team-${n}" && principal.xrKind == "XApp" };\n`;
    if (text.length + rule.length > maxChars) return text;
    text += rule;
  }
}
