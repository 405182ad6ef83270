import type { IncomingHttpHeaders } from "node:http2";

const header = "grpc-encoding";

/** An encoding that grpc-js does not know. */
const unsupported = "unsupported";

/**
 * Keeps grpc-js from decompressing messages: it makes a zlib object for each one it is sent, 3,000
 * for 16 KB, and Crossplane compresses none. One that is compressed is then refused.
 */
export function refuseCompression(headers: IncomingHttpHeaders): void {
  const encoding = headers[header];
  if (encoding !== undefined && encoding !== "identity") {
    headers[header] = unsupported;
  }
}

/** The details of the status that grpc-js makes of it. */
export const compressedDetails = `Received message compressed with unsupported encoding "${unsupported}"`;

/** What to tell the caller instead. */
export const expectedEncoding = `${header}: expected messages that are not compressed`;
