import { once } from "node:events";
import {
  createServer,
  type AddressInfo,
  type Server as NetServer,
  type Socket,
} from "node:net";
import type { TLSSocket } from "node:tls";

import { LRUCache } from "lru-cache";

import { errorText } from "../errors.js";
import type { Clock, Logger } from "../ports.js";
import { FunctionError } from "./error.js";
import { createTlsServer, judgeClient, type TlsIdentity } from "./tls.js";

/** Where to listen. */
export interface ListenAddress {
  /** `null` = every address, IPv6 and IPv4. */
  readonly host: string | null;
  /** 0 = one that is free. */
  readonly port: number;
}

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
  await bind(server, address);
  server.on("error", (error) => {
    logger.error({ reason: errorText(error) }, "cannot accept connections");
  });
  return {
    address: addressText(server.address()),
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

async function bind(server: NetServer, address: ListenAddress): Promise<void> {
  const { host, port } = address;
  try {
    await (host === null
      ? bindEverywhere(server, port)
      : bindHost(server, host, port));
  } catch (cause) {
    const message = `cannot listen on --address ${host ?? ""}:${port}: ${errorText(cause)}`;
    throw new FunctionError("start-refused", message, { cause });
  }
}

async function bindEverywhere(server: NetServer, port: number): Promise<void> {
  try {
    await bindHost(server, "::", port);
  } catch (thrown) {
    if (!isWithoutIpv6(thrown)) throw thrown;
    await bindHost(server, "0.0.0.0", port);
  }
}

/** `once` rejects when the server emits `error` first. */
async function bindHost(
  server: NetServer,
  host: string,
  port: number,
): Promise<void> {
  server.listen({ host, port, backlog: 511 });
  await once(server, "listening");
}

function isWithoutIpv6(thrown: unknown): boolean {
  const code = (thrown as NodeJS.ErrnoException).code;
  return code === "EAFNOSUPPORT" || code === "EADDRNOTAVAIL";
}

function addressText(address: AddressInfo | string | null): string {
  if (address === null || typeof address === "string") return address ?? "";
  const { family, address: host, port } = address;
  return family === "IPv6" ? `[${host}]:${port}` : `${host}:${port}`;
}
