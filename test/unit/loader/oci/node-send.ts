import { createReadStream } from "node:fs";
import { type IncomingMessage, request as httpRequest } from "node:http";
import { pipeline } from "node:stream/promises";
import { text } from "node:stream/consumers";
import type {
  HttpResponse,
  Send,
} from "../../../../src/loader/http/transport.js";

/** The smallest thing that sends: http only, one connection for each request, no redirects. */
export const nodeSend: Send = async (request) => {
  const { method, url, headers, body } = request;
  const sent = httpRequest(url, { method, headers, agent: false });
  const response = new Promise<IncomingMessage>((resolve, reject) => {
    sent.on("response", resolve);
    sent.on("error", reject);
  });
  // A server may answer before it has read everything; what fails to be sent then matters no more.
  void write(sent, body).catch(() => undefined);
  return fromMessage(await response, url);
};

async function write(
  sent: ReturnType<typeof httpRequest>,
  body: Parameters<Send>[0]["body"],
): Promise<void> {
  switch (body?.kind) {
    case undefined:
      sent.end();
      return;
    case "bytes":
      sent.setHeader("content-length", body.bytes.length);
      sent.end(body.bytes);
      return;
    case "file":
      sent.setHeader("content-length", body.sizeBytes);
      await pipeline(createReadStream(body.filePath), sent);
  }
}

function fromMessage(message: IncomingMessage, url: URL): HttpResponse {
  return {
    url,
    status: message.statusCode ?? 0,
    headers: (name) => message.headersDistinct[name] ?? [],
    body: message,
    async discard() {
      await text(message).catch(() => undefined);
    },
  };
}
