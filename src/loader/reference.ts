import { quoted } from "../errors.js";
import type { OciReference, Parsed } from "../ports.js";
import { parseDigest } from "./digest.js";
import { parseHost } from "./host.js";
import { type IsPlainHttp, plainOnLoopback } from "./registry-scheme.js";

const MAX_CHARS = 1024;
const MAX_REPOSITORY_CHARS = 255;
const MAX_PORT = 65_535;

const DOCKER_HUB = "index.docker.io";
const DOCKER_HUB_ALIASES = new Set([
  "docker.io",
  "registry-1.docker.io",
  "registry.hub.docker.com",
  DOCKER_HUB,
]);

/** What an Input is to have. */
export const PINNED_FORM = "registry/repository[:tag]@sha256:<64 hex digits>";
const SCHEME = /^[a-z][a-z0-9+.-]*:\/\//iu;
/** Everything the grammar uses; what is not here could mean something to a URL parser. */
const NOT_ALLOWED = /[^A-Za-z0-9._:/@[\]+-]/u;
const HOST_AND_PORT = /^(?<host>\[[^\]]*\]|[^:[\]]*)(?::(?<port>.*))?$/u;
const PORT = /^[1-9][0-9]{0,4}$/u;
/** One path component and the tag, by the OCI distribution specification. */
const COMPONENT = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$/u;
const TAG = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/u;

/**
 * Reads an OCI reference, `[registry/]repository[:tag][@sha256:…]`, the way Docker and
 * go-containerregistry do: the first component is a registry when it has a dot or a colon or is
 * `localhost`, else the registry is Docker Hub, whose own repositories lie in `library/`.
 *
 * Equal places come out equal: the host in lower case and without a trailing dot, the default port
 * gone, Docker Hub's other names as `index.docker.io`. User info, a query, a fragment, an escape, a
 * blank and everything else outside the grammar are refused, and the message repeats none of it.
 * @param form what messages say is expected
 */
export function parseReference(
  text: string,
  isPlainHttp: IsPlainHttp = plainOnLoopback,
  form = PINNED_FORM,
): Parsed<OciReference> {
  const problem = problemWith(text);
  if (problem !== undefined) return error(`${problem}, expected ${form}`);
  const [name = "", digestText] = text.split("@");
  const digest = digestText === undefined ? none : parseDigest(digestText);
  if (digest.kind === "error") return digest;

  const { registryText, rest } = splitRegistry(name);
  const registry =
    registryText === undefined
      ? dockerHub
      : parseRegistry(registryText, isPlainHttp);
  if (registry.kind === "error") return registry;

  const [path = "", ...tags] = rest.split(":");
  const tag = parseTag(tags);
  if (tag.kind === "error") return tag;
  const repository = parseRepository(path, registry.value);
  if (repository.kind === "error") return repository;

  const location = `${registry.value}/${repository.value}`;
  return ok({
    registry: registry.value,
    repository: repository.value,
    tag: tag.value,
    digest: digest.value,
    location,
    text: `${location}${prefixed(":", tag.value)}${prefixed("@", digest.value)}`,
  });
}

/** What can be told without taking the text apart. */
function problemWith(text: string): string | undefined {
  if (text.length > MAX_CHARS)
    return `the reference is ${text.length} characters long, at most ${MAX_CHARS} are allowed`;
  const scheme = SCHEME.exec(text)?.[0];
  if (scheme !== undefined) return `a reference has no ${quoted(scheme)}`;
  const character = NOT_ALLOWED.exec(text)?.[0];
  if (character !== undefined)
    return `a reference has no ${quoted(character)} in it`;
  const [, ...afterAt] = text.split("@");
  if (afterAt.length > 1 || afterAt.join("").includes("/"))
    return 'a reference has no user name or password, and one "@" at most';
  return undefined;
}

function splitRegistry(name: string): {
  registryText: string | undefined;
  rest: string;
} {
  const slash = name.indexOf("/");
  const first = name.slice(0, Math.max(slash, 0));
  return /[.:]/u.test(first) || first.toLowerCase() === "localhost"
    ? { registryText: first, rest: name.slice(slash + 1) }
    : { registryText: undefined, rest: name };
}

function parseRegistry(text: string, isPlainHttp: IsPlainHttp): Parsed<string> {
  const parts = HOST_AND_PORT.exec(text)?.groups;
  if (parts === undefined)
    return error(`registry ${quoted(text)}: expected a host and maybe a port`);
  const host = parseHost(parts["host"] ?? "");
  if (host.kind === "error") return error(`registry ${host.message}`);
  const port = parts["port"];
  if (port !== undefined && !(PORT.test(port) && Number(port) <= MAX_PORT))
    return error(`registry port ${quoted(port)}: expected 1 to ${MAX_PORT}`);

  const registry = withPort(host.value, port, isPlainHttp);
  return ok(DOCKER_HUB_ALIASES.has(registry) ? DOCKER_HUB : registry);
}

/**
 * The default port goes, which is 80 where a registry is spoken to in the clear: one place must not
 * have two names. A host without a dot keeps it, or its name would be read as part of a repository.
 */
function withPort(
  host: string,
  port: string | undefined,
  isPlainHttp: IsPlainHttp,
): string {
  const isNoRegistryAlone = !/[.:]/u.test(host) && host !== "localhost";
  const isPlain = isPlainHttp(host);
  const defaultPort = isPlain ? "80" : "443";
  const shown = port ?? defaultPort;
  const isDefault =
    shown === defaultPort && isPlainHttp(`${host}:${shown}`) === isPlain;
  return isDefault && !isNoRegistryAlone ? host : `${host}:${shown}`;
}

function parseRepository(path: string, registry: string): Parsed<string> {
  const components = path.split("/");
  for (const component of components) {
    if (COMPONENT.test(component)) continue;
    return error(
      component === ""
        ? "the repository, or a component of it, is empty"
        : `repository component ${quoted(component)}: expected lower-case letters and digits with ".", "_", "__" or "-" between them`,
    );
  }
  const isOfficial = registry === DOCKER_HUB && components.length === 1;
  const repository = isOfficial ? `library/${path}` : path;
  if (repository.length > MAX_REPOSITORY_CHARS) {
    return error(
      `the repository is ${repository.length} characters long, expected at most ${MAX_REPOSITORY_CHARS}`,
    );
  }
  return ok(repository);
}

/** @param texts what follows each colon after the repository */
function parseTag(texts: readonly string[]): Parsed<string | null> {
  if (texts.length === 0) return none;
  const text = texts.join(":");
  if (TAG.test(text)) return ok(text);
  return error(
    `tag ${quoted(text)}: expected a letter, a digit or "_", then up to 127 of these, "." and "-"`,
  );
}

function prefixed(prefix: string, text: string | null): string {
  return text === null ? "" : `${prefix}${text}`;
}

function ok<T>(value: T): Parsed<T> {
  return { kind: "ok", value };
}

function error(message: string): { kind: "error"; message: string } {
  return { kind: "error", message };
}

const none = ok(null);
const dockerHub = ok(DOCKER_HUB);
