import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";

import { errorText } from "../errors.js";
import type { Logger } from "../ports.js";
import { bind, type ListenAddress } from "./bind.js";
import type { Exposition } from "./metrics.js";

/** A metrics endpoint that listens. It alone keeps no process alive. */
export interface MetricsServer {
  /** With the port really chosen, such as `[::]:8080`. */
  readonly address: string;
  /** Accepts nothing more and ends every connection, idle or not. Never rejects. */
  close(): Promise<void>;
}

/**
 * Serves what `exposition` writes at `/metrics`, over plain HTTP and to anybody who can connect.
 * @throws FunctionError start-refused
 */
export async function startMetricsServer(
  address: ListenAddress,
  exposition: Exposition,
  logger: Logger,
): Promise<MetricsServer> {
  const server = createBoundedServer((request, response) => {
    void answer(request, response, exposition, logger);
  });
  const bound = await bind(server, address, "--metrics-address");
  server.unref();
  server.on("error", (error) => {
    logger.error({ reason: errorText(error) }, "cannot accept connections");
  });
  return {
    address: bound,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Whoever connects is a stranger: a scraper needs far less than any of these. */
function createBoundedServer(
  listener: (request: IncomingMessage, response: ServerResponse) => void,
): Server {
  const server = createServer(
    {
      maxHeaderSize: 8192,
      headersTimeout: 5000,
      requestTimeout: 10_000,
      keepAliveTimeout: 5000,
      // How often the first two timeouts are looked at; by default only every 30 s.
      connectionsCheckingInterval: 1000,
    },
    listener,
  );
  // Who asks, but does not read the answers, must not keep them in our memory.
  server.timeout = 10_000;
  server.maxHeadersCount = 64;
  server.maxConnections = 64;
  // Also how many pages one client may have us write before it has read the first.
  server.maxRequestsPerSocket = 16;
  server.on("connection", (socket) => socket.unref());
  return server;
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  exposition: Exposition,
  logger: Logger,
): Promise<void> {
  if (pathOf(request) !== "/metrics") {
    refuse(response, 404, "not found");
    return;
  }
  if (request.method !== "GET" && request.method !== "HEAD") {
    response.setHeader("allow", "GET, HEAD");
    refuse(response, 405, "method not allowed");
    return;
  }
  try {
    const { contentType, body } = await exposition(request.headers.accept);
    send(response, 200, contentType, body);
  } catch (thrown) {
    logger.error({ reason: errorText(thrown) }, "cannot write the metrics");
    refuse(response, 500, "internal error");
  }
}

function pathOf(request: IncomingMessage): string {
  const target = request.url ?? "";
  const end = target.indexOf("?");
  return end === -1 ? target : target.slice(0, end);
}

/** Ends the connection too, for otherwise the request's body would be read to its end. */
function refuse(response: ServerResponse, status: number, text: string): void {
  response.setHeader("connection", "close");
  send(response, status, "text/plain; charset=utf-8", `${text}\n`);
}

/** Node sends no body to HEAD. */
function send(
  response: ServerResponse,
  status: number,
  contentType: string,
  body: string,
): void {
  response.writeHead(status, {
    "content-type": contentType,
    "content-length": Buffer.byteLength(body),
  });
  response.end(body);
}
