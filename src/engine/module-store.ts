import type { Clock, Digest } from "../ports.js";
import type { NativeModule } from "./native.js";

const IDLE_MS = 600_000;
const SWEEP_EVERY_MS = 60_000;

/** Compiled modules in memory, each for as long as somebody leases it or it was used lately. */
export interface ModuleStore {
  /** A lease of a module that is in memory, or `null`. */
  lease(digest: Digest): StoredLease | null;
  /** Adds a module, unless it is there already, and leases it. The store disposes of it. */
  add(digest: Digest, module: NativeModule): StoredLease;
  /** Modules in memory. */
  readonly size: number;
  /** Disposes of every module; those that run are freed when they end. */
  close(): void;
}

/** A module that stays in memory until released. */
export interface StoredLease {
  readonly module: NativeModule;
  /** Idempotent. */
  release(): void;
}

/** How much the memory tier may keep. */
export interface ModuleStoreBounds {
  /** Whether a module that nobody leases stays at all. */
  readonly keepsIdle: boolean;
  /** 0 = unbounded. */
  readonly maxModules: number;
}

/**
 * Makes the memory tier: idle modules go after ten minutes, and the least recently used idle one
 * as soon as there are more than `maxModules`; without `keepsIdle`, each as soon as it is idle.
 */
export function createModuleStore(
  { keepsIdle, maxModules }: ModuleStoreBounds,
  clock: Clock,
): ModuleStore {
  /** Insertion order is the order of use. */
  const entries = new Map<Digest, Entry>();
  const sweeper = setInterval(dropIdle, SWEEP_EVERY_MS);
  sweeper.unref();

  return {
    get size() {
      return entries.size;
    },
    lease(digest) {
      const entry = entries.get(digest);
      return entry === undefined ? null : leaseOf(digest, entry);
    },
    add(digest, module) {
      const known = entries.get(digest);
      if (known !== undefined) {
        // Somebody may lease it and run it yet, and it is the same code.
        module.dispose();
        return leaseOf(digest, known);
      }
      const entry: Entry = { module, leases: 0, usedAtMs: 0 };
      entries.set(digest, entry);
      const lease = leaseOf(digest, entry);
      dropSurplus();
      return lease;
    },
    close() {
      clearInterval(sweeper);
      for (const { module } of entries.values()) module.dispose();
      entries.clear();
    },
  };

  function leaseOf(digest: Digest, entry: Entry): StoredLease {
    entry.leases += 1;
    touch(digest, entry);
    let held = true;
    return {
      module: entry.module,
      release() {
        if (!held) return;
        held = false;
        entry.leases -= 1;
        if (entries.get(digest) !== entry) return;
        if (!keepsIdle && entry.leases === 0) {
          drop(digest, entry);
          return;
        }
        touch(digest, entry);
        dropSurplus();
      },
    };
  }

  function touch(digest: Digest, entry: Entry): void {
    entry.usedAtMs = clock.monotonicMs();
    entries.delete(digest);
    entries.set(digest, entry);
  }

  function dropSurplus(): void {
    if (maxModules === 0) return;
    for (const [digest, entry] of entries) {
      if (entries.size <= maxModules) return;
      if (entry.leases === 0) drop(digest, entry);
    }
  }

  function dropIdle(): void {
    const idleSinceMs = clock.monotonicMs() - IDLE_MS;
    for (const [digest, entry] of entries) {
      if (entry.leases === 0 && entry.usedAtMs <= idleSinceMs)
        drop(digest, entry);
    }
  }

  function drop(digest: Digest, entry: Entry): void {
    entries.delete(digest);
    entry.module.dispose();
  }
}

interface Entry {
  readonly module: NativeModule;
  leases: number;
  usedAtMs: number;
}
