import { open } from "node:fs/promises";
import { Readable } from "node:stream";
import { errnoOf } from "../../errors.js";
import { refuse } from "../refuse.js";
import type { HttpBody } from "./transport.js";

const CHUNK_BYTES = 256 * 1024;

type FileBody = Extract<HttpBody, { kind: "file" }>;

/**
 * A body as undici takes it. A file is opened when it is asked for, and read no further than it is
 * said to be long; the stream fails with LoaderError module-unreadable or module-changed.
 */
export function bodyToSend(
  body: HttpBody | null,
): Readable | Uint8Array | null {
  if (body === null) return null;
  if (body.kind === "bytes") return body.bytes;
  return Readable.from(chunksOf(body), { objectMode: false });
}

async function* chunksOf({ filePath, sizeBytes }: FileBody) {
  const file = await reading(open(filePath));
  try {
    for (let offset = 0; offset < sizeBytes;) {
      const buffer = Buffer.allocUnsafe(
        Math.min(CHUNK_BYTES, sizeBytes - offset),
      );
      const { bytesRead } = await reading(
        file.read(buffer, 0, buffer.length, offset),
      );
      if (bytesRead === 0) {
        throw refuse(
          "module-changed",
          "the file became shorter while it was being sent",
        );
      }
      offset += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

async function reading<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (cause) {
    throw refuse(
      "module-unreadable",
      `the file cannot be read (${errnoOf(cause)})`,
      cause,
    );
  }
}
