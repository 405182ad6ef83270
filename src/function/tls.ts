import { constants, type X509Certificate } from "node:crypto";
import { createServer, type Server, type TLSSocket } from "node:tls";

import type { TlsIdentity } from "./tls-files.js";

/**
 * A TLS server that asks every client for a certificate. It does not judge it: whoever takes the
 * sockets of `secureConnection` calls {@link judgeClient} first.
 */
export function createTlsServer(identity: TlsIdentity): Server {
  return createServer({
    cert: identity.certificate,
    key: identity.privateKey,
    ca: identity.clientAuthorities.map(String),
    requestCert: true,
    // OpenSSL cannot judge Crossplane's certificates: see judgeClient.
    rejectUnauthorized: false,
    ALPNProtocols: ["h2"],
    minVersion: "TLSv1.2",
    handshakeTimeout: 10_000,
    // A resumed session would not show its certificate again.
    secureOptions: constants.SSL_OP_NO_TICKET,
  });
}

/** Whether a client may come in. */
export type ClientVerdict =
  | { readonly kind: "accepted" }
  | { readonly kind: "refused"; readonly reason: string };

/**
 * Judges the certificate a client has proved to own.
 *
 * Crossplane's authority gives itself and every leaf one name and one serial number, so OpenSSL
 * takes each leaf for self-signed and looks no further. Such a leaf is checked here: issued and
 * signed by an authority, both within their dates, and meant for clients.
 */
export function judgeClient(
  socket: Pick<
    TLSSocket,
    "authorizationError" | "authorized" | "getPeerX509Certificate"
  >,
  authorities: readonly X509Certificate[],
  nowMs: number,
): ClientVerdict {
  // Node calls a resumed session without a certificate authorized, so this comes first.
  const leaf = socket.getPeerX509Certificate();
  if (leaf === undefined) return refuse("no client certificate");
  // OpenSSL trusts whatever lies in ca.crt, even when it is shown as a leaf.
  if (leaf.ca) return refuse("client certificate is an authority's (CA:TRUE)");
  if (socket.authorized) {
    // A certificate without usages is good for any, as other clients and servers see it, too.
    const usages = usagesOf(leaf);
    return usages.length === 0 || usages.includes(clientAuth)
      ? { kind: "accepted" }
      : refuse(notForClients);
  }
  const error = String(socket.authorizationError);
  if (error !== "DEPTH_ZERO_SELF_SIGNED_CERT") {
    return refuse(`client certificate: ${error}`);
  }
  return judgeLeaf(leaf, authorities, nowMs);
}

const clientAuth = "1.3.6.1.5.5.7.3.2";

const notForClients =
  "client certificate is not meant for clients (clientAuth)";

function judgeLeaf(
  leaf: X509Certificate,
  authorities: readonly X509Certificate[],
  nowMs: number,
): ClientVerdict {
  const issuer = authorities.find((authority) => issued(authority, leaf));
  if (issuer === undefined) {
    return refuse("client certificate is signed by no authority of ca.crt");
  }
  if (!isWithinDates(leaf, nowMs)) {
    return refuse("client certificate is expired or not valid yet");
  }
  if (!isWithinDates(issuer, nowMs)) {
    return refuse("the authority in ca.crt is expired or not valid yet");
  }
  if (!usagesOf(leaf).includes(clientAuth)) return refuse(notForClients);
  return { kind: "accepted" };
}

function issued(authority: X509Certificate, leaf: X509Certificate): boolean {
  return (
    authority.ca &&
    leaf.checkIssued(authority) &&
    leaf.verify(authority.publicKey)
  );
}

/** Node calls the extended key usages `keyUsage`; without any it is undefined, whatever its type. */
function usagesOf(certificate: X509Certificate): readonly string[] {
  return [certificate.keyUsage].flat().filter(Boolean);
}

/** Dates that do not parse compare as false. */
function isWithinDates(certificate: X509Certificate, nowMs: number): boolean {
  return (
    Date.parse(certificate.validFrom) <= nowMs &&
    nowMs <= Date.parse(certificate.validTo)
  );
}

function refuse(reason: string): ClientVerdict {
  return { kind: "refused", reason };
}
