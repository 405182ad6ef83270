import { createHash } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Command } from "commander";
import { onTestFinished } from "vitest";

import { addModuleCommand } from "../../../../src/cli/module.js";
import type { Environment } from "../../../../src/config.js";
import type { Engine, EngineOptions } from "../../../../src/engine/index.js";
import type { Digest } from "../../../../src/ports.js";
import { captureWrites } from "../../../support/captured-writes.js";
import { fakeEngine, realClock } from "../../function/fixtures.js";

/** What a command did. */
export interface Outcome {
  readonly code: unknown;
  readonly stdout: string;
  readonly stderr: string;
}

/** The world that a command is run in. */
export interface World {
  readonly env?: Environment;
  /** Parts of the sandbox; without them everything loads, as ABI 1. */
  readonly engine?: Partial<Engine>;
  readonly onEngine?: (options: EngineOptions) => void;
}

/** Runs `module` and its arguments as a shell would, with a sandbox that takes everything. */
export async function runModule(
  argv: readonly string[],
  world: World = {},
): Promise<Outcome> {
  const { written, restore } = captureWrites();
  const program = new Command().exitOverride();
  addModuleCommand(program, {
    env: world.env ?? {},
    clock: realClock,
    createEngine(options) {
      world.onEngine?.(options);
      const running = () => Promise.reject(new Error("nothing is run"));
      return { ...fakeEngine(running), ...world.engine };
    },
  });
  process.exitCode = undefined;
  let code: unknown;
  try {
    await program.parseAsync(["module", ...argv], { from: "user" });
    code = process.exitCode;
  } finally {
    process.exitCode = undefined;
    restore();
  }
  return { code, ...written };
}

/** A directory with these files, which goes with the test. */
export async function dirOf(
  contents: Readonly<Record<string, string | Uint8Array>> = {},
): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "module-test-"));
  onTestFinished(() => rm(dir, { recursive: true }));
  for (const [name, content] of Object.entries(contents))
    await writeFile(join(dir, name), content);
  return dir;
}

export function sha256(bytes: string | Uint8Array): Digest {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}
