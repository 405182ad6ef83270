import { isIP } from "node:net";
import { escaped } from "../../errors.js";
import type { Parsed } from "../../ports.js";
import { isLoopbackHost } from "../host.js";

/**
 * Registries whose token server is another host, over https on the default port. The others that
 * are widely used, such as ghcr.io, quay.io, gcr.io, *.pkg.dev, *.azurecr.io, public.ecr.aws and
 * registry.redhat.io, give out their tokens themselves.
 */
const TOKEN_SERVERS: ReadonlyMap<string, string> = new Map([
  // https://distribution.github.io/distribution/spec/auth/token/
  ["index.docker.io", "auth.docker.io"],
  // https://gitlab.com/jwt/auth, by GitLab's docs/spec/gitlab/ of its container registry
  ["registry.gitlab.com", "gitlab.com"],
  // https://api.digitalocean.com/v2/registry/auth
  ["registry.digitalocean.com", "api.digitalocean.com"],
]);

type AllowsPlainHttp = (authority: string) => boolean;

/**
 * The token server that a registry names, when the registry's credential may go there: the
 * registry's own host and port, or its known token server. A registry, or who speaks in its place,
 * could name any host and be sent the credential by us (CVE-2020-15157).
 * @param realm the `realm` of a Bearer challenge
 * @param registry as in an OciReference
 * @param tokenServers those that the operator named, by registry; each `host` or `host:port`
 */
export function admitRealm(
  realm: string,
  registry: string,
  allowsPlainHttp: AllowsPlainHttp,
  tokenServers: ReadonlyMap<string, string> = new Map(),
): Parsed<URL> {
  const url = parseRealm(realm, registry);
  if (url.kind === "error") return url;
  const { protocol, host } = url.value;
  const isKnownPair =
    protocol === "https:" &&
    (TOKEN_SERVERS.get(registry) === host ||
      tokenServers.get(registry) === host);
  return isKnownPair || isRegistryUrl(url.value, registry, allowsPlainHttp)
    ? url
    : refused(registry, url.value);
}

/**
 * As {@link admitRealm}, for a request without any credential: every named https server will do,
 * for nothing secret goes there. Its answers are not to be repeated: it may be one that only this
 * machine can reach.
 */
export function admitAnonymousRealm(
  realm: string,
  registry: string,
): Parsed<URL> {
  const url = parseRealm(realm, registry);
  if (url.kind === "error") return url;
  const { protocol, hostname } = url.value;
  const isNamed =
    !isLoopbackHost(hostname) &&
    !hostname.startsWith("[") &&
    isIP(hostname) === 0;
  return protocol === "https:" && isNamed ? url : refused(registry, url.value);
}

/**
 * Whether a URL is on a registry's own host and port, and so safe that the registry's credential
 * can go there.
 */
export function isRegistryUrl(
  url: URL,
  registry: string,
  allowsPlainHttp: AllowsPlainHttp,
): boolean {
  const isPlain = allowsPlainHttp(registry);
  if (url.protocol !== "https:" && !isPlain) return false;
  // What a reference leaves out is port 80 on loopback, unless that has TLS.
  const isPort80 = isPlain && isLoopbackHost(registry);
  const authority = isPort80 ? `${registry}:80` : registry;
  return url.host === new URL(`${url.protocol}//${authority}`).host;
}

function parseRealm(realm: string, registry: string): Parsed<URL> {
  const url = URL.canParse(realm) ? new URL(realm) : undefined;
  if (url === undefined || !/^https?:$/u.test(url.protocol)) {
    return error(
      `${registry} sends for tokens to a realm that is no http or https URL`,
    );
  }
  // A `#` alone leaves no trace in the parts of a URL.
  if (url.username !== "" || url.password !== "" || realm.includes("#")) {
    return error(
      `${registry} sends for tokens to ${serverOf(url)} by a URL with user info or a fragment`,
    );
  }
  return { kind: "ok", value: url };
}

function refused(registry: string, url: URL) {
  return error(
    `${registry} sends for tokens to ${serverOf(url)}, which is not known to be its token server (--registry-token-server)`,
  );
}

function serverOf({ protocol, host }: URL): string {
  return escaped(`${protocol}//${host}`, 200);
}

function error(message: string): { kind: "error"; message: string } {
  return { kind: "error", message };
}
