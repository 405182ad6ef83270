import type { LookupFunction } from "node:net";
import {
  createSecureContext,
  rootCertificates,
  type SecureContext,
} from "node:tls";
import { Agent, type Dispatcher } from "undici";
import type { Clock, RequestScope } from "../../ports.js";
import { refuse } from "../refuse.js";
import { allowsPlainHttp, hostOf, settingFor } from "./authority.js";
import { type ExchangeWatch, watchScope } from "./exchange-watch.js";
import { failureOf } from "./failure.js";
import { createLookup } from "./lookup.js";
import { bodyToSend } from "./request-body.js";
import type { HttpRequest, HttpResponse, Transport } from "./transport.js";

/** Whom the client trusts, and for how long it waits. */
export interface TransportOptions {
  /** Hosts that http may be spoken to, each `host` or `host:port` as parseHost writes the host. */
  readonly insecureHosts: readonly string[];
  /** PEM text by `host` or `host:port`: CAs trusted for that host besides those that come with Node. */
  readonly registryCas: ReadonlyMap<string, string>;
  /** How long a connected server may say nothing, 30 s by default; exact to a second. */
  readonly idleTimeoutMs?: number;
  /** How long a connection may take, with DNS and TLS, 3 s by default; exact to a second. */
  readonly connectTimeoutMs?: number;
  /**
   * How long a connection is kept that nobody uses, even when the server wants it to be longer, 10 s
   * by default: each costs memory and a handle, and a server may have any number of names.
   */
  readonly maxUnusedConnectionMs?: number;
}

const IDLE_TIMEOUT_MS = 30_000;
const CONNECT_TIMEOUT_MS = 3_000;
const MAX_UNUSED_CONNECTION_MS = 10_000;
const MAX_HEADER_BYTES = 64 * 1024;
const MAX_CONNECTIONS_PER_ORIGIN = 16;
/** A server may send status 1xx as often as it likes, and each starts the wait for headers anew. */
const MAX_INTERIM_ANSWERS = 8;
/** What is read of an unwanted body to keep its connection, and how long that may take. */
const MAX_DISCARDED_BYTES = 64 * 1024;
const DISCARD_TIMEOUT_MS = 500;

/**
 * A client of its own over undici: it follows no redirect, looks at no proxy variable, keeps no
 * cookie, and asks for, and undoes, no compression. A CA of one host is trusted for that host only.
 */
export function createTransport(
  options: TransportOptions,
  clock: Clock,
): Transport {
  const lookup = createLookup(clock);
  const general = createAgents(options, lookup, undefined);
  const special = new Map<string, Agents>();
  for (const [host, pem] of options.registryCas)
    special.set(host, createAgents(options, lookup, pem));

  return {
    async send(request, scope) {
      const { url } = request;
      const host = hostOf(url);
      if (
        url.protocol !== "https:" &&
        !allowsPlainHttp(host, options.insecureHosts)
      ) {
        throw refuse(
          "plain-http-refused",
          `${host}: http is for localhost, 127.0.0.0/8, [::1] and the hosts in --insecure-registry only`,
        );
      }
      const { bulk, quick } = settingFor(url, special) ?? general;
      const agent = request.isBulk === true ? bulk : quick;
      return await exchange(agent, request, scope, clock);
    },
    async close() {
      const agents = [general, ...special.values()].flatMap(
        ({ bulk, quick }) => [bulk, quick],
      );
      await Promise.all(agents.map((agent) => agent.destroy()));
    },
  };
}

/** Whoever reads slowly, or sends slowly, keeps nobody from asking what a tag leads to. */
interface Agents {
  readonly quick: Agent;
  readonly bulk: Agent;
}

function createAgents(
  options: TransportOptions,
  lookup: LookupFunction,
  pem: string | undefined,
): Agents {
  const secureContext =
    pem === undefined
      ? undefined
      : createSecureContext({ ca: [...rootCertificates, pem] });
  return {
    quick: createAgent(options, lookup, secureContext),
    bulk: createAgent(options, lookup, secureContext),
  };
}

function createAgent(
  options: TransportOptions,
  lookup: LookupFunction,
  secureContext: SecureContext | undefined,
): Agent {
  const idleTimeoutMs = options.idleTimeoutMs ?? IDLE_TIMEOUT_MS;
  return new Agent({
    connections: MAX_CONNECTIONS_PER_ORIGIN,
    pipelining: 1,
    keepAliveMaxTimeout:
      options.maxUnusedConnectionMs ?? MAX_UNUSED_CONNECTION_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: idleTimeoutMs,
    bodyTimeout: idleTimeoutMs,
    connect: {
      lookup,
      timeout: options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS,
      // Else NODE_TLS_REJECT_UNAUTHORIZED=0 would turn verification off.
      rejectUnauthorized: true,
      ...(secureContext !== undefined && { secureContext }),
    },
  });
}

async function exchange(
  agent: Agent,
  request: HttpRequest,
  scope: RequestScope,
  clock: Clock,
): Promise<HttpResponse> {
  const host = hostOf(request.url);
  const watch = watchScope(scope, clock, host);
  try {
    const answer = await unlessAborted(
      agent.request(undiciRequest(request, host, watch)),
      watch.signal,
    );
    watch.phase = "body";
    return toResponse(request.url, answer, watch);
  } catch (error) {
    watch.stop();
    throw failureOf(error, host, "headers");
  }
}

function undiciRequest(
  { method, url, headers, body }: HttpRequest,
  host: string,
  watch: ExchangeWatch,
): Dispatcher.RequestOptions {
  let interimAnswers = 0;
  return {
    method,
    origin: url.origin,
    path: `${url.pathname}${url.search}`,
    headers: {
      ...headers,
      ...(body !== null && { "content-length": String(sizeOf(body)) }),
      "accept-encoding": "identity",
      "user-agent": "function-wasm",
    },
    body: bodyToSend(body),
    signal: watch.signal,
    onInfo: () => {
      interimAnswers += 1;
      if (interimAnswers > MAX_INTERIM_ANSWERS) {
        watch.abort(
          refuse("answer-invalid", `${host}: too many answers with status 1xx`),
        );
      }
    },
  };
}

function sizeOf(body: NonNullable<HttpRequest["body"]>): number {
  return body.kind === "file" ? body.sizeBytes : body.bytes.length;
}

/** Undici looks at the signal when there is a connection only. */
async function unlessAborted<T>(
  result: Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  let leave = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    leave = () => reject(signal.reason as Error);
    signal.addEventListener("abort", leave);
  });
  try {
    return await Promise.race([result, aborted]);
  } finally {
    signal.removeEventListener("abort", leave);
  }
}

function toResponse(
  url: URL,
  { statusCode, headers, body }: Dispatcher.ResponseData,
  watch: ExchangeWatch,
): HttpResponse {
  body.once("close", () => watch.stop());
  // The one who reads the body is told; nobody may be reading it.
  body.on("error", () => undefined);
  return {
    url,
    status: statusCode,
    headers(lowerCaseName) {
      const values = Object.hasOwn(headers, lowerCaseName)
        ? headers[lowerCaseName]
        : undefined;
      return values === undefined ? [] : [values].flat();
    },
    body: chunksOf(body, hostOf(url)),
    async discard() {
      try {
        await body.dump({
          limit: MAX_DISCARDED_BYTES,
          signal: AbortSignal.timeout(DISCARD_TIMEOUT_MS),
        });
      } catch {
        // It is gone, which is what was wanted.
      }
      await untilReusable();
    },
  };
}

async function* chunksOf(body: AsyncIterable<Uint8Array>, host: string) {
  try {
    for await (const chunk of body) yield chunk;
    await untilReusable();
  } catch (error) {
    throw failureOf(error, host, "body");
  }
}

/**
 * Undici takes a connection for free one turn after its answer has ended; whoever asks the next thing
 * before would pay for another connection.
 */
function untilReusable(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
