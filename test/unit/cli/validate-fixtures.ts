import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Command } from "commander";
import { afterAll, onTestFinished } from "vitest";

import { addValidateCommand } from "../../../src/cli/validate.js";
import type { Environment } from "../../../src/config.js";
import type { Engine, EngineOptions } from "../../../src/engine/index.js";
import type { JsonObject, PolicyEngine } from "../../../src/admission/index.js";
import { captureWrites } from "../../support/captured-writes.js";
import { createTestPolicyEngine } from "../../support/policy-engine.js";
import { fakeEngine, realClock } from "../function/fixtures.js";

/** What `validate` did. */
export interface Outcome {
  readonly code: unknown;
  readonly stdout: string;
  readonly stderr: string;
}

/** The world that `validate` is run in. */
export interface World {
  readonly env?: Environment;
  readonly stdin?: string;
  /** Parts of the sandbox; everything loads without them. */
  readonly engine?: Partial<Engine>;
  readonly onEngine?: (options: EngineOptions) => void;
  readonly policies?: Partial<PolicyEngine>;
  readonly onPoliciesClosed?: () => void;
  /** How far the clock is ahead of the real one; not at all by default. */
  readonly aheadMs?: number;
}

/** Its thread takes a moment to start, so a file's tests share it. */
export const policies = createTestPolicyEngine();
afterAll(() => policies.close());

/** Runs the command as a shell would. */
export async function validate(
  argv: readonly string[],
  world: World = {},
): Promise<Outcome> {
  const { written, restore } = captureWrites();
  const program = new Command().exitOverride();
  addValidateCommand(program, {
    env: world.env ?? {},
    clock: {
      ...realClock,
      nowMs: () => realClock.nowMs() + (world.aheadMs ?? 0),
    },
    createPolicyEngine: () => ({
      ...policies,
      ...world.policies,
      close: () => {
        world.onPoliciesClosed?.();
        return Promise.resolve();
      },
    }),
    createEngine(options) {
      world.onEngine?.(options);
      const running = () => Promise.reject(new Error("nothing is run"));
      return { ...fakeEngine(running), ...world.engine };
    },
    // eslint-disable-next-line @typescript-eslint/require-await -- a stream needs none
    stdin: async function* () {
      yield Buffer.from(world.stdin ?? "");
    },
  });
  process.exitCode = undefined;
  let code: unknown;
  try {
    await program.parseAsync(["validate", ...argv], { from: "user" });
    code = process.exitCode;
  } catch (thrown) {
    code = thrown;
  } finally {
    process.exitCode = undefined;
    restore();
  }
  return { code, ...written };
}

/** A directory that goes with the test. */
export async function temporaryDir(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "validate-test-"));
  onTestFinished(() => rm(dir, { recursive: true }));
  return dir;
}

/** Writes files and returns where they lie. */
export async function filesOf(
  contents: Readonly<Record<string, string | Uint8Array>>,
): Promise<string> {
  const dir = await temporaryDir();
  for (const [name, content] of Object.entries(contents))
    await writeFile(join(dir, name), content);
  return dir;
}

/** An Input of the current version. */
export function inputOf(fields: JsonObject): JsonObject {
  return { apiVersion: "wasm.fn.crossplane.io/v1", kind: "Input", ...fields };
}

/** An Input that is admitted with a --module-dir. */
export const pathInput = inputOf({
  module: { type: "Path", path: "greeter.wasm" },
});

/** A Composition of these steps; a step has no `input` when it is given none. */
export function compositionOf(
  steps: readonly JsonObject[],
  name = "things",
): JsonObject {
  return {
    apiVersion: "apiextensions.crossplane.io/v1",
    kind: "Composition",
    metadata: { name },
    spec: {
      compositeTypeRef: { apiVersion: "example.org/v1", kind: "XThing" },
      mode: "Pipeline",
      pipeline: steps.map((step, i) => ({
        step: `step-${i}`,
        functionRef: { name: "function-wasm" },
        ...step,
      })),
    },
  };
}

/** The objects of a JSON report. */
export function jsonLines(stdout: string): Record<string, unknown>[] {
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}
