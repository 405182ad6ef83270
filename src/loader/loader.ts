import { escaped } from "../errors.js";
import type {
  Clock,
  ModuleFile,
  ModuleSource,
  RequestScope,
} from "../ports.js";
import { LoaderError } from "./error.js";
import { createPathSource, type PathOptions } from "./path.js";

/** What the operator set. */
export type LoaderOptions = PathOptions;

/** Finds modules. */
export interface Loader {
  /**
   * Finds the file a source names, and its digest.
   * @throws LoaderError
   */
  resolve(source: ModuleSource, scope: RequestScope): Promise<ModuleFile>;
}

/** A loader; it holds nothing that needs closing. */
export function createLoader(options: LoaderOptions, clock: Clock): Loader {
  const paths = createPathSource(options, clock);
  return {
    async resolve(source, scope) {
      if (source.type === "Path")
        return await paths.resolve(source.path, scope);
      throw new LoaderError(
        "source-not-supported",
        `cannot resolve module: module ${describeSource(source)}: module type ${source.type} is not supported yet, this runtime loads Path modules only`,
      );
    },
  };
}

/** What messages call the source: its type and location, escaped. */
function describeSource(
  source: Exclude<ModuleSource, { type: "Path" }>,
): string {
  switch (source.type) {
    case "OCI":
      return `OCI ${escaped(source.ref)}`;
    case "HTTP":
      return `HTTP ${escaped(withoutSecrets(source.url))}`;
  }
}

/** User info and query of a URL often hold a password or a signature. */
function withoutSecrets(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== "https:" && url?.protocol !== "http:")
    return "(no http or https URL)";
  return `${url.origin}${url.pathname}`;
}
