import { setTimeout as delay } from "node:timers/promises";

import { Server, ServerCredentials } from "@grpc/grpc-js";
import { HealthImplementation } from "grpc-health-check";

import type { Clock, Logger } from "../ports.js";
import { listen, type ListenAddress } from "./listen.js";
import { addReflection } from "./reflection.js";
import type { RunFunction } from "./run-function.js";
import {
  clearStatuses,
  createCallTracker,
  rawServiceDefinition,
  serviceNames,
} from "./service.js";
import { readTlsIdentity } from "./tls.js";

/** What the operator set. */
export interface ServerOptions {
  readonly address: ListenAddress;
  /** Holds tls.crt, tls.key and ca.crt; `null` = serve without encryption. */
  readonly tlsCertsDir: string | null;
  readonly maxReceiveBytes: number;
}

/** A server that listens. */
export interface FunctionServer {
  /** With the port really chosen, such as `[::]:9443`. */
  readonly address: string;
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
): Promise<FunctionServer> {
  const { tlsCertsDir } = options;
  const identity = tlsCertsDir === null ? null : readTlsIdentity(tlsCertsDir);
  const calls = createCallTracker(runFunction, clock);
  const health = new HealthImplementation(healthOf("SERVING"));
  const server = new Server({
    "grpc.max_receive_message_length": options.maxReceiveBytes,
    // What is too large for Crossplane is answered with a result that says so.
    "grpc.max_send_message_length": -1,
    // Finds connections that died without a word; a client's own pings are always answered.
    "grpc.keepalive_time_ms": 300_000,
    "grpc.keepalive_timeout_ms": 20_000,
    "grpc.enable_channelz": 0,
    interceptors: [clearStatuses],
  });
  for (const name of serviceNames) {
    server.addService(rawServiceDefinition(name), {
      RunFunction: calls.handle,
    });
  }
  health.addToServer(server);
  addReflection(server);
  // Encryption and client certificates are ours: sockets arrive here already decrypted.
  const injector = server.createConnectionInjector(
    ServerCredentials.createInsecure(),
  );
  const listener = await listen(
    options.address,
    identity,
    (socket) => injector.injectConnection(socket),
    clock,
    logger,
  );
  return {
    address: listener.address,
    async drain(graceMs) {
      for (const [service, state] of Object.entries(healthOf("NOT_SERVING"))) {
        health.setStatus(service, state);
      }
      listener.close();
      const closed = new Promise<void>((resolve) => {
        server.tryShutdown(() => resolve());
      });
      const timers = new AbortController();
      await Promise.race([
        closed,
        calls.idle().then(() => pause(flushMs, timers.signal)),
        pause(graceMs, timers.signal),
      ]);
      timers.abort();
      calls.cancelAll();
      server.forceShutdown();
    },
  };
}

/**
 * How long the last answers have to leave before their connections are closed. The connections do
 * not close by themselves while, say, somebody watches the health.
 */
const flushMs = 500;

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return delay(ms, undefined, { signal }).catch(() => undefined);
}

function healthOf<S extends "NOT_SERVING" | "SERVING">(
  state: S,
): Record<string, S> {
  return Object.fromEntries(["", ...serviceNames].map((name) => [name, state]));
}
