import { createHash } from "node:crypto";
import path from "node:path";
import { errnoOf, errorText } from "../../errors.js";
import type { Clock, Digest, Logger } from "../../ports.js";
import { parseDigest } from "../digest.js";
import { openCacheDir } from "./cache-dir.js";
import { createKeyedQueue } from "./keyed-queue.js";
import { readRecord, readTime, timeText } from "./record-file.js";
import {
  isLeftover,
  type OnStep,
  removeFiles,
  replaceFile,
} from "./temporary-file.js";

/** What a tag led to when it was last resolved. */
export interface Pointer {
  readonly digest: Digest;
  /** Unix time. */
  readonly resolvedAtMs: number;
}

/**
 * What tags led to, for when a registry cannot be reached. A key is a tag's canonical
 * `host/repository:tag`.
 */
export interface PointerStore {
  /** `null` when there is none, or none that can be believed. Never rejects. */
  read(key: string): Promise<Pointer | null>;
  /**
   * Never rejects: `failed` has been logged.
   *
   * `kept`: what is there was resolved later, or says the same and was resolved less than ten
   * seconds before, so that a busy tag costs no write for each request. A pointer may thus seem up
   * to ten seconds older than it is.
   */
  write(
    key: string,
    digest: Digest,
    resolvedAtMs: number,
  ): Promise<"written" | "kept" | "failed">;
}

const SAME_FOR_MS = 10_000;
const WARN_EVERY_MS = 10 * 60_000;

/**
 * Opens `<cacheDir>/refs` and removes what a killed process left there.
 * @param onStep called at each step of a write, which waits for it; tests stop there
 * @throws LoaderError cache-unwritable when it cannot be opened
 */
export function createPointerStore(
  cacheDir: string,
  clock: Clock,
  logger: Logger,
  onStep?: OnStep,
): PointerStore {
  const directory = openCacheDir(cacheDir, "refs");
  const inTurn = createKeyedQueue();
  const warnedAtMs = new Map<string, number>();
  const nowMs = clock.nowMs();
  removeFiles(
    directory,
    (name, mtimeMs) => isLeftover(name, mtimeMs, nowMs),
    logger,
  );

  async function read(key: string): Promise<Pointer | null> {
    const filePath = path.join(directory, fileNameOf(key));
    try {
      return readPointer(key, (await readRecord(filePath)).fields, clock);
    } catch (error) {
      if (errnoOf(error) !== "ENOENT")
        logger.debug(
          { path: filePath, reason: errorText(error) },
          "cannot use what is written down of a tag",
        );
      return null;
    }
  }

  function warnNowAndThen(errno: string): void {
    const atMs = clock.monotonicMs();
    const lastMs = warnedAtMs.get(errno) ?? -Infinity;
    if (atMs - lastMs < WARN_EVERY_MS) return;
    warnedAtMs.set(errno, atMs);
    logger.warn(
      { directory, reason: errno },
      "cannot write down what a tag led to, for when its registry cannot be reached",
    );
  }

  return {
    read,
    write: (key, digest, resolvedAtMs) =>
      inTurn(key, async () => {
        const isNews = async (): Promise<boolean> => {
          const present = await read(key);
          return present === null || adds(present, digest, resolvedAtMs);
        };
        if (!(await isNews())) return "kept";
        const record = { ref: key, digest, resolvedAt: timeText(resolvedAtMs) };
        try {
          // Looked at once more just before the file is put in place: writing takes long enough for
          // another process to have written a later one.
          const isWritten = await replaceFile(
            directory,
            fileNameOf(key),
            JSON.stringify(record),
            onStep,
            isNews,
          );
          return isWritten ? "written" : "kept";
        } catch (error) {
          warnNowAndThen(errnoOf(error));
          return "failed";
        }
      }),
  };
}

/** Hashed, so that a key may have any length, and case matters on every file system. */
function fileNameOf(key: string): string {
  return `${createHash("sha256").update(`oci\0${key}`).digest("hex")}.json`;
}

/** Throws what is wrong with it. */
function readPointer(
  key: string,
  fields: ReadonlyMap<string, unknown>,
  clock: Clock,
): Pointer {
  if (fields.get("ref") !== key) throw new Error("it is of another tag");
  const digest = fields.get("digest");
  const parsed = parseDigest(typeof digest === "string" ? digest : "");
  if (parsed.kind === "error") throw new Error(parsed.message);
  const resolvedAtMs = readTime(fields.get("resolvedAt"), clock.nowMs());
  return { digest: parsed.value, resolvedAtMs };
}

function adds(present: Pointer, digest: Digest, resolvedAtMs: number): boolean {
  const laterByMs = resolvedAtMs - present.resolvedAtMs;
  return laterByMs >= (present.digest === digest ? SAME_FOR_MS : 0);
}
