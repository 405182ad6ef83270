import { LRUCache } from "lru-cache";

import type { ManifestBytes, Parsed } from "../../ports.js";
import type { ModuleManifest } from "./manifest.js";
import { readManifest } from "./read-manifest.js";

/** Remembers what manifests say. */
export interface ManifestCache {
  /** As `readManifest`, once per digest and form while it is remembered; failures included. */
  get(manifest: ManifestBytes): Parsed<ModuleManifest>;
}

const maxEntries = 256;
/** Of the manifests' own bytes: what is read out of them is some times larger. */
const maxCachedBytes = 2 * 1024 * 1024;

/**
 * Remembers the last 256 manifests, of 2 MiB altogether.
 * @param read for tests
 */
export function createManifestCache(read = readManifest): ManifestCache {
  const known = new LRUCache<string, Parsed<ModuleManifest>>({
    max: maxEntries,
    maxSize: maxCachedBytes,
  });
  return {
    get({ form, bytes, digest }) {
      const key = `${form} ${digest}`;
      const remembered = known.get(key);
      if (remembered !== undefined) return remembered;
      const parsed = read(form, bytes);
      known.set(key, parsed, { size: Math.max(1, bytes.length) });
      return parsed;
    },
  };
}
