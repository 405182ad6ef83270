import { createServer, type Server as NetServer, type Socket } from "node:net";
import type { TLSSocket } from "node:tls";

import { LRUCache } from "lru-cache";

import { errorText } from "../errors.js";
import type { Clock, Logger } from "../ports.js";
import { bind, type ListenAddress } from "./bind.js";
import { createTlsServer, judgeClient, type TlsIdentity } from "./tls.js";

export type { ListenAddress };

/** An open port. */
export interface Listener {
  /** Host and the port really chosen, such as `[::]:9443`. */
  readonly address: string;
  /** Stops accepting; connections already handed over stay open. */
  close(): void;
}

/**
 * Listens, and hands every accepted connection to `accept`: with an identity only those of clients
 * that proved who they are, without one all of them, unencrypted.
 * @throws FunctionError start-refused
 */
export async function listen(
  address: ListenAddress,
  identity: TlsIdentity | null,
  accept: (socket: Socket) => void,
  clock: Clock,
  logger: Logger,
): Promise<Listener> {
  const server =
    identity === null
      ? createServer(accept)
      : createGuardedServer(identity, accept, clock, logger);
  const bound = await bind(server, address, "--address");
  server.on("error", (error) => {
    logger.error({ reason: errorText(error) }, "cannot accept connections");
  });
  return {
    address: bound,
    close() {
      server.close();
    },
  };
}

function createGuardedServer(
  identity: TlsIdentity,
  accept: (socket: Socket) => void,
  clock: Clock,
  logger: Logger,
): NetServer {
  const server = createTlsServer(identity);
  const logRefusal = createRefusalLog(logger);
  server.on("secureConnection", (socket) => {
    const verdict = judgeClient(
      socket,
      identity.clientAuthorities,
      clock.nowMs(),
    );
    if (verdict.kind === "accepted") {
      accept(socket);
      return;
    }
    logRefusal(socket, verdict.reason);
    socket.destroy();
  });
  server.on("tlsClientError", (error: Error, socket: TLSSocket) =>
    logRefusal(socket, errorText(error)),
  );
  return server;
}

/** A client retries for as long as it lives; each reason is told once per peer. */
function createRefusalLog(
  logger: Logger,
): (socket: Socket, reason: string) => void {
  const told = new LRUCache<string, true>({ max: 256 });
  return (socket, reason) => {
    const peer = socket.remoteAddress ?? "unknown";
    const key = `${peer} ${reason}`;
    if (told.has(key)) return;
    told.set(key, true);
    logger.warn({ peer, reason }, "client refused");
  };
}
