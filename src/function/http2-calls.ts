import { EventEmitter } from "node:events";
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";

import type { Server } from "@grpc/grpc-js";

/** Hears of a call before grpc-js does, which then reads the headers as they were left. */
export type CallListener = (
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
) => void;

/**
 * Calls `listener` for every call, as soon as its headers are there. grpc-js reads some headers
 * before any interceptor and calls those only once a request is complete; so this is on the HTTP/2
 * servers beneath, which are private. To be called once they have been made.
 * @throws Error when there is none, which only another version of grpc-js can bring about
 */
export function beforeEveryCall(server: Server, listener: CallListener): void {
  const servers: unknown = Reflect.get(server, "http2Servers");
  const emitters = servers instanceof Map ? [...servers.keys()] : [];
  if (emitters.length === 0) throw new Error("grpc-js has no HTTP/2 server");
  for (const emitter of emitters) {
    if (!(emitter instanceof EventEmitter)) {
      throw new Error("grpc-js has an HTTP/2 server of an unknown kind");
    }
    emitter.prependListener("stream", listener);
  }
}
