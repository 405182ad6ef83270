import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

import { expect, it } from "vitest";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const support = new URL("../../support/policy-engine.ts", import.meta.url);

/** What has ended the process between the 2,000th and the 14,000th decision, see `wasmCallFlag`. */
const PROGRAM = `
import { createTestPolicyEngine } from ${JSON.stringify(support.href)};

const engine = createTestPolicyEngine();
const questions = [
  (i) => ({ action: "pullModule", location: "ghcr.io/example/" + i }),
  (i) => ({ action: "requireSignature", location: "ghcr.io/example/" + i }),
  () => ({ action: "usePrivateTmp" }),
  (i) => ({ action: "grantEgress", host: "a" + i + ".example.com", method: "GET", path: "", scheme: "https", port: 443 }),
  (i) => ({ action: "spendCredential", credential: "c" + i, repository: null }),
  (i) => ({ action: "spendCredential", credential: "c" + i, repository: "ghcr.io/example" }),
];

async function compile(pattern) {
  const result = await engine.compile(
    'permit (principal, action, resource) when { principal.namespace like "' + pattern + '" };',
  );
  if (result.kind === "error") throw new Error(result.message);
  return result.policy;
}

let permitted = 0;
const policy = await compile("team-*");
for (let i = 0; i < 20_000; i++) {
  if (i % 1_000 === 999) await compile("other-" + i);
  const namespace = (i % 3 === 0 ? "team-" : "other-") + i;
  const question = questions[i % questions.length](i);
  const { allowed } = await engine.decide(policy, { namespace, xrKind: "XApp" }, question);
  if (allowed) permitted++;
}
await engine.close();
console.log(permitted);
`;

it("a process outlives twenty thousand different decisions", async () => {
  // Three, since not every one would end.
  const ended = await Promise.all([run(), run(), run()]);

  for (const process of ended) {
    expect(process).toEqual({
      code: 0,
      signal: null,
      // Every third.
      stdout: "6667\n",
      stderr: "",
    });
  }
});

/** Runs {@link PROGRAM}. What goes wrong in it is no exception, and would end the test runner. */
async function run() {
  const child = spawn(
    process.execPath,
    ["--import", "tsx", "--input-type=module", "--eval", PROGRAM],
    {
      cwd: root,
      env: { PATH: process.env["PATH"] },
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  const written = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (chunk: string) => {
      written[name] += chunk;
    });
  }
  const [code, signal] = (await once(child, "close")) as unknown[];
  return { code, signal, ...written };
}
