import { readFileSync } from "node:fs";

import type { Command } from "commander";

import { admitInput } from "../admission/index.js";
import {
  addFlags,
  ConfigError,
  configFrom,
  type Config,
  type Environment,
} from "../config.js";
import type { createEngine } from "../engine/index.js";
import { errorText } from "../errors.js";
import {
  createRunFunction,
  maxResponseBytes,
  startServer,
  type FunctionServer,
} from "../function/index.js";
import { createLoader } from "../loader/index.js";
import type { Clock, Logger } from "../ports.js";

/** The outside world, as far as serving needs it. */
export interface ServeHost {
  readonly env: Environment;
  readonly clock: Clock;
  readonly createEngine: typeof createEngine;
  readonly createLogger: (debug: boolean) => Logger;
  /** Calls `listener` each time somebody wants the process to end. */
  readonly onTermination: (listener: () => void) => void;
  readonly exit: (code: number) => void;
}

/** Adds `serve`, the default command, which ends when it listens; the host ends the process. */
export function addServeCommand(program: Command, host: ServeHost): Command {
  const command = program
    .command("serve", { isDefault: true })
    .description("serve composition functions over gRPC");
  return addFlags(command).action(async () => {
    await serve(configFrom(command, host.env), host);
  });
}

/**
 * Serves until told to stop, then finishes the calls being answered.
 * @throws ConfigError flag-invalid; FunctionError start-refused; what keeps the engine from starting
 */
async function serve(config: Config, host: ServeHost): Promise<void> {
  const { clock } = host;
  const tlsCertsDir = tlsCertsDirOf(config);
  const artifactKey = readArtifactKey(config.artifactKeyFile);
  const logger = host.createLogger(config.debug);
  const engine = host.createEngine(
    {
      cacheDir: config.cacheDir,
      artifactKey,
      trustCacheDir: config.trustCacheDir,
      engineWorkers: config.engineWorkers,
      memoryLimitBytes: config.moduleMemoryBytes,
      stackLimitBytes: config.moduleStackBytes,
      // Beyond what Crossplane can receive, so that the refusal can name what makes it large.
      maxResponseBytes: 4 * maxResponseBytes,
      maxConcurrentRuns: config.maxConcurrentRuns,
      maxTotalRunMemoryBytes: config.maxTotalRunMemoryBytes,
      maxCachedModules: config.maxCachedModules,
      maxConcurrentCompiles: config.maxConcurrentCompiles,
    },
    clock,
    logger,
  );
  const runFunction = createRunFunction({
    admit: admitInput,
    loader: createLoader(config, clock),
    engine,
    ceilings: {
      timeoutMs: config.moduleTimeoutMs,
      timeoutText: config.moduleTimeoutText,
      memoryBytes: config.moduleMemoryBytes,
      memoryText: config.moduleMemoryText,
      moduleDirSet: config.moduleDir !== null,
    },
    ttlNanos: config.ttlNanos,
    clock,
    logger,
  });
  const server = await startServer(
    { ...config, tlsCertsDir },
    runFunction,
    clock,
    logger,
  );
  logger.info(
    { address: server.address, insecure: tlsCertsDir === null },
    "listening",
  );
  stopOnTermination(server, () => engine.close(), host, logger);
}

/** Kubernetes kills 30 s after its SIGTERM. */
const drainMs = 25_000;

function stopOnTermination(
  server: FunctionServer,
  closeEngine: () => Promise<void>,
  host: ServeHost,
  logger: Logger,
): void {
  let stopping = false;
  host.onTermination(() => {
    if (stopping) return host.exit(1);
    stopping = true;
    logger.info({}, "stopping");
    void stop();
  });

  async function stop(): Promise<void> {
    try {
      await server.drain(drainMs);
      await closeEngine();
      logger.info({}, "stopped");
      host.exit(0);
    } catch (thrown) {
      logger.error({ err: thrown }, "cannot stop cleanly");
      host.exit(1);
    }
  }
}

function tlsCertsDirOf(config: Config): string | null {
  if (config.insecure) return null;
  if (config.tlsCertsDir !== null) return config.tlsCertsDir;
  throw new ConfigError(
    "flag-invalid",
    "neither --tls-certs-dir (TLS_SERVER_CERTS_DIR) nor --insecure (INSECURE) is set: expected one of them",
  );
}

/** As long as the HMAC's own output. */
const minKeyBytes = 32;

function readArtifactKey(file: string | null): Uint8Array | null {
  if (file === null) return null;
  let key: Uint8Array;
  try {
    key = readFileSync(file);
  } catch (cause) {
    const message = `--artifact-key-file: ${errorText(cause)}`;
    throw new ConfigError("flag-invalid", message, { cause });
  }
  if (key.length >= minKeyBytes) return key;
  throw new ConfigError(
    "flag-invalid",
    `--artifact-key-file: expected at least ${minKeyBytes} bytes in ${file}, got ${key.length}`,
  );
}
