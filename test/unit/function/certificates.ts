import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * Certificates as Crossplane makes them: authority and leaves have one name and one serial number,
 * and no key identifiers.
 */
export interface CertificateMaker {
  readonly directory: string;
  /** Path of the new authority's certificate. */
  authority(
    name: string,
    options?: {
      /** Unlike Crossplane's. */
      subject?: string;
      /** Another certificate, whose key is its own, too. */
      keyOf?: string;
      /** Of its RSA key. */
      bits?: number;
    },
  ): string;
  leaf(options: {
    name: string;
    authority: string;
    usage: "clientAuth" | "serverAuth" | null;
    /** Unlike Crossplane's, so that OpenSSL can judge it by itself. */
    subject?: string;
    /** YYYYMMDD; as Crossplane's it begins now and ends ten years later. */
    from?: string;
    to?: string;
    /** Make it an authority, too (CA:TRUE). */
    isAuthority?: boolean;
    /** What its key may be used for; null = anything, so that only CA:FALSE keeps it from signing. */
    keyUsage?: string | null;
    /** Another certificate, whose key is its own, too. */
    keyOf?: string;
    /** Of its RSA key. */
    bits?: number;
    /** What is signed over. */
    hash?: "md5" | "sha1" | "sha256";
    /** How it is signed: RSASSA-PSS. */
    isPss?: boolean;
  }): { cert: string; key: string };
  remove(): void;
}

const tenYears = 3652;

// Without Crossplane's C=Earth: OpenSSL takes two letters only. test/clients/grpc-go has it.
const crossplane = "/ST=Earth/L=Earth/O=Crossplane/CN=Crossplane";

export function createCertificateMaker(): CertificateMaker {
  const directory = mkdtempSync(join(tmpdir(), "function-wasm-tls-"));
  const at = (name: string) => join(directory, name);
  const openssl = (...args: string[]) =>
    execFileSync("openssl", args, { cwd: directory, stdio: "pipe" });
  /** RSA in PKCS#1. */
  const makeKey = (name: string, bits: number, keyOf: string | undefined) => {
    if (keyOf !== undefined)
      copyFileSync(at(`${keyOf}.key`), at(`${name}.key`));
    else openssl("genrsa", "-traditional", "-out", `${name}.key`, String(bits));
  };

  return {
    directory,
    authority(name, { subject = crossplane, keyOf, bits = 2048 } = {}) {
      writeFileSync(
        at(`${name}.cnf`),
        `[req]
distinguished_name = dn
x509_extensions = ext
[dn]
[ext]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = none
authorityKeyIdentifier = none
`,
      );
      makeKey(name, bits, keyOf);
      openssl(
        ...["req", "-x509", "-key", `${name}.key`, "-days", String(tenYears)],
        ...["-subj", subject, "-set_serial", "2022"],
        ...["-config", `${name}.cnf`, "-out", `${name}.crt`],
      );
      return at(`${name}.crt`);
    },
    leaf({
      name,
      authority,
      usage,
      subject = crossplane,
      from = day(0),
      to = day(tenYears),
      isAuthority = false,
      keyOf,
      bits = 2048,
      hash = "sha256",
      isPss = false,
      keyUsage = `digitalSignature, keyEncipherment, dataEncipherment${isAuthority ? ", keyCertSign" : ""}`,
    }) {
      writeFileSync(at("index.txt"), "");
      writeFileSync(at("serial"), "07E6\n");
      writeFileSync(
        at(`${name}.cnf`),
        `[req]
distinguished_name = dn
[dn]
[ca]
default_ca = here
[here]
database = index.txt
serial = serial
new_certs_dir = .
default_md = ${hash}
policy = any
x509_extensions = ext
unique_subject = no
[any]
stateOrProvinceName = optional
localityName = optional
organizationName = optional
commonName = optional
[ext]
basicConstraints = critical, CA:${isAuthority ? "TRUE" : "FALSE"}
${keyUsage === null ? "" : `keyUsage = critical, ${keyUsage}`}
subjectKeyIdentifier = none
authorityKeyIdentifier = none
subjectAltName = DNS:localhost
${usage === null ? "" : `extendedKeyUsage = ${usage}`}
`,
      );
      makeKey(name, bits, keyOf);
      openssl(
        ...["req", "-new", "-key", `${name}.key`, "-subj", subject],
        ...["-config", `${name}.cnf`, "-out", `${name}.csr`],
      );
      openssl(
        ...["ca", "-batch", "-notext", "-config", `${name}.cnf`],
        ...["-cert", `${authority}.crt`, "-keyfile", `${authority}.key`],
        ...["-startdate", `${from}000000Z`, "-enddate", `${to}000000Z`],
        ...(isPss ? ["-sigopt", "rsa_padding_mode:pss"] : []),
        ...["-in", `${name}.csr`, "-out", `${name}.crt`],
      );
      return { cert: at(`${name}.crt`), key: at(`${name}.key`) };
    },
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}

/** A day from now, as YYYYMMDD. */
function day(fromNow: number): string {
  return new Date(Date.now() + fromNow * 86_400_000)
    .toISOString()
    .slice(0, 10)
    .replaceAll("-", "");
}
