import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import {
  createServer as createTcpServer,
  type AddressInfo,
  type Server as TcpServer,
  type Socket,
} from "node:net";

/** Servers of one test on 127.0.0.1, each with a port of its own. */
export interface Servers {
  /** An HTTP server; gives its port. */
  http(answer: RequestListener): Promise<number>;
  /** A server of anything; gives its port. */
  tcp(accept: (socket: Socket) => void): Promise<number>;
  /** A server that is there already. */
  add(server: TcpServer): Promise<number>;
  /** Connections that were made to any of them. */
  readonly connections: number;
  /** Those of them that are still there. */
  readonly openConnections: number;
  close(): Promise<void>;
}

export function createServers(): Servers {
  const all: TcpServer[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;

  async function add(server: TcpServer): Promise<number> {
    all.push(server);
    server.on("connection", (socket: Socket) => {
      connections += 1;
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => sockets.delete(socket));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return (server.address() as AddressInfo).port;
  }

  return {
    http: (answer) => add(createServer(answer)),
    tcp: (accept) => add(createTcpServer(accept)),
    add,
    get connections() {
      return connections;
    },
    get openConnections() {
      return sockets.size;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await Promise.all(
        all.map((server) => {
          const closed = once(server, "close");
          server.close();
          return closed;
        }),
      );
    },
  };
}
