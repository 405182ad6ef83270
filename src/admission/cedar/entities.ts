import { isIP } from "node:net";

/**
 * How many segments a location, or labels a host, may have. No registry or name server takes as
 * many; a longer one would give Cedar an entity for each, every one nearly as long as the whole.
 */
export const maxLevels = 128;

/**
 * What a `Repository` is in, besides itself: every prefix of its canonical location that ends at a
 * `/`, written with and without that slash, so that `ghcr.io/example-evil` is never under
 * `ghcr.io/example`. The scheme of a URL is no such prefix.
 * @returns null when the location has more than {@link maxLevels} segments
 */
export function repositoryAncestors(location: string): string[] | null {
  const ancestors = new Set<string>();
  const schemeEnd = location.indexOf("://");
  let slash = location.indexOf("/", schemeEnd === -1 ? 0 : schemeEnd + 3);
  for (let level = 1; slash !== -1; level++) {
    if (level > maxLevels) return null;
    ancestors.add(location.slice(0, slash));
    ancestors.add(location.slice(0, slash + 1));
    slash = location.indexOf("/", slash + 1);
  }
  if (!location.endsWith("/")) ancestors.add(`${location}/`);
  ancestors.delete(location);
  return [...ancestors];
}

/**
 * What a `HostPattern` is in, besides itself: every domain above it, and `*.` of each of those,
 * which stands for the names under it. `*.example.com` is in `example.com`; `example.com` is not in
 * `*.example.com`. An IP address is in nothing.
 * @returns null when the host has more than {@link maxLevels} labels
 */
export function hostAncestors(host: string): string[] | null {
  if (isAddress(host)) return [];
  const ancestors = new Set<string>();
  let dot = host.indexOf(".");
  for (let level = 1; dot !== -1; level++) {
    if (level > maxLevels) return null;
    const domain = host.slice(dot + 1);
    ancestors.add(domain);
    ancestors.add(`*.${domain}`);
    dot = host.indexOf(".", dot + 1);
  }
  ancestors.delete(host);
  return [...ancestors];
}

function isAddress(host: string): boolean {
  return host.startsWith("[") || isIP(host) !== 0;
}
