import type {
  Clock,
  Digest,
  FoundModule,
  Logger,
  ManifestBytes,
  Metrics,
  ModuleSource,
  RedirectFence,
  RequestScope,
  Warning,
} from "../ports.js";
import { createAccess } from "./access.js";
import { createBlobs } from "./blobs.js";
import { createHttpModules } from "./http-modules.js";
import { createManifestBlobs } from "./manifest-blobs.js";
import { createManifestFiles } from "./manifest-file.js";
import { describeSource, namingSource } from "./naming.js";
import { createNetwork } from "./network.js";
import { createCredentials } from "./oci/credentials.js";
import { createImages } from "./oci/images.js";
import { createLayerAccess } from "./oci/layer-access.js";
import { createOciModules, type CredentialReader } from "./oci/oci-modules.js";
import { createPackedModules } from "./oci/packed-modules.js";
import { createRegistry } from "./oci/registry.js";
import { createTags, type TagOptions } from "./oci/tags.js";
import { createPathSource } from "./path.js";
import type { SchemeOptions } from "./registry-scheme.js";
import { createSourceParsers } from "./source-parsers.js";
import { createAccessStore } from "./store/access-store.js";
import { createBlobStore, type BlobStore } from "./store/blob-store.js";
import { createPointerStore } from "./store/pointer-store.js";
import type { SweptDirectory } from "./store/sweep-cache.js";
import { createUseLog } from "./use-log.js";

/** What the operator set. Sizes in bytes, times in milliseconds. */
export interface LoaderOptions extends SchemeOptions {
  /** Where Path sources lie, a local directory; null = they are refused. */
  readonly moduleDir: string | null;
  readonly maxModuleBytes: number;
  /** Holds `blobs/`, `manifests/`, `refs/` and `access/`; made when missing. */
  readonly cacheDir: string;
  readonly tags: TagOptions;
  /** How long a credential's access to what is in the cache counts as proved. */
  readonly accessRecheckIntervalMs: number;
  /** The runtime's own Docker config; null = none. */
  readonly dockerConfigFile: string | null;
  /** What credential helpers are run with. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** The outside world, as far as finding modules needs it. */
export interface LoaderParts {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** What a request brings along for finding its module. */
export interface PullContext {
  /** The data of a step credential; null = the step has none of that name. */
  readonly credentialOf: CredentialReader;
  /** Where redirects may lead; null = the Input's author chose the module, not the XR's. */
  readonly redirectFence: RedirectFence | null;
}

/** A module that was found, and what came with it. */
export interface ResolvedModule {
  readonly module: FoundModule;
  /** Of the OCI manifest that names it; null for other sources. */
  readonly manifestDigest: Digest | null;
  /** What users should know; null = nothing. */
  readonly warning: Warning | null;
  /**
   * The manifest that came with the module; null = none. Its bytes are shared: nobody may write to
   * them.
   * @throws LoaderError
   */
  readManifest(scope: RequestScope): Promise<ManifestBytes | null>;
}

/** Finds modules and their manifests. */
export interface Loader {
  /**
   * Finds out which module a source names. A pinned one that was here before needs no network.
   * @throws LoaderError; what the context's fence throws
   */
  resolve(
    source: ModuleSource,
    context: PullContext,
    scope: RequestScope,
  ): Promise<ResolvedModule>;
  /** The digests of everything that was used since a time of the monotonic clock. */
  usedSince(atMs: number): Iterable<Digest>;
  /** Where blobs and manifests lie at the moment. */
  directories(): readonly SweptDirectory[];
  close(): Promise<void>;
}

/**
 * A loader; it opens its caches and asks nobody.
 * @throws LoaderError cache-unwritable when the cache directory cannot be opened
 */
export function createLoader(
  options: LoaderOptions,
  parts: LoaderParts,
): Loader {
  const { cacheDir, maxModuleBytes, moduleDir } = options;
  const { clock, logger, metrics } = parts;
  const used = createUseLog(clock);
  const blobStore = createBlobStore(
    { cacheDir, kind: "blobs", onStale: () => metrics.blobLookedUp("stale") },
    clock,
    logger,
  );
  const manifestStore = createBlobStore(
    { cacheDir, kind: "manifests" },
    clock,
    logger,
  );
  const network = createNetwork(options, clock);
  const access = createAccess(
    createAccessStore(cacheDir, clock, logger),
    options.accessRecheckIntervalMs,
    clock,
  );
  const blobs = createBlobs(blobStore, clock, logger, metrics);
  const manifests = createManifestBlobs(manifestStore, clock, logger);

  const registry = createRegistry(network.authorizer, network.isPlainHttp);
  const images = createImages({
    registry,
    access,
    manifests: manifestStore,
    clock,
    logger,
  });
  const inRegistries = createOciModules({
    images,
    credentials: createCredentials({ ...options, clock, logger }),
    layers: createLayerAccess(registry, access, clock),
    tags: createTags(options.tags, {
      registry,
      images,
      access,
      pointers: createPointerStore(cacheDir, clock, logger),
      clock,
      logger,
      metrics,
    }),
    blobs,
    packed: createPackedModules(blobStore, blobs, maxModuleBytes, clock),
    manifests,
    maxModuleBytes,
    used,
  });
  const parsers = createSourceParsers(options);
  const onServers = createHttpModules({
    send: network.send,
    access,
    blobs,
    manifests,
    parseUrl: (text) => parsers.parseHttpUrl(text),
    maxModuleBytes,
  });
  const files = createPathSource(
    {
      moduleDir,
      maxBytes: maxModuleBytes,
      maxBytesRule: "--max-module-size allows",
      subject: "module Path",
      onHashed: (seconds) => {
        metrics.moduleFetched("path", seconds);
      },
    },
    clock,
  );
  const manifestFiles = createManifestFiles(moduleDir, clock);

  async function find(
    source: ModuleSource,
    { credentialOf, redirectFence }: PullContext,
    scope: RequestScope,
  ): Promise<ResolvedModule> {
    switch (source.type) {
      case "Path": {
        const file = await files.resolve(source.path, scope);
        const { manifestPath } = source;
        return {
          module: { ...file, locate: () => Promise.resolve(file) },
          manifestDigest: null,
          warning: null,
          readManifest: async (asking) =>
            manifestPath === null
              ? null
              : await manifestFiles.read(manifestPath, asking),
        };
      }
      case "OCI":
        return await inRegistries.resolve(source, credentialOf, scope);
      case "HTTP": {
        const description = describeSource(source);
        const found = await onServers.resolve(
          source,
          redirectFence,
          description,
          scope,
        );
        if (source.manifest !== null) used.used(source.manifest.digest);
        return { ...found, manifestDigest: null, warning: null };
      }
    }
  }

  return {
    async resolve(source, context, scope) {
      const name = describeSource(source);
      const naming = <T>(work: () => Promise<T>): Promise<T> =>
        source.type === "Path" ? work() : namingSource(name, work);
      const found = await naming(() => find(source, context, scope));
      used.used(found.module.digest);
      return {
        ...found,
        readManifest: (asking) => naming(() => found.readManifest(asking)),
      };
    },
    usedSince: (atMs) => used.since(atMs),
    directories: () => [
      ...placesOf("blob", blobStore),
      ...placesOf("manifest", manifestStore),
    ],
    async close() {
      await network.close();
      await blobStore.close();
      await manifestStore.close();
    },
  };
}

function placesOf(kind: string, store: BlobStore): readonly SweptDirectory[] {
  return store.directories().map((directory) => ({ kind, directory }));
}
