import { constants, type X509Certificate } from "node:crypto";
import { createServer, type Server, type TLSSocket } from "node:tls";

import type { ClientRefusal } from "../ports.js";
import { isWithinDates } from "./certificate-dates.js";
import { isSignedOverBrokenHash } from "./certificate-der.js";
import type { TlsIdentity } from "./tls-files.js";
import type { Refusal } from "./tls-refusal.js";

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
  | { readonly kind: "refused"; readonly refusal: Refusal };

/**
 * Judges the certificate a client has proved to own.
 *
 * Crossplane's authority gives itself and every leaf one name and one serial number, so OpenSSL
 * takes each leaf for self-signed and looks no further. Such a leaf is checked here: issued and
 * signed by an authority, both within their dates and with keys that are long enough, and meant for
 * clients.
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
  if (leaf === undefined)
    return refuse("no-certificate", "no client certificate");
  // OpenSSL trusts whatever lies in ca.crt, even when it is shown as a leaf.
  if (leaf.ca) {
    return refuse(
      "not-for-clients",
      "client certificate is an authority's (CA:TRUE)",
    );
  }
  if (socket.authorized) {
    // A certificate without usages is good for any, as other clients and servers see it, too.
    const usages = usagesOf(leaf);
    if (usages.length > 0 && !usages.includes(clientAuth)) {
      return refuseUsages();
    }
    return hasShortKey(leaf) ? refuseShortKey() : { kind: "accepted" };
  }
  const error = String(socket.authorizationError);
  if (error !== "DEPTH_ZERO_SELF_SIGNED_CERT") {
    const kind = opensslRefusals.get(error) ?? "untrusted";
    return refuse(kind, `client certificate: ${error}`);
  }
  return judgeLeaf(leaf, authorities, nowMs);
}

const clientAuth = "1.3.6.1.5.5.7.3.2";

/** OpenSSL's verdicts that say something else than that no authority vouches for a certificate. */
const opensslRefusals: ReadonlyMap<string, ClientRefusal> = new Map([
  ["CERT_HAS_EXPIRED", "expired"],
  ["CERT_NOT_YET_VALID", "expired"],
  ["INVALID_PURPOSE", "not-for-clients"],
]);

function judgeLeaf(
  leaf: X509Certificate,
  authorities: readonly X509Certificate[],
  nowMs: number,
): ClientVerdict {
  // An authority may have renewed its certificate, with the same key.
  const issuers = authorities.filter((authority) => issued(authority, leaf));
  const [issuer] = issuers;
  if (issuer === undefined) {
    return refuse(
      "untrusted",
      "client certificate is signed by no authority of ca.crt",
    );
  }
  if (!isWithinDates(leaf, nowMs)) {
    return refuse("expired", "client certificate is expired or not valid yet");
  }
  if (!issuers.some((each) => isWithinDates(each, nowMs))) {
    return refuse(
      "expired",
      "the authority in ca.crt is expired or not valid yet",
    );
  }
  if (!usagesOf(leaf).includes(clientAuth)) return refuseUsages();
  // The rest OpenSSL would check by its security level, which depends on its version.
  if (hasShortKey(leaf)) return refuseShortKey();
  if (hasShortKey(issuer)) {
    return refuse(
      "untrusted",
      "the authority in ca.crt has a key of less than 2048 bits (RSA)",
    );
  }
  if (isSignedOverBrokenHash(leaf)) {
    return refuse(
      "untrusted",
      "client certificate is signed over MD5 or SHA-1",
    );
  }
  return { kind: "accepted" };
}

/**
 * The leaf names the authority, and is signed with its key. `checkIssued` comes first: it is false
 * for an authority whose key OpenSSL cannot read, of which `publicKey` throws.
 */
function issued(authority: X509Certificate, leaf: X509Certificate): boolean {
  return (
    authority.ca &&
    leaf.checkIssued(authority) &&
    leaf.verify(authority.publicKey)
  );
}

/** Of RSA and DSA keys; those of curves have no modulus. */
const minModulusBits = 2048;

/** OpenSSL has read the keys of whoever gets this far. */
function hasShortKey({ publicKey }: X509Certificate): boolean {
  const { modulusLength = minModulusBits } =
    publicKey.asymmetricKeyDetails ?? {};
  return modulusLength < minModulusBits;
}

/** Node calls the extended key usages `keyUsage`; without any it is undefined, whatever its type. */
function usagesOf(certificate: X509Certificate): readonly string[] {
  return [certificate.keyUsage].flat().filter(Boolean);
}

function refuseUsages(): ClientVerdict {
  return refuse(
    "not-for-clients",
    "client certificate is not meant for clients (clientAuth)",
  );
}

function refuseShortKey(): ClientVerdict {
  return refuse(
    "untrusted",
    "client certificate has a key of less than 2048 bits (RSA)",
  );
}

function refuse(kind: ClientRefusal, reason: string): ClientVerdict {
  return { kind: "refused", refusal: { kind, reason } };
}
