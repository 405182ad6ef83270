import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * Certificates as Crossplane makes them: authority and leaves have one name and one serial number,
 * and no key identifiers.
 */
export interface CertificateMaker {
  readonly directory: string;
  /** Path of the new authority's certificate. */
  authority(name: string): string;
  leaf(options: {
    name: string;
    authority: string;
    usage: "clientAuth" | "serverAuth" | null;
    /** Unlike Crossplane's, so that OpenSSL can judge it by itself. */
    subject?: string;
    /** YYYYMMDD */
    from?: string;
    to?: string;
  }): { cert: string; key: string };
  remove(): void;
}

const crossplane = "/ST=Earth/L=Earth/O=Crossplane/CN=Crossplane";

export function createCertificateMaker(): CertificateMaker {
  const directory = mkdtempSync(join(tmpdir(), "function-wasm-tls-"));
  const at = (name: string) => join(directory, name);
  const openssl = (...args: string[]) =>
    execFileSync("openssl", args, { cwd: directory, stdio: "pipe" });

  return {
    directory,
    authority(name) {
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
      openssl(
        ...["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650"],
        ...[
          "-subj",
          crossplane,
          "-set_serial",
          "2022",
          "-config",
          `${name}.cnf`,
        ],
        ...["-keyout", `${name}.key`, "-out", `${name}.crt`],
      );
      return at(`${name}.crt`);
    },
    leaf({
      name,
      authority,
      usage,
      subject = crossplane,
      from = "20200101",
      to = "20990101",
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
default_md = sha256
policy = any
x509_extensions = ext
unique_subject = no
[any]
stateOrProvinceName = optional
localityName = optional
organizationName = optional
commonName = optional
[ext]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature, keyEncipherment, dataEncipherment
subjectKeyIdentifier = none
authorityKeyIdentifier = none
subjectAltName = DNS:localhost
${usage === null ? "" : `extendedKeyUsage = ${usage}`}
`,
      );
      openssl(
        ...["req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", subject],
        ...["-config", `${name}.cnf`],
        ...["-keyout", `${name}.key`, "-out", `${name}.csr`],
      );
      openssl(
        ...["ca", "-batch", "-notext", "-config", `${name}.cnf`],
        ...["-cert", `${authority}.crt`, "-keyfile", `${authority}.key`],
        ...["-startdate", `${from}000000Z`, "-enddate", `${to}000000Z`],
        ...["-in", `${name}.csr`, "-out", `${name}.crt`],
      );
      return { cert: at(`${name}.crt`), key: at(`${name}.key`) };
    },
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}
