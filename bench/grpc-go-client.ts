import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import type {
  LoadClient,
  LoadPlan,
  LoadTarget,
  TargetResult,
} from "./load-client.js";

/** What `call` prints. */
export interface CallResult {
  /** gRPC code by name, such as `OK` or `DeadlineExceeded`. */
  readonly code: string;
  readonly message: string;
  readonly elapsedUs: number;
  readonly sizeBytes: number;
  readonly responseHex: string;
}

/** What `load` prints. */
interface LoadOutput {
  readonly targets: readonly (Omit<TargetResult, "firstAnswer"> & {
    readonly name: string;
  })[];
}

const SOURCE_DIR = fileURLToPath(
  new URL("../test/clients/grpc-go", import.meta.url),
);
const BINARY = fileURLToPath(
  new URL("../build/grpc-go-client", import.meta.url),
);
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

const execute = promisify(execFile);

/** Whether a Go toolchain is on the PATH. */
export async function hasGo(): Promise<boolean> {
  try {
    await execute("go", ["version"]);
    return true;
  } catch {
    return false;
  }
}

/**
 * Builds the grpc-go client into `build/` and returns its path. Quick when nothing changed.
 * @throws Error with the compiler's output
 */
export async function buildGrpcGoClient(): Promise<string> {
  await execute("go", ["build", "-trimpath", "-o", BINARY, "."], {
    cwd: SOURCE_DIR,
  });
  return BINARY;
}

/** Runs one command of the client and returns the JSON it prints. */
export async function runGrpcGo(
  binary: string,
  args: readonly string[],
): Promise<unknown> {
  const { stdout } = await execute(binary, args, {
    maxBuffer: MAX_OUTPUT_BYTES,
  });
  return JSON.parse(stdout);
}

/** A load client in a process of its own. */
export function createGrpcGoClient(binary: string): LoadClient {
  return {
    name: "grpc-go",
    async load(plan) {
      const answersDir = await mkdtemp(join(tmpdir(), "grpc-go-answers-"));
      try {
        const { targets } = (await runGrpcGo(
          binary,
          loadArgs(plan, answersDir),
        )) as LoadOutput;
        return await Promise.all(
          targets.map(async (target) => ({
            ...target,
            firstAnswer: await readIfThere(
              join(answersDir, `${target.name}.bin`),
            ),
          })),
        );
      } finally {
        await rm(answersDir, { recursive: true, force: true });
      }
    },
  };
}

function loadArgs(plan: LoadPlan, answersDir: string): string[] {
  return [
    "load",
    "--samples",
    ...["--answers", answersDir],
    ...["--rounds", plan.rounds.toString()],
    ...["--round-calls", plan.roundCalls.toString()],
    ...["--warmup-calls", plan.warmupCalls.toString()],
    ...["--concurrency", plan.concurrency.toString()],
    ...["--deadline", `${plan.deadlineMs}ms`],
    ...["--max-duration", `${plan.maxDurationMs}ms`],
    ...plan.targets.flatMap((target) => ["--target", targetArg(target)]),
  ];
}

function targetArg({ name, address, method, requestFile }: LoadTarget): string {
  return [name, address, method, requestFile].join(",");
}

async function readIfThere(path: string): Promise<Uint8Array | null> {
  try {
    return await readFile(path);
  } catch {
    return null;
  }
}
