import type {
  IncomingHttpHeaders,
  IncomingMessage,
  ServerResponse,
} from "node:http";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";

/** A request as it came. */
export interface RegistryRequest {
  readonly method: string;
  /** As sent, without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** Whether there is an Authorization header, whatever it says. */
  readonly hasAuthorization: boolean;
  readonly body: Uint8Array;
}

/** A response to be sent. */
export interface Answer {
  readonly status: number;
  /**
   * A Content-Length is sent as it is, right or wrong. Without one, bytes that end well have their
   * own, and all else is chunked.
   */
  readonly headers?: Readonly<
    Record<string, number | string | readonly string[]>
  >;
  /** Chunks are written for as long as the client takes them, so they may be endless. */
  readonly body?: string | Uint8Array | AsyncIterable<Uint8Array>;
  /** After the body: end the response, drop the connection, or send nothing more. Default end. */
  readonly ending?: "end" | "drop" | "hang";
}

/** Answers a request, leaves it to the next one, drops its connection, or never answers. */
export type Reaction = Answer | "pass" | "drop" | "hang";

/** @throws what the stream throws when the client goes away in the middle */
export async function readRequest(
  message: IncomingMessage,
): Promise<RegistryRequest> {
  const { method = "", url = "", headers } = message;
  const [path = "", ...query] = url.split("?");
  return {
    method,
    path,
    query: new URLSearchParams(query.join("?")),
    headers,
    hasAuthorization: headers.authorization !== undefined,
    body: await buffer(message),
  };
}

/** Writes an answer; it is no failure that the client goes away in the middle. */
export async function sendAnswer(
  { status, headers = {}, body = "", ending = "end" }: Answer,
  response: ServerResponse,
): Promise<void> {
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  for (const [name, value] of Object.entries(headers)) {
    response.setHeader(name, value);
  }
  if (
    bytes instanceof Uint8Array &&
    ending === "end" &&
    !response.hasHeader("content-length")
  ) {
    response.setHeader("content-length", bytes.length);
  }
  response.writeHead(status).flushHeaders();
  if (response.req.method !== "HEAD" && !(await written(bytes, response))) {
    return;
  }
  if (ending === "end") response.end();
  if (ending === "drop") response.socket?.destroySoon();
}

async function written(
  body: Uint8Array | AsyncIterable<Uint8Array>,
  response: ServerResponse,
): Promise<boolean> {
  const chunks = body instanceof Uint8Array ? [body] : body;
  try {
    await pipeline(Readable.from(chunks), response, { end: false });
    return true;
  } catch (error) {
    // What a body throws is the test's mistake, unless it throws because nobody reads it any more.
    if (response.destroyed) return false;
    throw error;
  }
}
