import { allowsPlainHttp } from "./http/authority.js";

/** Whom the operator trusts, and how they are spoken to. */
export interface SchemeOptions {
  /** `--insecure-registry`: each `host`, which is for every port, or `host:port`. */
  readonly insecureHosts: readonly string[];
  /** `--registry-ca`: hosts, or `host:port`, that have a certificate authority, and so TLS. */
  readonly registryCas: ReadonlyMap<string, string>;
  /** `--registry-token-server`: where a registry may have its credential sent to, by registry. */
  readonly tokenServers: ReadonlyMap<string, string>;
}

/**
 * Whether a registry, `host` or `host:port`, is spoken to in the clear: it is this very machine or
 * the operator named it, and he gave no certificate authority for it.
 */
export type IsPlainHttp = (authority: string) => boolean;

export function createIsPlainHttp({
  insecureHosts,
  registryCas,
}: Pick<SchemeOptions, "insecureHosts" | "registryCas">): IsPlainHttp {
  return (authority) => {
    const host = authority.replace(/:[0-9]+$/u, "");
    const hasCa = registryCas.has(host) || registryCas.has(authority);
    return !hasCa && allowsPlainHttp(authority, insecureHosts);
  };
}

/** Where the operator said nothing: this very machine, and no other. */
export const plainOnLoopback = createIsPlainHttp({
  insecureHosts: [],
  registryCas: new Map(),
});
