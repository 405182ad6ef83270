import { existsSync } from "node:fs";

import { LRUCache } from "lru-cache";

import { errorText } from "../errors.js";
import type {
  Clock,
  Digest,
  FoundModule,
  Logger,
  Metrics,
  ModuleFile,
  RequestScope,
} from "../ports.js";
import type { ArtifactStore } from "./artifact-store.js";
import type { Compiler } from "./compiler.js";
import type { CompileFailure } from "./compiler-process.js";
import { EngineError, type EngineErrorCode } from "./error.js";
import { createFileRace, type FileRace } from "./file-race.js";
import type { ModuleStore, StoredLease } from "./module-store.js";
import {
  nativeError,
  type ModuleKind,
  type NativeEngine,
  type NativeModule,
} from "./native.js";
import { whenOver } from "../request-scope.js";

/** How long a failure that will not go away by itself is remembered. */
const REMEMBERED_MS = 600_000;
const MAX_REMEMBERED = 10_000;
/** How often a module is compiled whose artifact another process replaces before it is loaded. */
const MAX_ATTEMPTS = 2;

/** Brings modules into memory. */
export interface ModuleLoader {
  /** @throws EngineError as {@link Engine.load} */
  load(module: FoundModule, scope: RequestScope): Promise<StoredLease>;
}

/** What {@link createModuleLoader} works with. */
export interface ModuleLoaderParts {
  readonly native: NativeEngine;
  readonly store: ModuleStore;
  readonly artifacts: ArtifactStore;
  readonly compiler: Compiler;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** Why a load failed, without the module's name: the next caller may know it by another one. */
type LoadFailure = Unfetched | Unloadable;

/** Nobody who waited for it could have its bytes; the next caller may have better luck. */
interface Unfetched {
  readonly kind: "unfetched";
}

interface Unloadable {
  readonly kind: "unloadable";
  readonly code: EngineErrorCode;
  readonly reason: string;
  readonly permanent: boolean;
}

/** Makes the loader: memory, then artifact, then pre-check and compile; one flight per digest. */
export function createModuleLoader(parts: ModuleLoaderParts): ModuleLoader {
  const { native, store, artifacts, compiler, clock, logger, metrics } = parts;
  const flights = new Map<Digest, Flight>();
  const failures = new LRUCache<Digest, Unloadable>({
    max: MAX_REMEMBERED,
    ttl: REMEMBERED_MS,
    ttlResolution: 0,
    perf: { now: () => clock.monotonicMs() + 1 },
  });

  return {
    async load(module, scope) {
      const inMemory = store.lease(module.digest);
      metrics.compiledLookedUp(inMemory === null ? "miss" : "hit");
      return inMemory ?? (await bring(module, scope));
    },
  };

  async function bring(
    module: FoundModule,
    scope: RequestScope,
  ): Promise<StoredLease> {
    const failed = failures.get(module.digest);
    if (failed !== undefined) throw loadError(module, failed);
    const flight = flights.get(module.digest) ?? start(module.digest);
    flight.race.join(module);
    const failure = await waitFor(flight, module, scope);
    if (failure?.kind === "unloadable") throw loadError(module, failure);
    // Another place or credential says nothing about this one.
    const own = flight.race.failureOf(module);
    if (failure?.kind === "unfetched" && own !== undefined) throw own.thrown;
    return store.lease(module.digest) ?? (await bring(module, scope));
  }

  function start(digest: Digest): Flight {
    const progress: Progress = { compiling: false };
    const race = createFileRace();
    const done = loadOnce(digest, race, progress)
      .catch((thrown: unknown): LoadFailure => {
        return failed("load-failed", nativeError(thrown).text);
      })
      .then((failure) => {
        flights.delete(digest);
        if (failure?.kind === "unloadable" && failure.permanent)
          failures.set(digest, failure);
        return failure;
      });
    const flight = { race, done, startedMs: clock.monotonicMs(), progress };
    flights.set(digest, flight);
    return flight;
  }

  /** `null` = the module is in memory now. */
  async function loadOnce(
    digest: Digest,
    race: FileRace,
    progress: Progress,
  ): Promise<LoadFailure | null> {
    const stored = await loadArtifact(digest);
    if (stored !== "stale") {
      metrics.artifactLookedUp("hit");
      return stored;
    }
    const isThere = existsSync(artifacts.pathOf(digest));
    metrics.artifactLookedUp(isThere ? "stale" : "miss");
    const module = await race.run();
    if (module === null) return { kind: "unfetched" };
    progress.compiling = true;
    const checked = await compiler.check(module);
    if (checked.kind !== "done") return checkError(checked);
    // A process with another key may put its own in the place before ours is loaded.
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
      const compiled = await compile(module, checked.moduleKind);
      if (compiled !== null) return compiled;
      const loaded = await loadArtifact(digest);
      if (loaded !== "stale") return loaded;
    }
    return failed(
      "load-failed",
      "the artifact that was just compiled does not verify",
    );
  }

  async function loadArtifact(
    digest: Digest,
  ): Promise<LoadFailure | "stale" | null> {
    const startedMs = clock.monotonicMs();
    let mapped: NativeModule;
    try {
      mapped = await native.load({
        filePath: artifacts.pathOf(digest),
        digest,
      });
    } catch (thrown) {
      const { code, text } = nativeError(thrown);
      if (code === "invalid") return permanently("module-invalid", text);
      // What cannot be read is compiled again: a bad disk costs time, not the request.
      logger.debug({ digest, reason: text }, "no usable artifact");
      return "stale";
    }
    const elapsedMs = Math.round(clock.monotonicMs() - startedMs);
    logger.info({ digest, elapsedMs, pooled: mapped.pooled }, "module loaded");
    metrics.moduleLoaded(mapped.abi === 1 ? 1 : 2);
    const lease = store.add(digest, mapped);
    // Whoever waits takes a lease in this turn of the loop. Without this one, a store that is full
    // of leased modules would drop it before, and they would load it again and again.
    setImmediate(() => {
      lease.release();
    });
    return null;
  }

  async function compile(
    module: ModuleFile,
    kind: ModuleKind,
  ): Promise<LoadFailure | null> {
    const first = await compileInto(module, kind);
    if (first?.kind !== "unwritable") {
      return first === null ? null : compileError(first);
    }
    artifacts.fallBack(first.text);
    const second = await compileInto(module, kind);
    return second === null ? null : compileError(second);
  }

  async function compileInto(
    module: ModuleFile,
    kind: ModuleKind,
  ): Promise<CompileFailure | null> {
    const { digest } = module;
    const temporaryPath = artifacts.temporaryPath();
    try {
      const failure = await compiler.compile(module, kind, temporaryPath);
      if (failure !== null) return failure;
      await native.seal(temporaryPath, kind, {
        filePath: artifacts.pathOf(digest),
        digest,
      });
      return null;
    } catch (thrown) {
      return { kind: "unwritable", text: nativeError(thrown).text };
    } finally {
      await artifacts.discard(temporaryPath).catch((thrown: unknown) => {
        logger.debug(
          { temporaryPath, reason: errorText(thrown) },
          "cannot remove a leftover",
        );
      });
    }
  }

  function progressOf({ startedMs, progress }: Flight): string {
    const seconds = Math.round((clock.monotonicMs() - startedMs) / 1000);
    const [doing, work] = progress.compiling
      ? ["compiling", "compile"]
      : ["being fetched", "fetch"];
    return `${doing} (for ${String(seconds)} s so far): the request's deadline came first, the ${work} goes on`;
  }

  async function waitFor(
    flight: Flight,
    module: FoundModule,
    scope: RequestScope,
  ): Promise<LoadFailure | null> {
    return await new Promise<LoadFailure | null>((resolve, reject) => {
      const stopWatching = whenOver(scope, clock, (why) => {
        reject(
          why === "cancelled"
            ? new EngineError(
                "run-cancelled",
                `${describe(module)}: cancelled while it was loaded`,
              )
            : new EngineError(
                "still-compiling",
                `${describe(module)} is still ${progressOf(flight)}`,
              ),
        );
      });
      void flight.done.then((failure) => {
        stopWatching();
        resolve(failure);
      });
    });
  }
}

interface Flight {
  readonly race: FileRace;
  readonly done: Promise<LoadFailure | null>;
  readonly startedMs: number;
  readonly progress: Progress;
}

/** How far a load has come. */
interface Progress {
  compiling: boolean;
}

function failed(code: EngineErrorCode, reason: string): Unloadable {
  return { kind: "unloadable", code, reason, permanent: false };
}

function permanently(code: EngineErrorCode, reason: string): Unloadable {
  return { kind: "unloadable", code, reason, permanent: true };
}

function checkError(failure: CompileFailure): LoadFailure {
  switch (failure.kind) {
    case "refused":
      return permanently("module-invalid", failure.text);
    case "exhausted":
      return permanently(
        "module-invalid",
        `it could not be checked: ${failure.text}`,
      );
    case "changed":
    case "io":
    case "unwritable":
    case "unavailable":
      return compileError(failure);
  }
}

function compileError(failure: CompileFailure): LoadFailure {
  switch (failure.kind) {
    case "refused":
      return permanently(
        "module-invalid",
        `the compiler refused it: ${failure.text}`,
      );
    case "exhausted":
      return permanently(
        "compile-failed",
        `it could not be compiled: ${failure.text}`,
      );
    case "changed":
      return failed("module-changed", failure.text);
    case "io":
    case "unwritable":
    case "unavailable":
      return failed("load-failed", failure.text);
  }
}

function loadError(
  module: FoundModule,
  { code, reason }: Unloadable,
): EngineError {
  return new EngineError(
    code,
    `${describe(module)} cannot be loaded: ${reason}`,
  );
}

function describe(module: FoundModule): string {
  return `module ${module.description}`;
}
