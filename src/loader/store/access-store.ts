import { randomBytes } from "node:crypto";
import { lutimes, rm } from "node:fs/promises";
import path from "node:path";
import { LRUCache } from "lru-cache";
import { errnoOf, errorText } from "../../errors.js";
import type { Clock, Logger } from "../../ports.js";
import { type AccessKey, createAccessName } from "./access-name.js";
import { openSalt } from "./access-salt.js";
import { openCacheDir } from "./cache-dir.js";
import { createKeyedQueue } from "./keyed-queue.js";
import { readRecord, readTime, timeText } from "./record-file.js";
import { isLeftover, removeFiles, replaceFile } from "./temporary-file.js";

/** When certain bytes were last delivered at a certain place to a certain identity. */
export interface AccessStore {
  /** Unix ms; null when there is no record, or none that can be believed. */
  provedAt(key: AccessKey): Promise<number | null>;
  /**
   * An earlier time than the one this process knows changes nothing. What cannot be written holds in
   * this process only.
   */
  record(key: AccessKey, atMs: number): Promise<void>;
  /** As if it had never been delivered. */
  forget(key: AccessKey): Promise<void>;
}

const DAY_MS = 86_400_000;
const MAX_UNUSED_MS = 90 * DAY_MS;
const MAX_IN_MEMORY = 10_000;

interface Known {
  readonly provedAtMs: number | null;
  /** When its file was written, read or touched last. */
  touchedAtMs: number;
}

const RECORD_NAME = /^[0-9a-f]{64}$/u;

/**
 * Opens `<cacheDir>/access`, removes records that nobody used for 90 days and what a killed process
 * left there. The last 10,000 records are held in memory, too.
 * @throws LoaderError cache-unwritable when it cannot be opened
 */
export function createAccessStore(
  cacheDir: string,
  clock: Clock,
  logger: Logger,
): AccessStore {
  const directory = openCacheDir(cacheDir, "access");
  const openedAtMs = clock.nowMs();
  removeFiles(
    directory,
    (name, mtimeMs) =>
      isLeftover(name, mtimeMs, openedAtMs) ||
      (RECORD_NAME.test(name) && openedAtMs - mtimeMs > MAX_UNUSED_MS),
    logger,
  );
  const inTurn = createKeyedQueue();
  /** `null`: forgotten, but its file could not be removed. */
  const known = new LRUCache<string, Known>({ max: MAX_IN_MEMORY });
  let hasWarned = false;
  const salt = attemptSalt();
  const nameOf = createAccessName(salt ?? randomBytes(32));

  function remember(name: string, provedAtMs: number | null): void {
    known.set(name, { provedAtMs, touchedAtMs: clock.nowMs() });
  }

  /** `null`: nothing on the disk can be read or written, since nobody else would know the names. */
  function attemptSalt(): Buffer | null {
    try {
      return openSalt(directory);
    } catch (error) {
      warnOnce(error);
      return null;
    }
  }

  function warnOnce(error: unknown): void {
    if (hasWarned) return;
    hasWarned = true;
    logger.warn(
      { directory, reason: errnoOf(error) },
      "cannot write down who may have what is in the cache: a restart forgets it",
    );
  }

  /** Sweeps leave what was used lately. */
  async function touch(name: string): Promise<void> {
    const nowS = clock.nowMs() / 1000;
    await lutimes(path.join(directory, name), nowS, nowS).catch(() => null);
  }

  async function readProof(name: string): Promise<number | null> {
    const filePath = path.join(directory, name);
    try {
      const { fields, mtimeMs } = await readRecord(filePath);
      const nowMs = clock.nowMs();
      const provedAtMs = readTime(fields.get("provedAt"), nowMs);
      if (nowMs - mtimeMs > DAY_MS) await touch(name);
      return provedAtMs;
    } catch (error) {
      if (errnoOf(error) !== "ENOENT")
        logger.debug(
          { path: filePath, reason: errorText(error) },
          "cannot use a record of access",
        );
      return null;
    }
  }

  return {
    async provedAt(key) {
      const name = await nameOf(key);
      const remembered = known.get(name);
      if (remembered !== undefined) {
        const { provedAtMs, touchedAtMs } = remembered;
        const nowMs = clock.nowMs();
        if (provedAtMs !== null && nowMs - touchedAtMs > DAY_MS) {
          remembered.touchedAtMs = nowMs;
          await inTurn(name, () => touch(name));
        }
        return provedAtMs;
      }
      if (salt === null) return null;
      return inTurn(name, async () => {
        const provedAtMs = await readProof(name);
        if (provedAtMs !== null) remember(name, provedAtMs);
        return provedAtMs;
      });
    },
    async record(key, atMs) {
      const name = await nameOf(key);
      await inTurn(name, async () => {
        if ((known.get(name)?.provedAtMs ?? -Infinity) >= atMs) return;
        remember(name, atMs);
        if (salt === null) return;
        const content = JSON.stringify({ provedAt: timeText(atMs) });
        await replaceFile(directory, name, content).catch(warnOnce);
      });
    },
    async forget(key) {
      const name = await nameOf(key);
      await inTurn(name, async () => {
        known.delete(name);
        if (salt === null) return;
        try {
          await rm(path.join(directory, name), { force: true });
        } catch (error) {
          remember(name, null);
          warnOnce(error);
        }
      });
    },
  };
}
