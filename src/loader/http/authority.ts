import { isLoopbackHost } from "../host.js";

const AUTHORITY = /^(?<host>\[[^\]]*\]|[^:]*)(?::(?<port>[0-9]+))?$/u;

/** What messages call the server of a URL: its host, and its port unless that is the default. */
export function hostOf(url: URL): string {
  return url.host;
}

/**
 * Whether a server may be spoken to in the clear: it is this very machine, or the operator named it.
 * @param authority `host` or `host:port`, as parseHost writes the host; no port is port 80
 * @param insecureHosts each `host`, which is for every port, or `host:port`
 */
export function allowsPlainHttp(
  authority: string,
  insecureHosts: readonly string[],
): boolean {
  const parts = AUTHORITY.exec(authority)?.groups;
  const host = parts?.["host"];
  if (host === undefined) return false;
  const port = parts?.["port"] ?? "80";
  return (
    isLoopbackHost(host) ||
    insecureHosts.includes(host) ||
    insecureHosts.includes(`${host}:${port}`)
  );
}

/** What is set for the server of a URL: by `host:port` if there is that, else by `host`. */
export function settingFor<T>(
  url: URL,
  settings: ReadonlyMap<string, T>,
): T | undefined {
  const defaultPort = url.protocol === "http:" ? "80" : "443";
  const port = url.port === "" ? defaultPort : url.port;
  return settings.get(`${url.hostname}:${port}`) ?? settings.get(url.hostname);
}
