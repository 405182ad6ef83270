import { refuse } from "../refuse.js";
import type { HttpResponse } from "./transport.js";

const FIRST_BYTES = 64 * 1024;
const MAX_SMALL_CHUNKS = 10_000;
const MIN_CHUNK_BYTES = 256;

/**
 * The whole body, if it is no longer than `maxBytes`; else the connection is broken off.
 * @param what what messages call it, with the server's name: `ghcr.io: the manifest`
 * @throws LoaderError answer-too-large, and what the body throws
 */
export async function readBounded(
  response: HttpResponse,
  maxBytes: number,
  what: string,
): Promise<Uint8Array> {
  // Copied, not kept: a chunk of one byte would hold a hundred bytes and the buffer it came in.
  let bytes = new Uint8Array(Math.min(FIRST_BYTES, maxBytes));
  let length = 0;
  for await (const chunk of streamBounded(response, maxBytes, what)) {
    const end = length + chunk.length;
    if (end > bytes.length) {
      const grown = new Uint8Array(
        Math.min(maxBytes, Math.max(end, bytes.length * 2)),
      );
      grown.set(bytes.subarray(0, length));
      bytes = grown;
    }
    bytes.set(chunk, length);
    length = end;
  }
  return bytes.slice(0, length);
}

/**
 * The first bytes of the body, at most `maxBytes`; the connection is broken off if there are more.
 * @throws what the body throws
 */
export async function readStart(
  response: HttpResponse,
  maxBytes: number,
): Promise<Uint8Array> {
  const bytes = new Uint8Array(maxBytes);
  let length = 0;
  for await (const chunk of response.body) {
    const wanted = chunk.subarray(0, maxBytes - length);
    bytes.set(wanted, length);
    length += wanted.length;
    if (wanted.length < chunk.length) break;
  }
  return bytes.subarray(0, length);
}

/**
 * The body, piece by piece, as long as it is no longer than `maxBytes`; else the connection is
 * broken off. `what` is as for {@link readBounded}.
 * @throws LoaderError answer-too-large, and what the body throws
 */
export async function* streamBounded(
  response: HttpResponse,
  maxBytes: number,
  what: string,
): AsyncGenerator<Uint8Array, void, undefined> {
  const announcedBytes = contentLengthOf(response);
  if (announcedBytes > maxBytes) {
    await response.discard();
    throw tooLarge(what, `${announcedBytes} bytes`, maxBytes);
  }
  let leftBytes = maxBytes;
  let chunks = 0;
  for await (const chunk of response.body) {
    leftBytes -= chunk.length;
    if (leftBytes < 0) throw tooLarge(what, "more", maxBytes);
    chunks += 1;
    // Each costs a turn of the loop that everybody shares, however small it is.
    if (chunks > MAX_SMALL_CHUNKS + (maxBytes - leftBytes) / MIN_CHUNK_BYTES)
      throw refuse("answer-invalid", `${what} comes in too small pieces`);
    yield chunk;
  }
}

/** 0 when it is not said: what comes is counted all the same. */
function contentLengthOf(response: HttpResponse): number {
  const lengths = response.headers("content-length").map(Number);
  return Math.max(0, ...lengths.filter((length) => length >= 0));
}

function tooLarge(what: string, got: string, maxBytes: number) {
  return refuse(
    "answer-too-large",
    `${what} is too large, expected at most ${maxBytes} bytes, got ${got}`,
  );
}
