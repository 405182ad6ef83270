import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";

import {
  basicGuard,
  bearerGuard,
  registryError,
  type BearerOptions,
  type Guard,
  type Login,
  type Tokens,
} from "./registry-auth.js";
import {
  createRegistryContent,
  type RegistryContent,
} from "./registry-content.js";
import {
  readRequest,
  sendAnswer,
  type Answer,
  type Reaction,
  type RegistryRequest,
} from "./registry-exchange.js";

/** Says what becomes of a request. What it throws fails the test run. */
export type Intercept = (
  request: RegistryRequest,
) => Reaction | Promise<Reaction>;

/**
 * A registry in this process that does what it is told, for what a real one cannot be made to do.
 * It serves manifests and blobs to GET and HEAD.
 */
export interface ScriptedRegistry extends Pick<
  RegistryContent,
  "addBlob" | "addManifest" | "addModule"
> {
  /** `127.0.0.1:<port>`, or with TLS `localhost:<port>`, which certificates can name. */
  readonly authority: string;
  /** The authority with its scheme, no slash at the end. */
  readonly url: string;
  /** All that came, in order, those that were dropped as well. */
  readonly requests: readonly RegistryRequest[];
  /** Is asked before all others that were set earlier, before authentication and content. */
  intercept(handler: Intercept): void;
  /** Refuses whatever comes without the login. */
  requireBasic(login: Login): void;
  /**
   * Refuses whatever comes without a token from its own /token.
   * @param login `null` = everybody gets a token
   */
  requireBearer(login: Login | null, options?: BearerOptions): Tokens;
  /** Closes every connection, too; after that, nobody listens on the port. */
  stop(): Promise<void>;
  /** Listens on the same port again. */
  restart(): Promise<void>;
}

/**
 * Starts one on a free port of 127.0.0.1.
 * @param options.tls PEM; default plain HTTP
 */
export async function startScriptedRegistry(
  options: { tls?: { key: string | Buffer; cert: string | Buffer } } = {},
): Promise<ScriptedRegistry> {
  const content = createRegistryContent();
  const requests: RegistryRequest[] = [];
  const intercepts: Intercept[] = [];
  const guards: Guard[] = [];

  async function react(request: RegistryRequest): Promise<Reaction> {
    for (const handler of [...intercepts, ...guards]) {
      const reaction = await handler(request);
      if (reaction !== "pass") return reaction;
    }
    return serve(content, request);
  }

  const server = await listenWith(options.tls, (message, response) => {
    void (async () => {
      const request = await readRequest(message).catch(() => null);
      if (request === null) return;
      requests.push(request);
      try {
        const reaction = await react(request);
        if (reaction === "drop") message.socket.destroy();
        else if (typeof reaction === "object") {
          await sendAnswer(reaction, response);
        }
      } catch (error) {
        message.socket.destroy();
        throw error;
      }
    })();
  });
  const authority = `${options.tls === undefined ? "127.0.0.1" : "localhost"}:${server.port}`;
  const url = `${options.tls === undefined ? "http" : "https"}://${authority}`;

  return {
    addBlob: (bytes) => content.addBlob(bytes),
    addManifest: (...manifest) => content.addManifest(...manifest),
    addModule: (...module) => content.addModule(...module),
    authority,
    url,
    requests,
    intercept: (handler) => void intercepts.unshift(handler),
    requireBasic: (login) => void guards.push(basicGuard(login)),
    requireBearer(login, bearer = {}) {
      const { guard, tokens } = bearerGuard(login, url, bearer);
      guards.push(guard);
      return tokens;
    },
    stop: () => server.stop(),
    restart: () => server.restart(),
  };
}

function serve(
  content: RegistryContent,
  { method, path }: RegistryRequest,
): Answer {
  if (method !== "GET" && method !== "HEAD") {
    return registryError(405, "UNSUPPORTED");
  }
  if (path === "/v2/") return { status: 200, body: "{}" };
  const { repository, kind, reference } =
    /^\/v2\/(?<repository>.+)\/(?<kind>manifests|blobs)\/(?<reference>[^/]+)$/u.exec(
      path,
    )?.groups ?? {};
  if (repository === undefined || reference === undefined) {
    return registryError(404, "NAME_UNKNOWN");
  }
  const isBlob = kind === "blobs";
  const found = isBlob
    ? content.blob(reference)
    : content.manifest(repository, reference);
  if (found === null) {
    return registryError(404, isBlob ? "BLOB_UNKNOWN" : "MANIFEST_UNKNOWN");
  }
  return {
    status: 200,
    headers: {
      "content-type": found.mediaType,
      "docker-content-digest": found.digest,
    },
    body: found.bytes,
  };
}

async function listenWith(
  tls: { key: string | Buffer; cert: string | Buffer } | undefined,
  listener: RequestListener,
) {
  const server =
    tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  // The server's own list lacks those whose TLS handshake is under way.
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });

  async function listen(port: number): Promise<number> {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    return (server.address() as AddressInfo).port;
  }

  const port = await listen(0);
  return {
    port,
    async stop() {
      if (!server.listening) return;
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
    async restart() {
      await listen(port);
    },
  };
}
