import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";

import { errorText } from "../errors.js";
import type { Logger } from "../ports.js";
import { bind, type ListenAddress } from "./bind.js";
import { boundConnections } from "./page-connections.js";

/** An answer to GET. */
export interface Page {
  readonly status: number;
  /** With version and charset. */
  readonly contentType: string;
  readonly body: string;
}

/** Makes the page at a path, for an Accept header. What it throws is a 500. */
export type Route = (accept: string | undefined) => Page | Promise<Page>;

/** A server of pages that listens. It alone keeps no process alive. */
export interface PageServer {
  /** With the port really chosen, such as `[::]:8080`. */
  readonly address: string;
  /** Accepts nothing more and ends every connection, idle or not. Never rejects. */
  close(): Promise<void>;
}

/**
 * Serves pages over plain HTTP to anybody who can connect, and nothing but pages.
 * @param routes by path, `/metrics`
 * @param flag where the operator gave the address
 * @throws FunctionError start-refused
 */
export async function startPageServer(
  address: ListenAddress,
  flag: string,
  routes: ReadonlyMap<string, Route>,
  logger: Logger,
): Promise<PageServer> {
  const server = createBoundedServer((request, response) => {
    void answer(request, response, routes, logger);
  });
  const bound = await bind(server, address, flag);
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
  boundConnections(server, 64);
  // Also how many pages one client may have us write before it has read the first.
  server.maxRequestsPerSocket = 16;
  server.on("connection", (socket) => socket.unref());
  return server;
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  routes: ReadonlyMap<string, Route>,
  logger: Logger,
): Promise<void> {
  const path = pathOf(request);
  const route = routes.get(path);
  if (route === undefined) {
    refuse(response, 404, "not found");
    return;
  }
  if (request.method !== "GET" && request.method !== "HEAD") {
    response.setHeader("allow", "GET, HEAD");
    refuse(response, 405, "method not allowed");
    return;
  }
  try {
    const page = await route(request.headers.accept);
    send(response, page.status, page.contentType, page.body);
  } catch (thrown) {
    logger.error({ path, reason: errorText(thrown) }, "cannot make a page");
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
