import { execFileSync } from "node:child_process";
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

  const read = async () => parseTlsIdentity(await readTlsFiles(directory));

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
      want: "cannot read tls.crt of --tls-certs-dir: ENOENT",
    },
    {
      name: "a directory",
      change: () => {
        rmSync(at("ca.crt"));
        mkdirSync(at("ca.crt"));
      },
      want: "cannot read ca.crt of --tls-certs-dir: expected a regular file",
    },
    {
      name: "a pipe that nobody writes to",
      change: () => {
        rmSync(at("tls.key"));
        execFileSync("mkfifo", [at("tls.key")]);
      },
      want: "cannot read tls.key of --tls-certs-dir: expected a regular file",
    },
    {
      name: "a file without end",
      change: () => truncateSync(at("ca.crt"), 1024 * 1024 + 1),
      want: "cannot read ca.crt of --tls-certs-dir: expected at most 1048576 bytes, got 1048577",
    },
    {
      name: "no certificate in tls.crt",
      change: () => writeFileSync(at("tls.crt"), "no"),
      want: "tls.crt: ",
    },
    {
      name: "half a chain in tls.crt",
      change: () =>
        appendFileSync(
          at("tls.crt"),
          readFileSync(made("ca.crt")).subarray(0, 400),
        ),
      want: "tls.crt: ",
    },
    {
      name: "no key in tls.key",
      change: () => writeFileSync(at("tls.key"), "no"),
      want: "tls.key: ",
    },
    {
      name: "a key of another certificate",
      change: () => copyFileSync(made("other.key"), at("tls.key")),
      want: "tls.key is not the key of tls.crt",
    },
    {
      name: "a key that OpenSSL would not serve",
      change: () => {
        copyFileSync(made("weak.crt"), at("tls.crt"));
        copyFileSync(made("weak.key"), at("tls.key"));
      },
      want: "ee key too small",
    },
    {
      name: "no certificate in ca.crt",
      change: () => writeFileSync(at("ca.crt"), "no"),
      want: "ca.crt: expected a certificate",
    },
    {
      name: "a broken certificate in ca.crt",
      change: () =>
        writeFileSync(
          at("ca.crt"),
          "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ),
      want: "ca.crt: ",
    },
    {
      name: "a ca.crt that ends within its second certificate",
      change: () =>
        truncateSync(at("ca.crt"), readFileSync(at("ca.crt")).length - 100),
      want: "ca.crt: a certificate has no end",
    },
  ])("refuses $name", async ({ change, want }) => {
    change();

    const refused = read();

    await expect(refused).rejects.toThrow(FunctionError);
    await expect(refused).rejects.toThrow(want);
    await expect(refused).rejects.not.toThrow("PRIVATE KEY");
  });
});
