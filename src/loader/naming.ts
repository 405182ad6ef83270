import { escaped } from "../errors.js";
import type { ModuleSource } from "../ports.js";
import { LoaderError } from "./error.js";

/** What messages call a source, for example `OCI ghcr.io/example/greeter:v1`; one line. */
export function describeSource(source: ModuleSource): string {
  switch (source.type) {
    case "Path":
      return `Path ${escaped(source.path)}`;
    case "OCI":
      // Canonical, and so without line breaks and user info.
      return `OCI ${source.ref.text}`;
    case "HTTP":
      // Without its query, which may be a secret.
      return `HTTP ${source.url.location}`;
  }
}

/** Runs `work`; what it refuses becomes a refusal that names the module. */
export async function namingSource<T>(
  description: string,
  work: () => Promise<T>,
): Promise<T> {
  return await naming(`cannot resolve module: module ${description}`, work);
}

/** Runs `work`; what it refuses becomes a refusal that begins with `what`. */
export async function naming<T>(
  what: string,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    if (!(thrown instanceof LoaderError)) throw thrown;
    const { code, message, cause, detail } = thrown;
    throw new LoaderError(code, `${what}: ${message}`, {
      cause: cause ?? thrown,
      ...(detail === undefined ? {} : { detail }),
    });
  }
}
