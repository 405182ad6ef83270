import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

import { beforeAll, describe, expect, it } from "vitest";

import { buildGrpcGoClient } from "../../bench/grpc-go-client.js";
import { missingTool } from "../support/tools.js";

const SOAK = fileURLToPath(new URL("../../bench/soak.ts", import.meta.url));
/** Its servers' logs are searched for secrets, too. */
const RECORD_PROGRAMS = new URL(
  "../support/record-programs.ts",
  import.meta.url,
).href;

const MAX_RUN_MS = 58_000;

/** That it works; whether the figures are kept is for whoever runs it on a quiet machine. */
describe.skipIf(missingTool("go"))("integration/soak", () => {
  // Takes minutes where nothing is cached, and a moment afterwards.
  beforeAll(buildGrpcGoClient, 300_000);

  it("finds nothing wrong but what no process can keep", async () => {
    const { code, stdout, stderr } = await soak(
      ...["--requests", "2000", "--minutes", "0.5"],
      // Resident memory that all but vanishes.
      ...["--max-growth=-100", "--max-health", "5000"],
    );

    expect(code, stderr).toBe(1);
    const targets = stdout
      .split("\n")
      .filter((line) => / (met|missed) +\|$/.test(line));
    expect(targets, stdout + stderr).toHaveLength(8);
    expect(targets.filter((line) => !/ met +\|$/.test(line))).toEqual([
      expect.stringMatching(/^\| resident set, last quarter +\| \d+ MB +\|/),
    ]);
  }, 60_000);
});

function soak(
  ...args: string[]
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const imports = ["--import", "tsx", "--import", RECORD_PROGRAMS];
  const child = spawn(process.execPath, [...imports, SOAK, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    // A group of its own, so that its servers can be ended with it.
    detached: true,
  });
  const timer = setTimeout(() => {
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  }, MAX_RUN_MS);
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  child.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      clearTimeout(timer);
      resolve({ code, stdout, stderr });
    });
  });
}
