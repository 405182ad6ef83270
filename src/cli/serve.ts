import type { Command } from "commander";

import {
  createAdmission,
  openOperatorPolicy,
  type OperatorPolicy,
  type PolicyEngine,
} from "../admission/index.js";
import {
  addFlags,
  type Config,
  ConfigError,
  type Environment,
} from "../config.js";
import type { createEngine } from "../engine/index.js";
import {
  createMetrics,
  createRunFunction,
  startHealthServer,
  startMetricsServer,
  startServer,
  warmModules,
} from "../function/index.js";
import {
  createLoader,
  createSourceParsers,
  startSweeper,
  type Sweeper,
} from "../loader/index.js";
import type { Clock, Logger, Metrics } from "../ports.js";
import {
  addUnsupportedFlags,
  refuseUnsupportedFlags,
} from "../unsupported-flags.js";
import {
  engineOptions,
  inputCeilings,
  loaderOptions,
  readSettings,
  requireModuleDir,
  schemeOptions,
  type Settings,
  warmSources,
} from "./settings.js";

/** The outside world, as far as serving needs it. */
export interface ServeHost {
  readonly env: Environment;
  readonly clock: Clock;
  readonly createEngine: typeof createEngine;
  readonly createPolicyEngine: () => PolicyEngine;
  readonly createLogger: (debug: boolean) => Logger;
  /** Calls `listener` each time somebody wants the process to end. */
  readonly onTermination: (listener: () => void) => void;
  /** Calls `listener` each time somebody wants the policy to be read again (SIGHUP). */
  readonly onReload: (listener: () => void) => void;
  /** Calls `listener` when a file may have changed; returns how to stop. */
  readonly watchFile: (file: string, listener: () => void) => () => void;
  readonly exit: (code: number) => void;
}

/** Adds `serve`, the default command, which ends when it listens; the host ends the process. */
export function addServeCommand(program: Command, host: ServeHost): Command {
  const command = program
    .command("serve", { isDefault: true })
    .description(
      "serve composition functions over gRPC; the default, when no command is given",
    );
  return addUnsupportedFlags(addFlags(command)).action(async () => {
    refuseUnsupportedFlags(command, host.env);
    await serve(readSettings(command, host.env), host);
  });
}

/**
 * Serves until told to stop, then finishes the calls being answered.
 * @throws ConfigError flag-invalid; FunctionError start-refused; AdmissionError
 *   operator-policy-invalid; what keeps the engine from starting
 */
async function serve(config: Settings, host: ServeHost): Promise<void> {
  const { clock } = host;
  const tlsCertsDir = tlsCertsDirOf(config);
  requireModuleDir(config);
  const sandbox = engineOptions(config);
  const scheme = schemeOptions(config);
  const parsers = createSourceParsers(scheme);
  const warm = warmSources(config, parsers);
  const logger = host.createLogger(config.debug);
  // Now: a process with the number 1 is not ended by a signal that it does not listen to.
  const beforeExit = followTermination(host, logger);
  const { metrics, grpc, exposition } = createMetrics();
  const policies = host.createPolicyEngine();
  const operatorPolicy = await openPolicy(
    config,
    policies,
    metrics,
    host,
    logger,
  );
  const engine = host.createEngine(sandbox, clock, logger, metrics);
  const loader = createLoader(loaderOptions(config, scheme, host.env), {
    clock,
    logger,
    metrics,
  });
  const runFunction = createRunFunction({
    admission: createAdmission({
      ceilings: inputCeilings(config),
      parsers,
      engine: policies,
      operatorPolicy: () => operatorPolicy?.current() ?? null,
    }),
    loader,
    engine,
    ttlNanos: config.ttlNanos,
    clock,
    logger,
    metrics,
  });
  const metricsServer = await startMetricsServer(
    config.metricsAddress,
    exposition,
    logger,
  );
  let isReady = false;
  const healthServer = await startHealthServer(
    config.healthAddress,
    () => isReady,
    logger,
  );
  const server = await startServer(
    {
      ...config,
      tlsCertsDir,
      onTlsReload: (result) => {
        metrics.certificatesReloaded(result);
      },
      onClientRefused: (refusal) => {
        metrics.clientRefused(refusal);
      },
    },
    runFunction,
    clock,
    logger,
    grpc,
  );
  logger.info(
    {
      address: server.address,
      metricsAddress: metricsServer.address,
      healthAddress: healthServer.address,
      insecure: tlsCertsDir === null,
    },
    "listening",
  );
  if (tlsCertsDir === null)
    logger.warn({ tlsCertsDir: config.tlsCertsDir }, "serving without TLS");
  let sweeper: Sweeper | undefined;
  let isStopping = false;
  void warmModules(warm, { loader, engine }, clock, logger).then(() => {
    if (isStopping) return;
    isReady = true;
    server.setServing();
    logger.info({}, "ready");
    // Not before: what is to be warm counts as used now.
    sweeper = startSweeper(
      {
        cacheDir: config.cacheDir,
        directories: () => loader.directories(),
        maxBytes: config.maxCacheBytes,
        compiledDir: engine.compiledDir,
        usedSince: (atMs) => loader.usedSince(atMs),
      },
      clock,
      logger,
      metrics,
    );
  });
  beforeExit(async () => {
    isStopping = true;
    isReady = false;
    await server.drain(drainMs);
    await sweeper?.close();
    operatorPolicy?.close();
    await policies.close();
    await engine.close();
    await loader.close();
    await metricsServer.close();
    await healthServer.close();
  });
}

/** Follows the operator policy's file; null when there is none. */
async function openPolicy(
  { sandboxPolicyFile: file }: Config,
  engine: PolicyEngine,
  metrics: Metrics,
  host: ServeHost,
  logger: Logger,
): Promise<OperatorPolicy | null> {
  // Without a listener this signal would end the process.
  let policy: OperatorPolicy | null = null;
  host.onReload(() => void policy?.reload());
  if (file === null) return null;
  policy = await openOperatorPolicy({
    file,
    engine,
    watch: host.watchFile,
    onReload: (result) => {
      metrics.policyReloaded(result);
    },
    logger,
  });
  return policy;
}

/** Kubernetes kills 30 s after its SIGTERM. */
const drainMs = 25_000;

/**
 * Ends the process when somebody wants it to end, and at once when told again. The function returned
 * takes what is to be finished before; until then there is nothing.
 */
function followTermination(
  host: ServeHost,
  logger: Logger,
): (finish: () => Promise<void>) => void {
  let finish = (): Promise<void> => Promise.resolve();
  let stopping = false;
  host.onTermination(() => {
    if (stopping) return host.exit(1);
    stopping = true;
    logger.info({}, "stopping");
    void stop();
  });
  return (given) => (finish = given);

  async function stop(): Promise<void> {
    try {
      await finish();
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
