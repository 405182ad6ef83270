import { execFileSync } from "node:child_process";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { once } from "node:events";
import { join } from "node:path";
import { connect, type SecureVersion } from "node:tls";

import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";

import { FunctionError } from "../../../src/function/error.js";
import { listen, type Listener } from "../../../src/function/listen.js";
import { judgeClient, readTlsIdentity } from "../../../src/function/tls.js";
import type { Clock } from "../../../src/ports.js";
import { missingTool } from "../../support/tools.js";
import { createCertificateMaker } from "./certificates.js";
import { realClock, recordingLogger, type LogLine } from "./fixtures.js";

const maker = createCertificateMaker();
type Pair = { cert: string; key: string };
const pairs: Record<string, Pair> = {};
let certsDir = "";

beforeAll(() => {
  for (const name of ["ca", "second", "foreign"]) maker.authority(name);
  const leaves = [
    { name: "server", usage: "serverAuth" },
    { name: "client", usage: "clientAuth" },
    { name: "of-second", authority: "second", usage: "clientAuth" },
    { name: "of-foreign", authority: "foreign", usage: "clientAuth" },
    { name: "without-usage", usage: null },
    { name: "expired", usage: "clientAuth", to: "20210101" },
    { name: "not-yet", usage: "clientAuth", from: "20980101" },
    { name: "named", usage: "clientAuth", subject: "/CN=other" },
    { name: "named-server", usage: "serverAuth", subject: "/CN=other" },
  ] as const;
  for (const leaf of leaves) {
    pairs[leaf.name] = maker.leaf({ authority: "ca", ...leaf });
  }
  certsDir = directoryWith(pairOf("server"), ["ca", "second"]);
});

afterAll(() => maker.remove());

function pairOf(name: string): Pair {
  const pair = pairs[name];
  if (pair === undefined) throw new Error(`no certificate ${name}`);
  return pair;
}

function directoryWith(pair: Pair, authorities: readonly string[]): string {
  const directory = mkdtempSync(join(maker.directory, "certs-"));
  copyFileSync(pair.cert, join(directory, "tls.crt"));
  copyFileSync(pair.key, join(directory, "tls.key"));
  const bundle = authorities.map((name) =>
    readFileSync(join(maker.directory, `${name}.crt`), "utf8"),
  );
  writeFileSync(join(directory, "ca.crt"), `# comment\n${bundle.join("\n")}`);
  return directory;
}

describe.skipIf(missingTool("openssl"))("function/tls", () => {
  let listener: Listener | undefined;
  let lines: LogLine[] = [];
  let accepted = 0;

  afterEach(() => listener?.close());

  async function start(clock: Clock = realClock): Promise<number> {
    const recording = recordingLogger();
    lines = recording.lines;
    accepted = 0;
    listener = await listen(
      { host: "127.0.0.1", port: 0 },
      readTlsIdentity(certsDir),
      (socket) => {
        accepted++;
        socket.end("hello");
      },
      clock,
      recording.logger,
    );
    return Number(listener.address.split(":").at(-1));
  }

  /** What the server said before it hung up. */
  async function call(
    port: number,
    name: string | null,
    options: { maxVersion?: SecureVersion; session?: Buffer } = {},
  ): Promise<{ heard: string; session: Buffer; resumed: boolean }> {
    const pair = name === null ? null : pairOf(name);
    const socket = connect({
      host: "127.0.0.1",
      port,
      ALPNProtocols: ["h2"],
      // As any strict OpenSSL client, this one cannot judge the server's certificate.
      rejectUnauthorized: false,
      ...options,
      ...(pair === null
        ? {}
        : { cert: readFileSync(pair.cert), key: readFileSync(pair.key) }),
    });
    let session = Buffer.alloc(0);
    let resumed = false;
    let heard = "";
    socket.on("secureConnect", () => {
      session = socket.getSession() ?? session;
      resumed = socket.isSessionReused();
    });
    socket.on("data", (data: Buffer) => (heard += data.toString()));
    socket.on("error", () => undefined);
    await once(socket, "close");
    return { heard, session, resumed };
  }

  it("is tested with certificates OpenSSL takes for self-signed", () => {
    const verify = () =>
      execFileSync(
        "openssl",
        ["verify", "-CAfile", join(certsDir, "ca.crt"), pairOf("client").cert],
        { stdio: "pipe" },
      );

    expect(verify).toThrow("error 18 at 0 depth lookup");
  });

  it.each([
    { name: "Crossplane's own", client: "client" },
    { name: "one of the second authority in ca.crt", client: "of-second" },
    { name: "one OpenSSL can judge", client: "named" },
  ])("accepts $name", async ({ client }) => {
    const port = await start();

    expect((await call(port, client)).heard).toBe("hello");
    expect(lines).toEqual([]);
  });

  it.each([
    { name: "none", client: null, reason: "no client certificate" },
    {
      name: "one of a foreign authority of the same name",
      client: "of-foreign",
      reason: "client certificate is signed by no authority of ca.crt",
    },
    {
      name: "one for servers",
      client: "server",
      reason: "client certificate: INVALID_PURPOSE",
    },
    {
      name: "one for nothing in particular",
      client: "without-usage",
      reason: "client certificate is not meant for clients (clientAuth)",
    },
    {
      name: "an expired one",
      client: "expired",
      reason: "client certificate: CERT_HAS_EXPIRED",
    },
    {
      name: "one that is not valid yet",
      client: "not-yet",
      reason: "client certificate: CERT_NOT_YET_VALID",
    },
    {
      name: "one for servers that OpenSSL can judge",
      client: "named-server",
      reason: "client certificate: INVALID_PURPOSE",
    },
  ])("refuses $name", async ({ client, reason }) => {
    const port = await start();

    expect((await call(port, client)).heard).toBe("");
    expect(accepted).toBe(0);
    expect(lines).toMatchObject([
      { level: "warn", message: "client refused", fields: { reason } },
    ]);
  });

  it.each([
    {
      name: "the leaf",
      nowMs: Date.UTC(2100, 0),
      reason: "client certificate is expired or not valid yet",
    },
    {
      name: "the leaf, before its time",
      nowMs: Date.UTC(2019, 0),
      reason: "client certificate is expired or not valid yet",
    },
    {
      name: "the authority",
      nowMs: Date.UTC(2090, 0),
      reason: "the authority in ca.crt is expired or not valid yet",
    },
  ])("looks at the dates of $name itself", async ({ nowMs, reason }) => {
    const port = await start({ ...realClock, nowMs: () => nowMs });

    expect((await call(port, "client")).heard).toBe("");
    expect(lines).toMatchObject([{ fields: { reason } }]);
  });

  it("does not believe Node that a resumed session without a certificate is authorized", () => {
    const socket = {
      authorized: true,
      authorizationError: null as never,
      getPeerX509Certificate: () => undefined,
    };

    expect(judgeClient(socket, [], realClock.nowMs())).toEqual({
      kind: "refused",
      reason: "no client certificate",
    });
  });

  it("resumes no session", async () => {
    const port = await start();
    const { session } = await call(port, "client", { maxVersion: "TLSv1.2" });

    const again = await call(port, "client", {
      maxVersion: "TLSv1.2",
      session,
    });

    expect(again.heard).toBe("hello");
    expect(again.resumed).toBe(false);
  });

  it("tells each reason once", async () => {
    const port = await start();

    await call(port, null);
    await call(port, null);
    await call(port, "of-foreign");

    expect(lines.map((line) => line.fields["reason"])).toEqual([
      "no client certificate",
      "client certificate is signed by no authority of ca.crt",
    ]);
  });

  describe("readTlsIdentity", () => {
    const broken = (change: (directory: string) => void) => {
      const directory = directoryWith(pairOf("server"), ["ca"]);
      change(directory);
      return () => readTlsIdentity(directory);
    };
    const put = (name: string, text: string) => (directory: string) =>
      writeFileSync(join(directory, name), text);

    it("reads every authority", () => {
      expect(readTlsIdentity(certsDir).clientAuthorities).toHaveLength(2);
    });

    it("refuses a directory that is not there", () => {
      const directory = join(maker.directory, "nowhere");

      expect(() => readTlsIdentity(directory)).toThrow(
        "cannot read tls.crt of --tls-certs-dir: ENOENT",
      );
    });

    it.each([
      { name: "tls.crt", change: put("tls.crt", "no"), want: "tls.crt: " },
      { name: "tls.key", change: put("tls.key", "no"), want: "tls.key: " },
      {
        name: "ca.crt",
        change: put("ca.crt", "no"),
        want: "ca.crt: expected a certificate",
      },
      {
        name: "a certificate in ca.crt",
        change: put(
          "ca.crt",
          "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ),
        want: "ca.crt: ",
      },
      {
        name: "a key of another certificate",
        change: (directory: string) =>
          copyFileSync(pairOf("client").key, join(directory, "tls.key")),
        want: "tls.key is not the key of tls.crt",
      },
    ])("refuses a broken set: $name", ({ change, want }) => {
      const read = broken(change);

      expect(read).toThrow(FunctionError);
      expect(read).toThrow(want);
    });

    it("refuses a file that is a directory", () => {
      const directory = mkdtempSync(join(maker.directory, "certs-"));
      mkdirSync(join(directory, "tls.crt"));

      expect(() => readTlsIdentity(directory)).toThrow("EISDIR");
    });
  });
});
