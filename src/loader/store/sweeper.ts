import path from "node:path";
import { errorText } from "../../errors.js";
import type { Clock, Digest, Logger, Metrics } from "../../ports.js";
import { sweepCache, type SweptDirectory } from "./sweep-cache.js";
import { sweepRecords } from "./sweep-records.js";

/** What is kept on disk, and how much of it may be. */
export interface SweeperOptions {
  readonly cacheDir: string;
  /** Where the loader writes to at the moment. */
  readonly directories: () => readonly SweptDirectory[];
  /** 0 = no bound. */
  readonly maxBytes: number;
  /** Where the engine writes artifacts to; they count, too. */
  readonly compiledDir: string;
  /** What was used since a time of the monotonic clock. */
  readonly usedSince: (atMs: number) => Iterable<Digest>;
}

/** Sweeps the caches now and then. */
export interface Sweeper {
  /**
   * Stops, and marks what was used lately for the next process to see. A sweep under way ends by
   * itself. Never rejects.
   */
  close(): Promise<void>;
}

const EVERY_MS = 600_000;
/** What was used within this time is never removed: a step that is pinned to it may go on offline. */
const KEEP_MS = 3_600_000;

/** Sweeps at once, and then every ten minutes. Nothing waits for it. */
export function startSweeper(
  options: SweeperOptions,
  clock: Clock,
  logger: Logger,
  metrics: Pick<Metrics, "cacheSwept">,
): Sweeper {
  const timer = setInterval(() => void sweep(options.maxBytes), EVERY_MS);
  timer.unref();
  void sweep(options.maxBytes);

  async function sweep(maxBytes: number): Promise<void> {
    const { cacheDir, compiledDir, directories, usedSince } = options;
    try {
      const used = new Set(
        [...usedSince(clock.monotonicMs() - KEEP_MS)].map((digest) =>
          digest.replace(":", "-"),
        ),
      );
      const { bytesByKind, removedBytes, removedFiles } = await sweepCache(
        {
          directories: [
            ...directories(),
            {
              kind: "compiled-disk",
              directory: path.join(cacheDir, "compiled"),
              recursive: true,
            },
          ],
          maxBytes,
          inUse: (fileName) => used.has(fileName.slice(0, NAME_CHARS)),
          keepMs: KEEP_MS,
          currentCompiledDir: compiledDir,
        },
        clock,
        logger,
      );
      for (const name of ["access", "refs"])
        await sweepRecords(path.join(cacheDir, name), logger);
      metrics.cacheSwept("blob", bytesByKind["blob"] ?? 0);
      metrics.cacheSwept("compiled-disk", bytesByKind["compiled-disk"] ?? 0);
      if (removedFiles > 0)
        logger.info({ removedBytes, removedFiles }, "cache swept");
    } catch (thrown) {
      logger.error({ reason: errorText(thrown) }, "cannot sweep the cache");
    }
  }

  return {
    async close() {
      clearInterval(timer);
      await sweep(UNBOUNDED);
    },
  };
}

const UNBOUNDED = 0;
/** An artifact may have a variant behind the digest. */
const NAME_CHARS = "sha256-".length + 64;
