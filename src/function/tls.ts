import { constants, createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createServer, type Server, type TLSSocket } from "node:tls";

import { errorText } from "../errors.js";
import { FunctionError } from "./error.js";

/** What the server shows of itself, and whose clients it accepts. */
export interface TlsIdentity {
  /** PEM. */
  readonly certificate: Buffer;
  /** PEM. */
  readonly privateKey: Buffer;
  readonly clientAuthorities: readonly X509Certificate[];
}

/**
 * Reads `tls.crt`, `tls.key` and `ca.crt` of `directory`.
 * @throws FunctionError start-refused
 */
export function readTlsIdentity(directory: string): TlsIdentity {
  const certificate = readPem(directory, "tls.crt");
  const privateKey = readPem(directory, "tls.key");
  const authorities = readPem(directory, "ca.crt");
  const leaf = parsePem(directory, "tls.crt", () => {
    return new X509Certificate(certificate);
  });
  const key = parsePem(directory, "tls.key", () => {
    return createPrivateKey(privateKey);
  });
  if (!leaf.checkPrivateKey(key)) {
    throw refused(`${directory}: tls.key is not the key of tls.crt`);
  }
  const clientAuthorities = parsePem(directory, "ca.crt", () => {
    return splitPem(authorities).map((block) => new X509Certificate(block));
  });
  if (clientAuthorities.length === 0) {
    throw refused(`${join(directory, "ca.crt")}: expected a certificate`);
  }
  return { certificate, privateKey, clientAuthorities };
}

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
  if (socket.authorized) return { kind: "accepted" };
  const error = String(socket.authorizationError);
  if (error !== "DEPTH_ZERO_SELF_SIGNED_CERT") {
    return refuse(`client certificate: ${error}`);
  }
  return judgeLeaf(leaf, authorities, nowMs);
}

const clientAuth = "1.3.6.1.5.5.7.3.2";

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
  // Node calls the extended key usages `keyUsage`; without any it is undefined, whatever its type.
  if (![leaf.keyUsage].flat().includes(clientAuth)) {
    return refuse("client certificate is not meant for clients (clientAuth)");
  }
  return { kind: "accepted" };
}

function issued(authority: X509Certificate, leaf: X509Certificate): boolean {
  return (
    authority.ca &&
    leaf.checkIssued(authority) &&
    leaf.verify(authority.publicKey)
  );
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

function readPem(directory: string, name: string): Buffer {
  try {
    return readFileSync(join(directory, name));
  } catch (cause) {
    throw refused(
      `cannot read ${name} of --tls-certs-dir: ${errorText(cause)}`,
      cause,
    );
  }
}

function parsePem<T>(directory: string, name: string, parse: () => T): T {
  try {
    return parse();
  } catch (cause) {
    throw refused(`${join(directory, name)}: ${errorText(cause)}`, cause);
  }
}

/** A PEM file may hold several certificates; only the first of them would be read as one. */
function splitPem(pem: Buffer): string[] {
  const block = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
  return pem.toString("latin1").match(block) ?? [];
}

function refused(message: string, cause?: unknown): FunctionError {
  return new FunctionError("start-refused", message, { cause });
}
