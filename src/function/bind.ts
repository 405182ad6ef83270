import { once } from "node:events";
import type { AddressInfo, Server } from "node:net";

import { errorText } from "../errors.js";
import { FunctionError } from "./error.js";

/** Where to listen. */
export interface ListenAddress {
  /** `null` = every address, IPv6 and IPv4. */
  readonly host: string | null;
  /** 0 = one that is free. */
  readonly port: number;
}

/**
 * Makes `server` listen on `address`, which the operator gave as `flag`, and returns host and the
 * port really chosen, such as `[::]:9443`.
 * @throws FunctionError start-refused
 */
export async function bind(
  server: Server,
  address: ListenAddress,
  flag: string,
): Promise<string> {
  const { host, port } = address;
  try {
    await (host === null
      ? bindEverywhere(server, port)
      : bindHost(server, host, port));
  } catch (cause) {
    const message = `cannot listen on ${flag} ${host ?? ""}:${port}: ${errorText(cause)}`;
    throw new FunctionError("start-refused", message, { cause });
  }
  return addressText(server.address());
}

async function bindEverywhere(server: Server, port: number): Promise<void> {
  try {
    await bindHost(server, "::", port);
  } catch (thrown) {
    if (!isWithoutIpv6(thrown)) throw thrown;
    await bindHost(server, "0.0.0.0", port);
  }
}

/** `once` rejects when the server emits `error` first. */
async function bindHost(
  server: Server,
  host: string,
  port: number,
): Promise<void> {
  server.listen({ host, port, backlog: 511 });
  await once(server, "listening");
}

function isWithoutIpv6(thrown: unknown): boolean {
  const code = (thrown as NodeJS.ErrnoException).code;
  return code === "EAFNOSUPPORT" || code === "EADDRNOTAVAIL";
}

function addressText(address: AddressInfo | string | null): string {
  if (address === null || typeof address === "string") return address ?? "";
  const { family, address: host, port } = address;
  return family === "IPv6" ? `[${host}]:${port}` : `${host}:${port}`;
}
