import { execFileSync } from "node:child_process";
import { createPrivateKey, X509Certificate } from "node:crypto";
import {
  appendFileSync,
  copyFileSync,
  mkdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";

import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";

import { FunctionError } from "../../../src/function/error.js";
import {
  parseTlsIdentity,
  readTlsFiles,
} from "../../../src/function/tls-files.js";
import { missingTool } from "../../support/tools.js";
import { createCertificateMaker } from "./certificates.js";

/** As long as OpenSSL lets it be. 150 of them take 75 bytes each, and 6 around them all. */
const unit = "u".repeat(64);
const noKey =
  /^tls\.key of .*: expected an unencrypted private key in PEM \(error:.*\)$/;

const maker = createCertificateMaker();
const made = (file: string) => join(maker.directory, file);
const directory = made("certs");
const at = (file: string) => join(directory, file);

describe.skipIf(missingTool("openssl"))("function/tls-files", () => {
  beforeAll(() => {
    maker.authority("ca");
    maker.authority("second");
    for (const name of ["server", "other"]) {
      maker.leaf({ name, authority: "ca", usage: "serverAuth" });
    }
    const rest = [
      { name: "expired", to: "20210101" },
      { name: "not-yet", from: "20980101", to: "20990101" },
      { name: "january-2040", from: "20400101", to: "20400131" },
      { name: "old-ca", isAuthority: true, to: "20210101" },
      { name: "of-2040", isAuthority: true, to: "20500101" },
    ];
    for (const leaf of rest) {
      maker.leaf({ authority: "ca", usage: "serverAuth", ...leaf });
    }
    maker.authority("long-name", { subject: `/OU=${unit}`.repeat(150) });
    execFileSync(
      "openssl",
      [
        ...["req", "-x509", "-newkey", "rsa:512", "-nodes", "-subj", "/CN=a"],
        ...["-keyout", "weak.key", "-out", "weak.crt"],
      ],
      { cwd: maker.directory, stdio: "pipe" },
    );
  });
  afterAll(() => maker.remove());

  beforeEach(() => {
    rmSync(directory, { recursive: true, force: true });
    mkdirSync(directory);
    copyFileSync(made("server.crt"), at("tls.crt"));
    copyFileSync(made("server.key"), at("tls.key"));
    writeFileSync(
      at("ca.crt"),
      `# ours\n${readFileSync(made("ca.crt"), "utf8")}\n# the next\n${readFileSync(made("second.crt"), "utf8")}`,
    );
  });

  const read = async (nowMs = Date.now()) =>
    parseTlsIdentity(await readTlsFiles(directory), nowMs);

  const copyLeaf = (name: string) => {
    copyFileSync(made(`${name}.crt`), at("tls.crt"));
    copyFileSync(made(`${name}.key`), at("tls.key"));
  };

  const writeAuthorities = (...names: string[]) => {
    const bundle = names.map((name) => readFileSync(made(`${name}.crt`)));
    writeFileSync(at("ca.crt"), Buffer.concat(bundle));
  };

  it("reads the leaf and every authority", async () => {
    const identity = await read();

    expect(identity.leaf.toString()).toBe(
      readFileSync(made("server.crt"), "utf8"),
    );
    expect(identity.clientAuthorities.map(String)).toEqual([
      readFileSync(made("ca.crt"), "utf8"),
      readFileSync(made("second.crt"), "utf8"),
    ]);
  });

  it.each(["tls.crt", "tls.key", "ca.crt"])(
    "has another fingerprint when %s has other bytes",
    async (name) => {
      const before = await readTlsFiles(directory);
      const again = await readTlsFiles(directory);

      appendFileSync(at(name), "\n");

      expect(again.fingerprint).toBe(before.fingerprint);
      expect((await readTlsFiles(directory)).fingerprint).not.toBe(
        before.fingerprint,
      );
    },
  );

  it.each([
    {
      name: "a file that is not there",
      change: () => rmSync(at("tls.crt")),
      want: "cannot read tls.crt of --tls-certs-dir (TLS_SERVER_CERTS_DIR): ENOENT",
    },
    {
      name: "a directory",
      change: () => {
        rmSync(at("ca.crt"));
        mkdirSync(at("ca.crt"));
      },
      want: "cannot read ca.crt of --tls-certs-dir (TLS_SERVER_CERTS_DIR): expected a regular file",
    },
    {
      name: "a pipe that nobody writes to",
      change: () => {
        rmSync(at("tls.key"));
        execFileSync("mkfifo", [at("tls.key")]);
      },
      want: "cannot read tls.key of --tls-certs-dir (TLS_SERVER_CERTS_DIR): expected a regular file",
    },
    {
      name: "a file without end",
      change: () => truncateSync(at("ca.crt"), 1024 * 1024 + 1),
      want: "cannot read ca.crt of --tls-certs-dir (TLS_SERVER_CERTS_DIR): expected at most 1048576 bytes, got 1048577",
    },
    {
      name: "no certificate in tls.crt",
      change: () => writeFileSync(at("tls.crt"), "no"),
      want: /^tls\.crt of .*: expected a certificate in PEM \(error:.*\)$/,
    },
    {
      name: "a certificate in DER in tls.crt",
      change: () =>
        writeFileSync(
          at("tls.crt"),
          new X509Certificate(readFileSync(at("tls.crt"))).raw,
        ),
      want: /^tls\.crt of .*: expected certificates in PEM that OpenSSL serves \(error:.*no start line\)$/,
    },
    {
      name: "half a chain in tls.crt",
      change: () =>
        appendFileSync(
          at("tls.crt"),
          readFileSync(made("ca.crt")).subarray(0, 400),
        ),
      want: /^tls\.crt of .*: expected certificates in PEM that OpenSSL serves \(error:.*\)$/,
    },
    {
      name: "no key in tls.key",
      change: () => writeFileSync(at("tls.key"), "no"),
      want: noKey,
    },
    {
      name: "an empty tls.key",
      change: () => writeFileSync(at("tls.key"), ""),
      want: noKey,
    },
    {
      name: "an encrypted key",
      change: () =>
        writeFileSync(
          at("tls.key"),
          createPrivateKey(readFileSync(at("tls.key"))).export({
            type: "pkcs8",
            format: "pem",
            cipher: "aes-256-cbc",
            passphrase: "secret",
          }),
        ),
      want: noKey,
    },
    {
      name: "a key in DER",
      change: () =>
        writeFileSync(
          at("tls.key"),
          createPrivateKey(readFileSync(at("tls.key"))).export({
            type: "pkcs8",
            format: "der",
          }),
        ),
      want: noKey,
    },
    {
      name: "a key of another certificate",
      change: () => copyFileSync(made("other.key"), at("tls.key")),
      want: "tls.key is not the key of tls.crt",
    },
    {
      name: "a key that OpenSSL would not serve",
      change: () => {
        copyLeaf("weak");
      },
      want: /^tls\.crt of .*: expected certificates in PEM that OpenSSL serves \(.*ee key too small\)$/,
    },
    {
      name: "no certificate in ca.crt",
      change: () => writeFileSync(at("ca.crt"), "no"),
      want: "ca.crt of --tls-certs-dir (TLS_SERVER_CERTS_DIR): expected certificates in PEM, got none",
    },
    {
      name: "a broken certificate in ca.crt",
      change: () =>
        writeFileSync(
          at("ca.crt"),
          "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ),
      want: /^ca\.crt of .*: expected certificates in PEM \(error:.*\)$/,
    },
    {
      name: "a ca.crt that ends within its second certificate",
      change: () =>
        truncateSync(at("ca.crt"), readFileSync(at("ca.crt")).length - 100),
      want: "ca.crt of --tls-certs-dir (TLS_SERVER_CERTS_DIR): expected whole certificates in PEM, got one without an end",
    },
    {
      name: "a certificate that has expired",
      change: () => copyLeaf("expired"),
      want: /^tls\.crt of .*: expected a certificate that is valid now, got one from 20\S+Z to 2021-01-01T00:00:00\.000Z$/,
    },
    {
      name: "a certificate that begins in years",
      change: () => copyLeaf("not-yet"),
      want: /^tls\.crt of .*: expected a certificate that is valid now, got one from 2098-01-01T00:00:00\.000Z to 2099-\S+Z$/,
    },
    {
      name: "certificates that are no authority's in ca.crt",
      change: () => writeAuthorities("server", "other"),
      want: /^ca\.crt of .*: expected the certificate of an authority \(CA:TRUE\), got 2 of others$/,
    },
    {
      name: "authorities of which none is valid",
      change: () => writeAuthorities("old-ca", "server", "old-ca"),
      want: /^ca\.crt of .*: expected an authority that is valid now, got 2, the first from 20\S+Z to 2021-01-01T00:00:00\.000Z$/,
    },
    {
      name: "more names than fit into a handshake",
      change: () =>
        writeAuthorities("ca", ...new Array<string>(6).fill("long-name")),
      want: /^ca\.crt of .*: expected authorities whose subjects take at most 60000 bytes together, got 67614 in 7$/,
    },
  ])("refuses $name", async ({ change, want }) => {
    change();

    const refused = read();

    await expect(refused).rejects.toThrow(FunctionError);
    await expect(refused).rejects.toThrow(want);
    await expect(refused).rejects.toThrow(
      "--tls-certs-dir (TLS_SERVER_CERTS_DIR): ",
    );
    await expect(refused).rejects.not.toThrow("PRIVATE KEY");
  });

  it.each([
    { name: "at its end", nowMs: Date.UTC(2040, 0, 31), isGood: true },
    { name: "after it", nowMs: Date.UTC(2040, 0, 31) + 1, isGood: false },
    {
      name: "5 minutes before its beginning, by our clock",
      nowMs: Date.UTC(2040, 0, 1) - 300_000,
      isGood: true,
    },
    {
      name: "before that",
      nowMs: Date.UTC(2040, 0, 1) - 300_001,
      isGood: false,
    },
  ])("looks at the dates of tls.crt: $name", async ({ nowMs, isGood }) => {
    copyLeaf("january-2040");
    writeAuthorities("of-2040");

    const reading = read(nowMs);

    await (isGood
      ? expect(reading).resolves.toBeDefined()
      : expect(reading).rejects.toThrow("a certificate that is valid now"));
  });

  it.each([
    { name: "one that is not valid", names: ["old-ca", "ca"] },
    { name: "what is no authority's", names: ["server", "ca"] },
    {
      name: "56,358 bytes of names",
      names: ["ca", ...new Array<string>(5).fill("long-name")],
    },
  ])("takes $name beside an authority", async ({ names }) => {
    writeAuthorities(...names);

    expect((await read()).clientAuthorities).toHaveLength(names.length);
  });
});
