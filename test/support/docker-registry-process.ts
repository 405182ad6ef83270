import { spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

import { readLog } from "./docker-registry-log.js";

const START_TIMEOUT_MS = 10_000;
const POLL_MS = 5;
const RETRY_MS = 100;

/** A registry that listens. */
export interface RegistryProcess {
  readonly port: number;
  /** How long its log was before. */
  readonly logStart: number;
  /** Returns when it has ended. */
  readonly kill: () => Promise<void>;
}

/**
 * Starts docker-registry and waits until it listens; while its port is taken, it tries again.
 * @throws Error with its log, when it ends or takes more than 10 seconds
 */
export async function startRegistryProcess(
  configFile: string,
  logFile: string,
): Promise<RegistryProcess> {
  const deadlineAtMs = performance.now() + START_TIMEOUT_MS;
  for (;;) {
    const child = spawnRegistry(configFile, logFile);
    const { logStart, kill } = child;
    const port = await listeningPort(child, deadlineAtMs);
    if (port !== null) return { port, logStart, kill };
    await kill();
    const log = child.log();
    if (
      performance.now() > deadlineAtMs ||
      !log.includes("address already in use")
    ) {
      throw new Error(`docker-registry does not listen: ${log}`);
    }
    await delay(RETRY_MS);
  }
}

interface Child {
  readonly logStart: number;
  log(): string;
  hasEnded(): boolean;
  readonly kill: () => Promise<void>;
}

function spawnRegistry(configFile: string, logFile: string): Child {
  const log = openSync(logFile, "a");
  const logStart = readLog(logFile).length;
  const child = spawn("docker-registry", ["serve", configFile], {
    stdio: ["ignore", log, log],
    // It takes more configuration from REGISTRY_ variables.
    env: { PATH: process.env["PATH"] },
  });
  closeSync(log);
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill);
  let spawnError = "";
  let ended = false;
  const end = new Promise<void>((resolve) => {
    const onEnd = () => {
      ended = true;
      process.off("exit", kill);
      resolve();
    };
    child.once("exit", onEnd).once("error", (error) => {
      spawnError = error.message;
      onEnd();
    });
  });
  return {
    logStart,
    log: () => spawnError + readLog(logFile, logStart),
    hasEnded: () => ended,
    async kill() {
      kill();
      await end;
    },
  };
}

/** `null` when it ended, or has not begun to listen in time. */
async function listeningPort(
  child: Child,
  deadlineAtMs: number,
): Promise<number | null> {
  while (performance.now() < deadlineAtMs && !child.hasEnded()) {
    const match = /listening on 127\.0\.0\.1:(?<port>\d+)/u.exec(child.log());
    if (match !== null) return Number(match.groups?.["port"]);
    await delay(POLL_MS);
  }
  return null;
}
