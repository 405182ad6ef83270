import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { vi } from "vitest";

/** A program in a process of its own. */
export interface RunningProgram {
  readonly pid: number;
  /** SIGKILL; returns when it has ended. */
  readonly kill: () => Promise<void>;
}

/** One that waits in the middle of what it does, see disk-steps.ts. */
export interface StoppedProgram extends RunningProgram {
  /** Lets it go on to its end; returns what it printed, which is JSON. */
  readonly goOn: () => Promise<unknown>;
}

const PATIENCE_MS = 25_000;
const running = new Set<ChildProcess>();

/** Starts a TypeScript program with `job` for its only argument, as JSON. */
export function startProgram(program: string, job: object): RunningProgram {
  const { pid, kill } = start(program, job);
  return { pid, kill };
}

/** Runs one to its end; returns what it printed, which is JSON. */
export async function runProgram(
  program: string,
  job: object,
): Promise<unknown> {
  return start(program, job).answer();
}

/** Starts one that will stop; returns when it has. */
export async function runUntilStopped(
  program: string,
  job: object,
): Promise<StoppedProgram> {
  const { child, pid, kill, answer } = start(program, job);
  const stopped = await vi.waitUntil(
    () => ["T", "Z", "X"].find((state) => state === stateOf(pid)),
    { timeout: PATIENCE_MS, interval: 5 },
  );
  if (stopped !== "T")
    throw new Error(`it did not stop: ${JSON.stringify(await answer())}`);
  return {
    pid,
    kill,
    goOn: () => {
      child.kill("SIGCONT");
      return answer();
    },
  };
}

/** Ends what tests that failed have left: a stopped process would stay for ever. */
export function killPrograms(): void {
  for (const child of running) child.kill("SIGKILL");
}

/** R, S, T (stopped), Z or X (ended). */
export function stateOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // "pid (name) state …"; a name may hold spaces and parentheses.
    return stat.charAt(stat.lastIndexOf(")") + 2);
  } catch {
    return "X";
  }
}

function start(program: string, job: object) {
  const given = ["--import", "tsx", program, JSON.stringify(job)];
  const child = spawn(process.execPath, given, {
    stdio: ["ignore", "pipe", "inherit"],
    env: { PATH: process.env["PATH"] },
  });
  running.add(child);
  let printed = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    printed += text;
  });
  // Not "exit": then there may be more to read.
  const ended = once(child, "close").finally(() => running.delete(child));
  return {
    child,
    pid: child.pid ?? 0,
    kill: async () => {
      child.kill("SIGKILL");
      await ended;
    },
    answer: async (): Promise<unknown> => {
      const how = await ended;
      if (child.exitCode !== 0) throw new Error(`it ended with ${how.join()}`);
      return JSON.parse(printed);
    },
  };
}
