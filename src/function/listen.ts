import { createServer, type Server as NetServer, type Socket } from "node:net";
import type { Server as TlsServer, TLSSocket } from "node:tls";

import { errorText } from "../errors.js";
import type { Clock, Logger } from "../ports.js";
import { bind, type ListenAddress } from "./bind.js";
import { createTlsServer, judgeClient } from "./tls.js";
import type { TlsIdentity } from "./tls-files.js";
import {
  createRefusalLog,
  handshakeReason,
  noHttp2,
  type RefusalLog,
} from "./tls-refusal.js";

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
 * @param identity asked for every connection, which then keeps what it got
 * @throws FunctionError start-refused
 */
export async function listen(
  address: ListenAddress,
  identity: (() => TlsIdentity) | null,
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

/**
 * Every identity has a TLS server of its own, which listens nowhere and is handed its connections:
 * a handshake under way while the files change ends with the set it began with, certificate and
 * authorities alike.
 */
function createGuardedServer(
  identity: () => TlsIdentity,
  accept: (socket: Socket) => void,
  clock: Clock,
  logger: Logger,
): NetServer {
  const logRefusal = createRefusalLog(logger);
  let guard: { readonly of: TlsIdentity; readonly server: TlsServer } | null =
    null;
  return createServer((socket) => {
    const now = identity();
    if (guard?.of !== now) {
      guard = { of: now, server: createGuard(now, accept, clock, logRefusal) };
    }
    guard.server.emit("connection", socket);
  });
}

function createGuard(
  identity: TlsIdentity,
  accept: (socket: Socket) => void,
  clock: Clock,
  logRefusal: RefusalLog,
): TlsServer {
  const server = createTlsServer(identity);
  server.on("secureConnection", (socket) => {
    const verdict = judgeClient(
      socket,
      identity.clientAuthorities,
      clock.nowMs(),
    );
    // One that offers no protocol at all passes the handshake.
    const speaksHttp2 = socket.alpnProtocol === "h2";
    if (verdict.kind === "accepted" && speaksHttp2) {
      accept(socket);
      return;
    }
    logRefusal(socket, verdict.kind === "refused" ? verdict.reason : noHttp2);
    socket.destroy();
  });
  server.on("tlsClientError", (error: Error, socket: TLSSocket) => {
    logRefusal(socket, handshakeReason(error));
    // After a handshake that took too long, Node leaves it open for ever.
    socket.destroy();
  });
  return server;
}
