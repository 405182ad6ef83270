import { createHash } from "node:crypto";
import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Clock, Digest, Logger } from "../../ports.js";
import { errnoOf } from "../../errors.js";
import type { LoaderError } from "../error.js";
import { refuse } from "../refuse.js";
import { openCacheDir } from "./cache-dir.js";
import {
  createTemporaryFile,
  isLeftover,
  type OnStep,
  removeFiles,
  type TemporaryFile,
} from "./temporary-file.js";
import { verifyFile } from "./verified-file.js";

/** Content that was on the disk, and hashed to its name, a moment ago. */
export interface StoredBlob {
  readonly digest: Digest;
  /** Absolute. */
  readonly filePath: string;
  readonly sizeBytes: number;
}

/** Files named by the sha256 of what they hold; nothing in one is believed without hashing it. */
export interface BlobStore {
  /**
   * Stores what `chunks` gives, however much that is: whoever makes them bounds them. What they
   * throw is passed on. Nothing is kept of what is not stored whole.
   * @param wanted what they must hash to; null = they are stored under what they hash to
   * @throws LoaderError digest-mismatch; module-empty, for blobs; cache-unwritable, with `chunks`
   *   untouched when nothing can be written, and broken off when the disk failed half-way: a second
   *   try with new chunks then writes elsewhere
   */
  write(
    wanted: Digest | null,
    chunks: AsyncIterable<Uint8Array>,
  ): Promise<StoredBlob>;
  /**
   * The file of that content, hashed anew; null = there is none. Who asks for the same at once
   * shares one reading. A file with other content is removed.
   * @throws LoaderError resolve-cancelled when `signal` aborts first
   */
  find(digest: Digest, signal: AbortSignal | null): Promise<StoredBlob | null>;
  /** That content, hashed anew; null = there is none, or it has more than `maxBytes`. */
  read(digest: Digest, maxBytes: number): Promise<Uint8Array | null>;
  /** Where the files lie at the moment, for the sweep. */
  directories(): readonly string[];
  /** Removes the directory that was used instead of --cache-dir, if there is one. */
  close(): Promise<void>;
}

export interface BlobStoreOptions {
  readonly cacheDir: string;
  readonly kind: "blobs" | "manifests";
  /** Called when a file did not hold what its name says. */
  readonly onStale?: () => void;
  /** Called at each step of a write, which waits for it; tests stop there. */
  readonly onStep?: OnStep;
}

/** How long a disk that could not be written is left alone: it may have been full for a moment. */
const FAILURE_HOLDS_MS = 60_000;
/** Failures that say nothing about the disk. */
const OUT_OF_HANDLES: ReadonlySet<string> = new Set(["EMFILE", "ENFILE"]);

/**
 * Opens `<cacheDir>/<kind>` and removes what a killed process left there.
 *
 * When it turns out that it cannot be written, files go to a directory of this process under the
 * system's temporary one, for a minute at a time.
 * @throws LoaderError cache-unwritable when it cannot be opened
 */
export function createBlobStore(
  { cacheDir, kind, onStale, onStep }: BlobStoreOptions,
  clock: Clock,
  logger: Logger,
): BlobStore {
  const directory = openCacheDir(cacheDir, kind);
  let fallback: string | null = null;
  /** Why, and until when, `directory` is not written to. */
  let failure: { readonly errno: string; readonly untilMs: number } | null =
    null;
  const running = new Map<Digest, Promise<StoredBlob | null>>();
  const nowMs = clock.nowMs();
  removeFiles(
    directory,
    (name, mtimeMs) => isLeftover(name, mtimeMs, nowMs),
    logger,
  );

  const directories = (): readonly string[] =>
    fallback === null ? [directory] : [directory, fallback];

  async function createFile(): Promise<OpenFile> {
    if (failure === null || failure.untilMs <= clock.monotonicMs()) {
      try {
        return {
          directory,
          file: await createTemporaryFile(directory, onStep),
        };
      } catch (cause) {
        const errno = errnoOf(cause);
        if (OUT_OF_HANDLES.has(errno)) throw unwritable(errno, cause);
        failure = failed(errno);
      }
    }
    return createElsewhere(failure.errno);
  }

  function failed(errno: string) {
    return { errno, untilMs: clock.monotonicMs() + FAILURE_HOLDS_MS };
  }

  async function createElsewhere(reason: string): Promise<OpenFile> {
    try {
      fallback ??= makeFallback(reason);
      const file = await createTemporaryFile(fallback, onStep);
      return { directory: fallback, file };
    } catch (cause) {
      const also = `${reason}; in the temporary directory ${errnoOf(cause)}`;
      throw unwritable(also, cause);
    }
  }

  function makeFallback(reason: string): string {
    const made = mkdtempSync(path.join(tmpdir(), `function-wasm-${kind}-`));
    logger.warn(
      { directory, fallback: made, reason },
      "cannot write to the cache directory, what is fetched goes to a temporary one",
    );
    return made;
  }

  /** Waits for a write to `where`, and remembers that it failed. */
  async function written<T>(where: string, writing: Promise<T>): Promise<T> {
    try {
      return await writing;
    } catch (cause) {
      const errno = errnoOf(cause);
      if (where === directory) failure = failed(errno);
      throw unwritable(errno, cause);
    }
  }

  /** @param begin called for each file that is tried; the function it returns gets the content */
  async function verified(
    digest: Digest,
    maxBytes: number,
    begin: () => (chunk: Uint8Array) => void,
  ): Promise<StoredBlob | null> {
    for (const where of directories()) {
      const filePath = path.join(where, fileNameOf(digest));
      const result = await verifyFile(filePath, digest, maxBytes, begin());
      switch (result.kind) {
        case "ok":
          return { digest, filePath, sizeBytes: result.sizeBytes };
        case "absent":
          break;
        case "unreadable":
          logger.debug(
            { path: filePath, reason: result.reason },
            "cannot read a file in the cache",
          );
          break;
        case "mismatch":
          onStale?.();
          logger.warn(
            { path: filePath, expected: digest, got: result.got },
            "a file in the cache did not hold what its name says and is dropped",
          );
          break;
      }
    }
    return null;
  }

  return {
    async write(wanted, chunks) {
      const { directory: where, file } = await createFile();
      try {
        const hash = createHash("sha256");
        let sizeBytes = 0;
        for await (const chunk of chunks) {
          hash.update(chunk);
          sizeBytes += chunk.length;
          await written(where, file.append(chunk));
        }
        const digest: Digest = `sha256:${hash.digest("hex")}`;
        if (wanted !== null && digest !== wanted)
          throw refuse("digest-mismatch", `expected ${wanted}, got ${digest}`);
        if (sizeBytes === 0 && kind === "blobs")
          throw refuse("module-empty", "the module has no bytes");
        const filePath = path.join(where, fileNameOf(digest));
        await written(where, file.publish(filePath));
        return { digest, filePath, sizeBytes };
      } finally {
        await file.discard();
      }
    },
    async find(digest, signal) {
      let shared = running.get(digest);
      if (shared === undefined) {
        shared = verified(digest, Infinity, () => ignore).finally(() =>
          running.delete(digest),
        );
        running.set(digest, shared);
      }
      return signal === null ? shared : unlessAborted(shared, signal);
    },
    async read(digest, maxBytes) {
      let chunks: Buffer[] = [];
      const found = await verified(digest, maxBytes, () => {
        chunks = [];
        return (chunk) => chunks.push(Buffer.from(chunk));
      });
      return found === null ? null : Buffer.concat(chunks);
    },
    directories,
    async close() {
      if (fallback !== null)
        await rm(fallback, { recursive: true, force: true });
    },
  };
}

interface OpenFile {
  readonly directory: string;
  readonly file: TemporaryFile;
}

function fileNameOf(digest: Digest): string {
  return digest.replace(":", "-");
}

function unwritable(reason: string, cause: unknown): LoaderError {
  return refuse(
    "cache-unwritable",
    `what was fetched cannot be stored on this machine (${reason})`,
    cause,
  );
}

function ignore(): void {
  // It is of no use here.
}

/** Stops waiting, not the work, which others may wait for and which is short. */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = (): void => {
      const reason = "the request ended while the cache was being read";
      reject(refuse("resolve-cancelled", reason));
    };
    if (signal.aborted) leave();
    signal.addEventListener("abort", leave, { once: true });
    void work
      .then(resolve, reject)
      .finally(() => signal.removeEventListener("abort", leave));
  });
}
