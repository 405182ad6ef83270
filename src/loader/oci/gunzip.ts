import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { errorText, escaped } from "../../errors.js";
import { refuse } from "../refuse.js";

const CHUNK_BYTES = 64 * 1024;

/**
 * Expands gzip, of one member or several, no faster than it is read.
 * @throws LoaderError artifact-invalid for what is no gzip, is cut short, or has something after it;
 * and what `chunks` throws
 */
export async function* gunzip(
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  let deliveredBytes = 0;
  const counted = async function* () {
    for await (const chunk of chunks) {
      deliveredBytes += chunk.length;
      yield chunk;
    }
  };
  const expander = createGunzip({ chunkSize: CHUNK_BYTES });
  const source = Readable.from(counted(), { objectMode: false });
  const piped = pipeline(source, expander);
  // It is told by the loop below, or the reader has gone and does not care.
  piped.catch(() => undefined);
  try {
    for await (const chunk of expander) yield chunk as Buffer;
  } catch (error) {
    throw isZlibError(error)
      ? refuse(
          "artifact-invalid",
          `the layer's gzip data is bad: ${escaped(errorText(error))}`,
          error,
        )
      : error;
  } finally {
    source.destroy();
    expander.destroy();
  }
  // Node stops without a word at a zero byte after a member, whatever follows.
  if (expander.bytesWritten !== deliveredBytes) {
    throw refuse(
      "artifact-invalid",
      "the layer has other bytes after its gzip data",
    );
  }
}

function isZlibError(error: unknown): boolean {
  return (
    error instanceof Error &&
    "code" in error &&
    typeof error.code === "string" &&
    error.code.startsWith("Z_")
  );
}
