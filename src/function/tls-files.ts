import { createHash, createPrivateKey, X509Certificate } from "node:crypto";
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { createSecureContext } from "node:tls";

import { errorText } from "../errors.js";
import { FunctionError } from "./error.js";
import { whyUnusable } from "./tls-usable.js";

/** What the server shows of itself, and whose clients it accepts: one set, never mixed with another. */
export interface TlsIdentity {
  /** PEM. */
  readonly certificate: Buffer;
  /** PEM. */
  readonly privateKey: Buffer;
  /** The first certificate of `certificate`. */
  readonly leaf: X509Certificate;
  readonly clientAuthorities: readonly X509Certificate[];
}

/** The three files of a directory as they were found. */
export interface TlsFiles {
  readonly directory: string;
  readonly certificate: Buffer;
  readonly privateKey: Buffer;
  readonly authorities: Buffer;
  /** Equal for files with the same bytes. */
  readonly fingerprint: string;
}

/** A certificate takes some KB; a hundred authorities fit. */
const maxFileBytes = 1024 * 1024;

/**
 * Reads `tls.crt`, `tls.key` and `ca.crt` of `directory`, whatever they hold.
 * @throws FunctionError start-refused
 */
export async function readTlsFiles(directory: string): Promise<TlsFiles> {
  const certificate = await readBounded(directory, "tls.crt");
  const privateKey = await readBounded(directory, "tls.key");
  const authorities = await readBounded(directory, "ca.crt");
  const fingerprint = [certificate, privateKey, authorities]
    .map((bytes) => createHash("sha256").update(bytes).digest("hex"))
    .join();
  return { directory, certificate, privateKey, authorities, fingerprint };
}

/**
 * What the files say, when all of it can be used at `nowMs`.
 * @throws FunctionError start-refused
 */
export function parseTlsIdentity(files: TlsFiles, nowMs: number): TlsIdentity {
  const { directory, certificate, privateKey } = files;
  const leaf = parsed("tls.crt", "expected a certificate in PEM", () => {
    return new X509Certificate(certificate);
  });
  const key = parsed(
    "tls.key",
    "expected an unencrypted private key in PEM",
    () => createPrivateKey(privateKey),
  );
  if (!leaf.checkPrivateKey(key)) {
    throw refused(
      `--tls-certs-dir (TLS_SERVER_CERTS_DIR): ${directory}: tls.key is not the key of tls.crt`,
    );
  }
  // What OpenSSL would not serve, such as a key that is too short, shows here and not per connection.
  parsed("tls.crt", "expected certificates in PEM that OpenSSL serves", () =>
    createSecureContext({ cert: certificate, key: privateKey }),
  );
  const clientAuthorities = parseAuthorities(files.authorities);
  const unusable = whyUnusable(leaf, clientAuthorities, nowMs);
  if (unusable !== null) throw refusedFile(unusable.file, unusable.reason);
  return { certificate, privateKey, leaf, clientAuthorities };
}

function parseAuthorities(pem: Buffer): readonly X509Certificate[] {
  const blocks = splitPem(pem);
  if (blocks === null) {
    throw refusedFile(
      "ca.crt",
      "expected whole certificates in PEM, got one without an end",
    );
  }
  if (blocks.length === 0) {
    throw refusedFile("ca.crt", "expected certificates in PEM, got none");
  }
  return parsed("ca.crt", "expected certificates in PEM", () =>
    blocks.map((block) => new X509Certificate(block)),
  );
}

async function readBounded(directory: string, name: string): Promise<Buffer> {
  try {
    // Never waits for a FIFO's writer.
    const flags = constants.O_RDONLY | constants.O_NONBLOCK;
    const handle = await open(join(directory, name), flags);
    try {
      const stats = await handle.stat();
      if (!stats.isFile()) throw new Error("expected a regular file");
      if (stats.size > maxFileBytes) {
        throw new Error(
          `expected at most ${maxFileBytes} bytes, got ${stats.size}`,
        );
      }
      return await handle.readFile();
    } finally {
      await handle.close();
    }
  } catch (cause) {
    throw refused(
      `cannot read ${name} of --tls-certs-dir (TLS_SERVER_CERTS_DIR): ${errorText(cause)}`,
      cause,
    );
  }
}

function parsed<T>(name: string, expected: string, parse: () => T): T {
  try {
    return parse();
  } catch (cause) {
    // OpenSSL's words alone say what its decoder did, and not what is wrong.
    throw refusedFile(name, `${expected} (${errorText(cause)})`, cause);
  }
}

const blockStart = "-----BEGIN CERTIFICATE-----";

/**
 * A PEM file may hold several certificates; only the first of them would be read as one.
 * Null = one has no end: half a file must not pass for a shorter list.
 */
function splitPem(pem: Buffer): string[] | null {
  const text = pem.toString("latin1");
  const block = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
  const blocks = text.match(block) ?? [];
  return blocks.length === text.split(blockStart).length - 1 ? blocks : null;
}

function refusedFile(
  name: string,
  reason: string,
  cause?: unknown,
): FunctionError {
  return refused(
    `${name} of --tls-certs-dir (TLS_SERVER_CERTS_DIR): ${reason}`,
    cause,
  );
}

function refused(message: string, cause?: unknown): FunctionError {
  return new FunctionError("start-refused", message, { cause });
}
