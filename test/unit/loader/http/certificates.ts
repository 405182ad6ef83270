import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

/** PEM texts. */
export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

/** Makes certificate authorities, and certificates of theirs. */
export interface CertificateAuthorities {
  /** The certificate of a new authority. */
  authority(name: string): string;
  /** @param altNames as OpenSSL writes them: `DNS:localhost,IP:127.0.0.1` */
  leaf(options: { authority: string; altNames: string }): KeyPair;
  remove(): void;
}

export function createCertificateAuthorities(): CertificateAuthorities {
  const directory = mkdtempSync(path.join(tmpdir(), "function-wasm-ca-"));
  let leaves = 0;

  function create(name: string, ...options: string[]): KeyPair {
    execFileSync(
      "openssl",
      [
        ...["req", "-x509", "-nodes", "-newkey", "ec"],
        ...["-pkeyopt", "ec_paramgen_curve:prime256v1"],
        ...["-days", "2", "-subj", `/CN=${name}`],
        ...["-keyout", `${name}.key`, "-out", `${name}.crt`],
        ...options,
      ],
      { cwd: directory, stdio: "pipe" },
    );
    const read = (extension: string) =>
      readFileSync(path.join(directory, `${name}.${extension}`), "utf8");
    return { cert: read("crt"), key: read("key") };
  }

  return {
    authority: (name) => create(name).cert,
    leaf: ({ authority, altNames }) =>
      create(
        `leaf${(leaves += 1)}`,
        ...["-CA", `${authority}.crt`, "-CAkey", `${authority}.key`],
        ...["-addext", `subjectAltName=${altNames}`],
        ...["-addext", "basicConstraints=critical,CA:FALSE"],
      ),
    remove: () => rmSync(directory, { recursive: true }),
  };
}
