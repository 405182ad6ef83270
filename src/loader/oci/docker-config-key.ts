import { escaped } from "../../errors.js";
import { parseReference } from "../reference.js";
import type { IsPlainHttp } from "../registry-scheme.js";

/** Which pulls an entry of a Docker config is for. */
export interface DockerConfigKey {
  /** What messages call it; escaped, and without scheme and user info. */
  readonly text: string;
  /** A registry as references have it, or a glob of one. */
  readonly host: string;
  readonly isGlob: boolean;
  /** The repositories at and under it, by components; "" = all. */
  readonly path: string;
  /** Whether `host` is, or is a glob of, a registry as references have it. */
  isFor(registry: string): boolean;
}

const MAX_CHARS = 1024;
/** User info, a query and a fragment have no place in a key. */
const KEY = /^(?:https?:\/\/)?(?<host>[^/?#@\s]+)(?:\/(?<path>[^?#@]*))?$/iu;
const HOST_AND_PORT = /^(?<name>.*?)(?::(?<port>[0-9]{1,5}))?$/u;
/** A label with one `*` at most: what needs no backtracking to match. */
const GLOB_LABEL = /^[a-z0-9_-]*\*?[a-z0-9_-]*$/u;
/** What clients put behind a host to say how they speak to it. */
const API_PATHS = new Set(["v1", "v2"]);

/**
 * Reads a key of `auths` or `credHelpers`: `host[:port]`, with or without a scheme (which means
 * nothing), maybe with a path, maybe with `*` in the host. `null` when it names no registry.
 */
export function parseDockerConfigKey(
  text: string,
  isPlainHttp: IsPlainHttp,
): DockerConfigKey | null {
  if (text.length > MAX_CHARS) return null;
  const parts = KEY.exec(text)?.groups;
  const hostText = parts?.["host"]?.toLowerCase();
  if (hostText === undefined) return null;
  const host = hostText.includes("*")
    ? globHost(hostText, isPlainHttp)
    : exactHost(hostText, isPlainHttp);
  if (host === null) return null;
  const pathText = withoutTrailingSlashes(parts?.["path"] ?? "");
  const path = API_PATHS.has(pathText) ? "" : pathText;
  const shown = path === "" ? host.host : `${host.host}/${path}`;
  return { ...host, text: escaped(shown), path };
}

/**
 * The entry for a repository: of those that match, the one with the longest path, then with the
 * host itself rather than a glob, then with the longer glob, then the first.
 * @param registry as in a parsed reference, like `repository`
 */
export function mostSpecific<T extends { readonly key: DockerConfigKey }>(
  entries: readonly T[],
  registry: string,
  repository: string,
): T | null {
  let best: T | null = null;
  for (const entry of entries) {
    const { key } = entry;
    if (!key.isFor(registry) || !isUnder(key.path, repository)) continue;
    if (best === null || isMoreSpecific(key, best.key)) best = entry;
  }
  return best;
}

type Host = Pick<DockerConfigKey, "host" | "isGlob" | "isFor">;

function exactHost(text: string, isPlainHttp: IsPlainHttp): Host | null {
  const host = canonicalRegistry(text, isPlainHttp);
  if (host === null) return null;
  return { host, isGlob: false, isFor: (registry) => registry === host };
}

/** Label by label: a `*` never reaches over a dot, which would be another owner's name. */
function globHost(text: string, isPlainHttp: IsPlainHttp): Host | null {
  const { name, port } = splitPort(text);
  const globs = (name.endsWith(".") ? name.slice(0, -1) : name).split(".");
  if (!globs.every((glob) => glob !== "" && GLOB_LABEL.test(glob))) return null;
  return {
    host: `${globs.join(".")}${port}`,
    isGlob: true,
    isFor(registry) {
      const actualName = splitPort(registry).name;
      const labels = actualName.split(".");
      return (
        labels.length === globs.length &&
        globs.every((glob, i) => matchesLabel(glob, labels[i] ?? "")) &&
        // What the key says when it names the host instead of the glob.
        canonicalRegistry(`${actualName}${port}`, isPlainHttp) === registry
      );
    },
  };
}

function matchesLabel(glob: string, label: string): boolean {
  const star = glob.indexOf("*");
  if (star === -1) return glob === label;
  return (
    label.length >= glob.length - 1 &&
    label.startsWith(glob.slice(0, star)) &&
    label.endsWith(glob.slice(star + 1))
  );
}

/** By the reference parser, so that a key and a reference to one place cannot differ in spelling. */
function canonicalRegistry(
  text: string,
  isPlainHttp: IsPlainHttp,
): string | null {
  // A name alone would be read as a repository of Docker Hub.
  const isNameAlone = !/[.:]/u.test(text) && text !== "localhost";
  const defaultPort = isPlainHttp(text) ? "80" : "443";
  const named = isNameAlone ? `${text}:${defaultPort}` : text;
  const parsed = parseReference(`${named}/x`, isPlainHttp);
  return parsed.kind === "ok" ? parsed.value.registry : null;
}

/** `port` has its colon; "" = none. */
function splitPort(text: string): { name: string; port: string } {
  const { name = "", port } = HOST_AND_PORT.exec(text)?.groups ?? {};
  return { name, port: port === undefined ? "" : `:${port}` };
}

function isUnder(path: string, repository: string): boolean {
  return (
    path === "" || repository === path || repository.startsWith(`${path}/`)
  );
}

function isMoreSpecific(a: DockerConfigKey, b: DockerConfigKey): boolean {
  if (a.path.length !== b.path.length) return a.path.length > b.path.length;
  if (a.isGlob !== b.isGlob) return b.isGlob;
  return a.isGlob && a.host.length > b.host.length;
}

function withoutTrailingSlashes(text: string): string {
  let end = text.length;
  while (text[end - 1] === "/") end -= 1;
  return text.slice(0, end);
}
