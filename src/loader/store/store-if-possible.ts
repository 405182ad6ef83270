import type { Digest, Logger } from "../../ports.js";
import { isUnwritable } from "../error.js";
import type { BlobStore } from "./blob-store.js";

/** Stores what memory has, too: a disk that cannot be written makes the next start slower, and fails nothing now. */
export async function storeIfPossible(
  store: BlobStore,
  digest: Digest,
  chunks: AsyncIterable<Uint8Array>,
  logger: Logger,
): Promise<void> {
  try {
    await store.write(digest, chunks);
  } catch (thrown) {
    if (!isUnwritable(thrown)) throw thrown;
    logger.warn(
      { digest, reason: thrown.message },
      "cannot keep what was fetched",
    );
  }
}
