import { LoaderError } from "../../loader/index.js";
import type { OciReference } from "../../ports.js";

/**
 * Does what needs a registry. What it fails with names the place once: the loader's messages have the
 * reference in them, and most of its reasons begin with the registry all the same, for a log in which
 * it may be any.
 * @throws what `work` throws, a LoaderError in fewer words
 */
export async function namingPlaceOnce<T>(
  ref: OciReference,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    throw thrown instanceof LoaderError ? inFewerWords(thrown, ref) : thrown;
  }
}

function inFewerWords(error: LoaderError, ref: OciReference): LoaderError {
  const { code, detail, message } = error;
  const at = message.indexOf(ref.text);
  // What a tag led to comes in between.
  const colon = message.indexOf(": ", at + ref.text.length);
  if (at === -1 || colon === -1) return error;
  const reason = message.slice(colon + 2);
  return new LoaderError(
    code,
    `${message.slice(0, colon)}: ${withoutPlace(reason, ref)}`,
    { cause: error, ...(detail !== undefined && { detail }) },
  );
}

function withoutPlace(
  reason: string,
  { location, registry }: OciReference,
): string {
  // A URL has no default port, which a host without a dot keeps in a reference.
  const host = registry.replace(/:(?:80|443)$/u, "");
  for (const place of [location, registry, host]) {
    if (reason.startsWith(`${place}: `)) return reason.slice(place.length + 2);
    if (reason.startsWith(`${place} `))
      return `the registry${reason.slice(place.length)}`;
  }
  return reason;
}
