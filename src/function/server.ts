import { setTimeout as delay } from "node:timers/promises";

import {
  logVerbosity,
  Server,
  ServerCredentials,
  setLogVerbosity,
} from "@grpc/grpc-js";

import type { ClientRefusal, Clock, Logger } from "../ports.js";
import { refuseCompression } from "./grpc-encoding.js";
import type { GrpcMetrics } from "./grpc-metrics.js";
import { correctTimeout } from "./grpc-timeout.js";
import { addHealth } from "./health.js";
import { beforeEveryCall } from "./http2-calls.js";
import { listen, type ListenAddress } from "./listen.js";
import { createOpenStreams } from "./open-streams.js";
import { addReflection } from "./reflection.js";
import type { RunFunction } from "./run-function.js";
import {
  clearStatuses,
  createCallTracker,
  isRunFunction,
  rawServiceDefinition,
  serviceNames,
} from "./service.js";
import { followTls } from "./tls-reload.js";

/** What the operator set. */
export interface ServerOptions {
  readonly address: ListenAddress;
  /** Holds tls.crt, tls.key and ca.crt; `null` = serve without encryption. */
  readonly tlsCertsDir: string | null;
  readonly maxReceiveBytes: number;
  /**
   * When a connection is asked to end, give or take a tenth, so that its client connects again and
   * finds newer pods; 0 = never.
   */
  readonly maxConnectionAgeMs: number;
  /** How long the calls on such a connection may still take. */
  readonly maxConnectionAgeGraceMs: number;
  /** The certificates changed, and could be used or not. */
  readonly onTlsReload: (result: "error" | "ok") => void;
  /** A client was turned away before it could call. */
  readonly onClientRefused: (refusal: ClientRefusal) => void;
  /** How long after one ping the next asks a client whether it is still there; default 1 min. */
  readonly keepaliveTimeMs?: number;
  /** How long it has to answer; default 20 s. */
  readonly keepaliveTimeoutMs?: number;
}

/** A server that listens. */
export interface FunctionServer {
  /** With the port really chosen, such as `[::]:9443`. */
  readonly address: string;
  /** Says SERVING to health checks; before, and once it drains, it is NOT_SERVING. */
  setServing(): void;
  /**
   * Says NOT_SERVING, accepts nothing more, waits up to `graceMs` for the calls being answered,
   * then cancels those left and closes every connection. Never rejects.
   */
  drain(graceMs: number): Promise<void>;
}

/**
 * Serves `runFunction` over gRPC, with health and reflection.
 * @throws FunctionError start-refused
 */
export async function startServer(
  options: ServerOptions,
  runFunction: RunFunction,
  clock: Clock,
  logger: Logger,
  metrics: GrpcMetrics,
): Promise<FunctionServer> {
  const calls = createCallTracker(runFunction, clock);
  const connections = createOpenStreams();
  const openCalls = createOpenStreams();
  let draining = false;
  // It writes header values, credentials among them, and not as our log is.
  setLogVerbosity(logVerbosity.NONE);
  const server = new Server({
    "grpc.max_receive_message_length": options.maxReceiveBytes,
    // What is too large for Crossplane is answered with a result that says so.
    "grpc.max_send_message_length": -1,
    // Finds connections that died without a word; a client's own pings are always answered.
    "grpc.keepalive_time_ms": options.keepaliveTimeMs ?? 60_000,
    "grpc.keepalive_timeout_ms": options.keepaliveTimeoutMs ?? 20_000,
    "grpc.max_connection_age_ms": connectionAgeMs(options.maxConnectionAgeMs),
    "grpc.max_connection_age_grace_ms": Math.min(
      options.maxConnectionAgeGraceMs,
      unlimitedMs,
    ),
    // Each holds a request, and gRPC's clients wait for their turn.
    "grpc.max_concurrent_streams": maxConnectionCalls,
    "grpc.enable_channelz": 0,
    interceptors: [metrics.countCalls, clearStatuses],
  });
  const addService = server.addService.bind(server);
  // Health and reflection add services of their own.
  server.addService = (service, implementation) => {
    metrics.addService(service);
    addService(service, implementation);
  };
  for (const name of serviceNames) {
    server.addService(rawServiceDefinition(name), {
      RunFunction: calls.handle,
    });
  }
  const health = addHealth(server, serviceNames);
  addReflection(server);
  // Encryption and client certificates are ours: sockets arrive here already decrypted.
  const injector = server.createConnectionInjector(
    ServerCredentials.createInsecure(),
  );
  beforeEveryCall(server, (stream, headers) => {
    correctTimeout(headers);
    refuseCompression(headers);
    if (isRunFunction(headers[":path"])) openCalls.add(stream);
  });
  const { tlsCertsDir, onTlsReload: onReload } = options;
  const tls =
    tlsCertsDir === null
      ? null
      : await followTls({ directory: tlsCertsDir, onReload, clock, logger });
  const listener = await listen(
    options.address,
    tls === null
      ? null
      : { identity: () => tls.current(), onRefused: options.onClientRefused },
    (socket) => {
      // Its handshake began before.
      if (draining) {
        socket.destroy();
        return;
      }
      connections.add(socket);
      injector.injectConnection(socket);
    },
    clock,
    logger,
  ).catch((error: unknown) => {
    tls?.close();
    throw error;
  });
  return {
    address: listener.address,
    setServing() {
      if (!draining) health.set("SERVING");
    },
    async drain(graceMs) {
      draining = true;
      health.set("NOT_SERVING");
      listener.close();
      tls?.close();
      // Asks the clients to go; those that have no call do so at once.
      server.tryShutdown(() => undefined);
      const timers = new AbortController();
      await Promise.race([
        connections.none(),
        openCalls.none().then(() => pause(flushMs, timers.signal)),
        pause(graceMs, timers.signal),
      ]);
      timers.abort();
      calls.cancelAll();
      server.forceShutdown();
      connections.destroyAll();
    },
  };
}

/**
 * How long the last answers have to leave before their connections are closed. The connections do
 * not close by themselves while, say, somebody watches the health.
 */
const flushMs = 500;

/** Calls at once on one connection; as many runs there are at once by default. */
const maxConnectionCalls = 256;

/** What grpc-js takes for never; its timers can be set no later. */
const unlimitedMs = 2 ** 31 - 1;

/** With the tenth that grpc-js adds or takes by chance, an age must stay below that. */
const longestAgeMs = 20 * 86_400_000;

function connectionAgeMs(ageMs: number): number {
  return ageMs === 0 ? unlimitedMs : Math.min(ageMs, longestAgeMs);
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return delay(ms, undefined, { signal }).catch(() => undefined);
}
