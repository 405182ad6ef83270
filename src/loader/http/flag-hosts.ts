import { quoted } from "../../errors.js";
import type { Parsed } from "../../ports.js";
import { parseHost } from "../host.js";

const HOST_AND_PORT = /^(?<host>\[[^\]]*\]|[^:[\]]*)(?::(?<port>.*))?$/u;
const PORT = /^[1-9][0-9]{0,4}$/u;
const MAX_PORT = 65_535;

/** A host that has certificate authorities of its own, and the file they are in. */
export interface RegistryCa {
  /** `host` or `host:port`, canonical. */
  readonly host: string;
  readonly file: string;
}

/** Reads `host[:port]`, one or more with commas between; hosts come out as parseHost writes them. */
export function parseInsecureHosts(text: string): Parsed<readonly string[]> {
  const hosts: string[] = [];
  for (const entry of text.split(",")) {
    const host = parseHostAndPort(entry.trim());
    if (host.kind === "error") return host;
    hosts.push(host.value);
  }
  return { kind: "ok", value: hosts };
}

/** Reads `host[:port]=path`, one or more with commas between, each host once. */
export function parseRegistryCas(text: string): Parsed<readonly RegistryCa[]> {
  const cas: RegistryCa[] = [];
  for (const entry of text.split(",")) {
    const { name, value: file } = splitAtEquals(entry.trim());
    if (file === "") return error(`no file for ${quoted(entry)}`);
    const host = parseHostAndPort(name);
    if (host.kind === "error") return host;
    if (cas.some((ca) => ca.host === host.value))
      return error(`${host.value} is there twice, put its CAs into one file`);
    cas.push({ host: host.value, file });
  }
  return { kind: "ok", value: cas };
}

/** Reads `host[:port]=host[:port]`, one or more with commas between: registries and their token servers. */
export function parseTokenServers(
  text: string,
): Parsed<ReadonlyMap<string, string>> {
  const servers = new Map<string, string>();
  for (const entry of text.split(",")) {
    const { name, value: server } = splitAtEquals(entry.trim());
    if (server === "") return error(`no token server for ${quoted(entry)}`);
    const registry = parseHostAndPort(name);
    if (registry.kind === "error") return registry;
    const host = parseHostAndPort(server);
    if (host.kind === "error") return host;
    if (servers.has(registry.value))
      return error(`${registry.value} is there twice`);
    servers.set(registry.value, host.value);
  }
  return { kind: "ok", value: servers };
}

function splitAtEquals(entry: string): { name: string; value: string } {
  const at = entry.indexOf("=");
  return at < 0
    ? { name: entry, value: "" }
    : { name: entry.slice(0, at), value: entry.slice(at + 1) };
}

function parseHostAndPort(text: string): Parsed<string> {
  if (text.includes("://")) return error(`${quoted(text)} has a scheme`);
  const parts = HOST_AND_PORT.exec(text)?.groups;
  if (text === "" || parts === undefined)
    return error(`${quoted(text)} is no host with a port`);
  const host = parseHost(parts["host"] ?? "");
  if (host.kind === "error") return host;
  const port = parts["port"];
  if (port === undefined) return host;
  if (!PORT.test(port) || Number(port) > MAX_PORT)
    return error(`port ${quoted(port)} is not from 1 to ${MAX_PORT}`);
  return { kind: "ok", value: `${host.value}:${port}` };
}

function error(message: string): { kind: "error"; message: string } {
  return { kind: "error", message };
}
