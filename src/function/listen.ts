import { createServer, Socket, type Server as NetServer } from "node:net";
import type { Server as TlsServer, TLSSocket } from "node:tls";

import { errorText } from "../errors.js";
import type { ClientRefusal, Clock, Logger } from "../ports.js";
import { bind, type ListenAddress } from "./bind.js";
import { createHandshakes, type Handshakes } from "./handshakes.js";
import { createTlsServer, judgeClient } from "./tls.js";
import type { TlsIdentity } from "./tls-files.js";
import {
  createRefusalLog,
  handshakeRefusal,
  noHttp2,
  type Refusal,
  type RefusalLog,
} from "./tls-refusal.js";

export type { ListenAddress };

/** How connections are encrypted. */
export interface ListenTls {
  /** Asked for every connection, which then keeps what it got. */
  readonly identity: () => TlsIdentity;
  /** A connection was closed before it was handed over. */
  readonly onRefused: (refusal: ClientRefusal) => void;
}

/** An open port. */
export interface Listener {
  /** Host and the port really chosen, such as `[::]:9443`. */
  readonly address: string;
  /** Stops accepting; connections already handed over stay open. */
  close(): void;
}

/**
 * Listens, and hands every accepted connection to `accept`: with `tls` only those of clients that
 * proved who they are, without it all of them, unencrypted.
 * @throws FunctionError start-refused
 */
export async function listen(
  address: ListenAddress,
  tls: ListenTls | null,
  accept: (socket: Socket) => void,
  clock: Clock,
  logger: Logger,
): Promise<Listener> {
  const server =
    tls === null
      ? createServer(accept)
      : createGuardedServer(tls, accept, clock, logger);
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
 * authorities alike. Who was refused with one set is told again with the next.
 */
function createGuardedServer(
  { identity, onRefused }: ListenTls,
  accept: (socket: Socket) => void,
  clock: Clock,
  logger: Logger,
): NetServer {
  const handshakes = createHandshakes(clock, logger);
  let guard: { readonly of: TlsIdentity; readonly server: TlsServer } | null =
    null;
  return createServer((socket) => {
    const now = identity();
    if (guard?.of !== now) {
      handshakes.forgive();
      const refuse = refuser(onRefused, createRefusalLog(clock, logger));
      guard = {
        of: now,
        server: createGuard(now, accept, clock, refuse, handshakes),
      };
    }
    const { server } = guard;
    handshakes.admit(socket, () => server.emit("connection", socket));
  });
}

type Refuse = (socket: Socket, refusal: Refusal) => void;

function refuser(
  onRefused: (kind: ClientRefusal) => void,
  logRefusal: RefusalLog,
): Refuse {
  return (socket, { kind, reason }) => {
    onRefused(kind);
    logRefusal(addressOf(socket), reason);
    // After a handshake that took too long, Node leaves it open for ever.
    socket.destroy();
  };
}

function createGuard(
  identity: TlsIdentity,
  accept: (socket: Socket) => void,
  clock: Clock,
  refuse: Refuse,
  handshakes: Handshakes,
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
    if (verdict.kind === "refused") refuse(socket, verdict.refusal);
    else if (!speaksHttp2) refuse(socket, noHttp2);
    else {
      handshakes.succeeded(socket);
      accept(socket);
    }
  });
  server.on("tlsClientError", (error: Error, socket: TLSSocket) => {
    refuse(socket, handshakeRefusal(error));
  });
  return server;
}

/** Once a client has hung up, only the connection inside still knows whose it was. */
function addressOf(socket: Socket): string | undefined {
  const inside: unknown = Reflect.get(socket, "_parent");
  return inside instanceof Socket
    ? (socket.remoteAddress ?? inside.remoteAddress)
    : socket.remoteAddress;
}
