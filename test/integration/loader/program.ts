import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";

import { readLogLine } from "../../support/log-lines.js";
import { connect, type Caller } from "./caller.js";

/** A line of the program's log; fields of other types are left out. */
export interface LogLine {
  readonly msg: string;
  readonly [field: string]: string | number;
}

/** The built program in a process of its own, and a caller of it. */
export interface Program extends Caller {
  readonly pid: number;
  /** `http://host:port` of /livez and /readyz. */
  readonly healthUrl: string;
  /** The lines with that message so far. Complete only when it has ended. */
  lines(msg: string): readonly LogLine[];
  /** Waits until there is a line with that message. */
  logged(msg: string): Promise<LogLine>;
  /** SIGTERM; returns when it has ended and all it said was read. */
  stop(): Promise<void>;
  /** SIGKILL; returns when it has ended. */
  kill(): Promise<void>;
}

/** What {@link usePrograms} gives to the tests of a file. */
export interface Programs {
  /** A directory; `cache` in it is where programs have their --cache-dir. */
  dir(): string;
  /** Starts `serve`, and waits until it listens. A later --cache-dir in `flags` wins. */
  start(flags?: readonly string[]): Promise<Program>;
  /** Runs `serve` until it ends by itself, as it should. */
  startInVain(
    flags: readonly string[],
  ): Promise<{ readonly code: number | null; readonly stderr: string }>;
}

const PROGRAM = fileURLToPath(
  new URL("../../../dist/main.js", import.meta.url),
);
const START_TIMEOUT_MS = 30_000;
const POLL_MS = 10;

/**
 * Has programs ended and their files removed after each test, or after all tests of the suite. That
 * fails when one of them has written a secret to its log.
 */
export function usePrograms(
  lifetime: "test" | "suite",
  secrets: readonly string[] = [],
): Programs {
  let dir = "";
  const children: Child[] = [];
  const callers: Caller[] = [];

  const before = lifetime === "test" ? beforeEach : beforeAll;
  const after = lifetime === "test" ? afterEach : afterAll;
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), "loader-test-"));
  });
  after(async () => {
    for (const caller of callers.splice(0)) caller.close();
    const ended = children.splice(0);
    for (const child of ended) await child.end("SIGTERM");
    await rm(dir, { recursive: true, force: true });
    for (const secret of secrets)
      expect(ended.map(({ stderr }) => stderr()).join("")).not.toContain(
        secret,
      );
  });

  function run(flags: readonly string[]): Child {
    const child = spawnProgram([
      ...["--insecure", "--address", "127.0.0.1:0"],
      ...["--metrics-address", "127.0.0.1:0"],
      ...["--health-address", "127.0.0.1:0"],
      ...["--cache-dir", join(dir, "cache")],
      ...flags,
    ]);
    children.push(child);
    return child;
  }

  return {
    dir: () => dir,
    async start(flags = []) {
      const child = run(flags);
      const listening = await logged(child, "listening");
      const caller = connect(String(listening["address"]));
      callers.push(caller);
      return {
        ...caller,
        pid: child.pid,
        healthUrl: `http://${String(listening["healthAddress"])}`,
        lines: (msg) => linesOf(child, msg),
        logged: (msg) => logged(child, msg),
        stop: () => child.end("SIGTERM"),
        kill: () => child.end("SIGKILL"),
      };
    },
    async startInVain(flags) {
      const child = run(flags);
      return { code: await child.exitCode(), stderr: child.stderr() };
    },
  };
}

interface Child {
  readonly pid: number;
  readonly stderr: () => string;
  readonly hasEnded: () => boolean;
  /** Waits for the end. */
  exitCode(): Promise<number | null>;
  end(signal: "SIGKILL" | "SIGTERM"): Promise<void>;
}

function spawnProgram(flags: readonly string[]): Child {
  const child: ChildProcess = spawn(
    process.execPath,
    [PROGRAM, "serve", ...flags],
    {
      stdio: ["ignore", "ignore", "pipe"],
      // Neither flags from variables nor a Docker config of whoever runs the tests.
      env: { PATH: process.env["PATH"] },
    },
  );
  let stderr = "";
  child.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
    stderr += chunk;
  });
  let hasEnded = false;
  // Not "exit": then there may be more to read.
  const closed = once(child, "close").then(() => (hasEnded = true));
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill);
  return {
    pid: child.pid ?? 0,
    stderr: () => stderr,
    hasEnded: () => hasEnded,
    async exitCode() {
      await closed;
      return child.exitCode;
    },
    async end(signal) {
      if (!hasEnded) child.kill(signal);
      await closed;
      process.off("exit", kill);
    },
  };
}

async function logged(child: Child, msg: string): Promise<LogLine> {
  const deadlineAtMs = performance.now() + START_TIMEOUT_MS;
  for (;;) {
    const [line] = linesOf(child, msg);
    if (line !== undefined) return line;
    if (child.hasEnded() || performance.now() > deadlineAtMs)
      throw new Error(`no line "${msg}" in: ${child.stderr()}`);
    await delay(POLL_MS);
  }
}

function linesOf({ stderr }: Child, msg: string): LogLine[] {
  return (
    stderr()
      .split("\n")
      // The last one has not ended.
      .slice(0, -1)
      .map((text) => readLogLine(text) as LogLine | null)
      .filter((line) => line !== null)
      .filter((line) => line.msg === msg)
  );
}
