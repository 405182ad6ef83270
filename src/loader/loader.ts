import type {
  Clock,
  ManifestBytes,
  ModuleFile,
  ModuleSource,
  RequestScope,
} from "../ports.js";
import { LoaderError } from "./error.js";
import { createManifestFiles } from "./manifest-file.js";
import { createPathSource } from "./path.js";

/** What the operator set. */
export interface LoaderOptions {
  /** Where Path sources lie, a local directory; null = they are refused. */
  readonly moduleDir: string | null;
  readonly maxModuleBytes: number;
}

/** Finds modules and their manifests. */
export interface Loader {
  /**
   * Finds the file a source names, and its digest.
   * @throws LoaderError
   */
  resolve(source: ModuleSource, scope: RequestScope): Promise<ModuleFile>;
  /**
   * Reads the manifest a source names beside its module; null when it names none. The bytes are
   * shared: nobody may write to them.
   * @throws LoaderError
   */
  manifest(
    source: ModuleSource,
    scope: RequestScope,
  ): Promise<ManifestBytes | null>;
}

/** A loader; it holds nothing that needs closing. */
export function createLoader(options: LoaderOptions, clock: Clock): Loader {
  const { maxModuleBytes, moduleDir } = options;
  const modules = createPathSource(
    {
      moduleDir,
      maxBytes: maxModuleBytes,
      maxBytesRule: "--max-module-size allows",
      subject: "module Path",
    },
    clock,
  );
  const manifests = createManifestFiles(moduleDir, clock);
  return {
    async resolve(source, scope) {
      if (source.type !== "Path") throw notSupported(source);
      return await modules.resolve(source.path, scope);
    },
    async manifest(source, scope) {
      if (source.type !== "Path") throw notSupported(source);
      if (source.manifestPath === null) return null;
      return await manifests.read(source.manifestPath, scope);
    },
  };
}

type RemoteSource = Exclude<ModuleSource, { type: "Path" }>;

function notSupported(source: RemoteSource): LoaderError {
  return new LoaderError(
    "source-not-supported",
    `cannot resolve module: module ${source.type} ${locationOf(source)}: module type ${source.type} is not supported yet, this runtime loads Path modules only`,
  );
}

/** Canonical, and so without line breaks, user info and query. */
function locationOf(source: RemoteSource): string {
  return source.type === "OCI" ? source.ref.text : source.url.location;
}
