import { type BigIntStats, statSync } from "node:fs";
import { LRUCache } from "lru-cache";
import type { Clock, ModuleFile } from "../ports.js";
import { isUnchanged } from "./hash-file.js";

/** Remembers what paths led to, so that most requests cost one look at the file. */
export interface PathMemory {
  /** The module `modulePath` still leads to; undefined = look for it as if for the first time. */
  recall(modulePath: string): ModuleFile | undefined;
  /**
   * @param place what `modulePath` means, links not yet followed
   * @param stats the state of the file in which the module was found
   */
  remember(
    modulePath: string,
    place: string,
    stats: BigIntStats,
    module: ModuleFile,
  ): void;
}

const MAX_ENTRIES = 1024;
const HOLDS_FOR_MS = 1_000;
const STAT_OPTIONS = { bigint: true, throwIfNoEntry: false } as const;

interface Found {
  readonly place: string;
  readonly stats: BigIntStats;
  readonly module: ModuleFile;
  readonly atMs: number;
}

/**
 * An empty memory of 1024 paths.
 *
 * A path is taken to lead where it led when the file behind it is the very one that was judged, and
 * has not changed since. A link moved to another file, a new release, a replaced or removed file:
 * each fails that. What it cannot see is a path that reaches the same, unchanged file in another
 * way: a directory above it renamed, or a link moved to a hard link of it outside --module-dir. The
 * bytes are those that were admitted all the same, and whoever reads them hashes them; where they
 * lie may be out of date, so every path is looked up in full once a second.
 */
export function createPathMemory(clock: Clock): PathMemory {
  const known = new LRUCache<string, Found>({ max: MAX_ENTRIES });
  return {
    recall(modulePath) {
      const found = known.get(modulePath);
      if (found === undefined) return undefined;
      const { atMs, module, place, stats } = found;
      if (clock.monotonicMs() - atMs >= HOLDS_FOR_MS) return undefined;
      const now = statNow(place);
      return now !== undefined && isUnchanged(stats, now) ? module : undefined;
    },
    remember(modulePath, place, stats, module) {
      const atMs = clock.monotonicMs();
      known.set(modulePath, { place, stats, module, atMs });
    },
  };
}

/** What is behind all links; undefined when there is nothing, or no way to it. */
function statNow(place: string): BigIntStats | undefined {
  try {
    return statSync(place, STAT_OPTIONS);
  } catch {
    return undefined;
  }
}
