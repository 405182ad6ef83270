import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { X509Certificate } from "node:crypto";
import {
  copyFileSync,
  mkdtempSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { connect as connectPlainly } from "node:net";
import { connect, type ConnectionOptions } from "node:tls";

import {
  afterAll,
  afterEach,
  beforeAll,
  describe,
  expect,
  it,
  vi,
} from "vitest";

import { listen, type Listener } from "../../../src/function/listen.js";
import { judgeClient } from "../../../src/function/tls.js";
import {
  parseTlsIdentity,
  readTlsFiles,
  type TlsIdentity,
} from "../../../src/function/tls-files.js";
import { handshakeRefusal } from "../../../src/function/tls-refusal.js";
import type { ClientRefusal, Clock } from "../../../src/ports.js";
import { missingTool } from "../../support/tools.js";
import { createCertificateMaker } from "./certificates.js";
import { realClock, recordingLogger, type LogLine } from "./fixtures.js";

const maker = createCertificateMaker();
type Pair = { cert: string; key: string };
const pairs: Record<string, Pair> = {};
let certsDir = "";

beforeAll(() => {
  for (const name of ["ca", "second", "foreign"]) maker.authority(name);
  maker.authority("renamed", { keyOf: "ca", subject: "/CN=renamed" });
  maker.authority("weak", { bits: 1024 });
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
    { name: "named-without-usage", usage: null, subject: "/CN=other" },
    { name: "long", usage: "clientAuth", to: "20990101" },
    { name: "signing", usage: "clientAuth", keyUsage: null },
    { name: "of-signing", authority: "signing", usage: "clientAuth" },
    {
      name: "named-of-signing",
      authority: "signing",
      usage: "clientAuth",
      subject: "/CN=other",
    },
    {
      name: "not-signing",
      usage: "clientAuth",
      isAuthority: true,
      keyUsage: "digitalSignature",
    },
    { name: "of-not-signing", authority: "not-signing", usage: "clientAuth" },
    { name: "sub-authority", usage: "clientAuth", isAuthority: true },
    {
      name: "named-sub-authority",
      usage: "clientAuth",
      subject: "/CN=other",
      isAuthority: true,
    },
    {
      name: "ca-of-2021",
      usage: null,
      keyOf: "ca",
      isAuthority: true,
      to: "20210101",
    },
    { name: "short", usage: "clientAuth", bits: 1024 },
    {
      name: "named-short",
      usage: "clientAuth",
      bits: 1024,
      subject: "/CN=other",
    },
    { name: "of-weak", authority: "weak", usage: "clientAuth" },
    { name: "pss", usage: "clientAuth", isPss: true },
    { name: "md5", usage: "clientAuth", hash: "md5" },
    { name: "sha1", usage: "clientAuth", hash: "sha1" },
    { name: "sha1-pss", usage: "clientAuth", hash: "sha1", isPss: true },
  ] as const;
  for (const leaf of leaves) {
    pairs[leaf.name] = maker.leaf({ authority: "ca", ...leaf });
  }
  pairs["ca"] = {
    cert: join(maker.directory, "ca.crt"),
    key: join(maker.directory, "ca.key"),
  };
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
  let refusals: ClientRefusal[] = [];
  let accepted = 0;
  /** No call comes so soon after another that it would be turned away for that. */
  let aheadMs = 0;
  const clock: Clock = {
    nowMs: () => Date.now(),
    monotonicMs: () => performance.now() + aheadMs,
  };

  afterEach(() => listener?.close());

  const identityOf = async (directory: string) =>
    parseTlsIdentity(await readTlsFiles(directory), realClock.nowMs());

  async function start(
    startClock: Clock = clock,
    identity?: () => TlsIdentity,
  ): Promise<number> {
    const recording = recordingLogger();
    const usual = await identityOf(certsDir);
    lines = recording.lines;
    refusals = [];
    accepted = 0;
    listener = await listen(
      { host: "127.0.0.1", port: 0 },
      {
        identity: identity ?? (() => usual),
        onRefused: (refusal) => refusals.push(refusal),
      },
      (socket) => {
        accepted++;
        socket.end("hello");
      },
      startClock,
      recording.logger,
    );
    return Number(listener.address.split(":").at(-1));
  }

  /** What the server said before it hung up. */
  async function call(
    port: number,
    name: string | null,
    {
      onShown,
      ...options
    }: ConnectionOptions & { onShown?: (certificate: string) => void } = {},
  ): Promise<{ heard: string; session: Buffer; resumed: boolean }> {
    aheadMs += 11_000;
    const pair = name === null ? null : pairOf(name);
    const socket = connect({
      host: "127.0.0.1",
      port,
      servername: "localhost",
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
      onShown?.(String(socket.getPeerX509Certificate()));
    });
    socket.on("data", (data: Buffer) => (heard += data.toString()));
    socket.on("error", () => undefined);
    await new Promise((resolve) => socket.on("close", resolve));
    return { heard, session, resumed };
  }

  describe("the certificates of these tests", () => {
    it("are taken for self-signed by OpenSSL", () => {
      const verify = () =>
        execFileSync(
          "openssl",
          [
            "verify",
            "-CAfile",
            join(certsDir, "ca.crt"),
            pairOf("client").cert,
          ],
          { stdio: "pipe" },
        );

      expect(verify).toThrow("error 18 at 0 depth lookup");
    });

    it.each(["ca", "server", "client"])(
      "have Crossplane's shape: %s",
      (name) => {
        const { cert, key } = pairOf(name);
        const certificate = new X509Certificate(readFileSync(cert));
        const text = execFileSync(
          "openssl",
          ["x509", "-noout", "-text", "-in", cert],
          { encoding: "utf8" },
        );
        const years =
          (Date.parse(certificate.validTo) -
            Date.parse(certificate.validFrom)) /
          (365.25 * 86_400_000);

        expect(certificate.serialNumber).toBe("07E6");
        expect(certificate.subject).toBe(certificate.issuer);
        expect(certificate.subject).toContain("CN=Crossplane");
        expect(certificate.publicKey.asymmetricKeyType).toBe("rsa");
        expect(certificate.publicKey.asymmetricKeyDetails).toMatchObject({
          modulusLength: 2048,
        });
        expect(text).not.toContain("Key Identifier");
        expect(years).toBeCloseTo(10, 1);
        expect(readFileSync(key, "utf8")).toMatch(
          /^-----BEGIN RSA PRIVATE KEY-----/,
        );
      },
    );
  });

  it.each([
    { name: "Crossplane's own", client: "client" },
    { name: "one of the second authority in ca.crt", client: "of-second" },
    { name: "one signed with RSASSA-PSS", client: "pss" },
    { name: "one OpenSSL can judge", client: "named" },
    {
      name: "one OpenSSL can judge that is for anything",
      client: "named-without-usage",
    },
  ])("accepts $name", async ({ client }) => {
    const port = await start();

    expect((await call(port, client)).heard).toBe("hello");
    expect(lines).toEqual([]);
    expect(refusals).toEqual([]);
  });

  it.each([
    {
      name: "none",
      client: null,
      reason: "no client certificate",
      kind: "no-certificate",
    },
    {
      name: "one of a foreign authority of the same name",
      client: "of-foreign",
      reason: "client certificate is signed by no authority of ca.crt",
      kind: "untrusted",
    },
    {
      name: "one for servers",
      client: "server",
      reason: "client certificate: INVALID_PURPOSE",
      kind: "not-for-clients",
    },
    {
      name: "one for nothing in particular",
      client: "without-usage",
      reason: "client certificate is not meant for clients (clientAuth)",
      kind: "not-for-clients",
    },
    {
      name: "an expired one",
      client: "expired",
      reason: "client certificate: CERT_HAS_EXPIRED",
      kind: "expired",
    },
    {
      name: "one that is not valid yet",
      client: "not-yet",
      reason: "client certificate: CERT_NOT_YET_VALID",
      kind: "expired",
    },
    {
      name: "the authority's own",
      client: "ca",
      reason: "client certificate is an authority's (CA:TRUE)",
      kind: "not-for-clients",
    },
    {
      name: "one that is an authority's, too",
      client: "sub-authority",
      reason: "client certificate is an authority's (CA:TRUE)",
      kind: "not-for-clients",
    },
    {
      name: "one that is an authority's, too, that OpenSSL would accept",
      client: "named-sub-authority",
      reason: "client certificate is an authority's (CA:TRUE)",
      kind: "not-for-clients",
    },
    {
      name: "one for servers that OpenSSL can judge",
      client: "named-server",
      reason: "client certificate: INVALID_PURPOSE",
      kind: "not-for-clients",
    },
  ])("refuses $name", async ({ client, reason, kind }) => {
    const port = await start();

    expect((await call(port, client)).heard).toBe("");
    expect(accepted).toBe(0);
    expect(lines).toMatchObject([
      { level: "warn", message: "client refused", fields: { reason } },
    ]);
    expect(refusals).toEqual([kind]);
  });

  it.each([
    {
      name: "a leaf in ca.crt, which is no authority (CA:FALSE), has signed",
      client: "of-signing",
      authorities: ["ca", "signing"],
      reason: "client certificate is signed by no authority of ca.crt",
      kind: "untrusted",
    },
    {
      name: "an authority has signed that may not (keyCertSign)",
      client: "of-not-signing",
      authorities: ["ca", "not-signing"],
      reason: "client certificate is signed by no authority of ca.crt",
      kind: "untrusted",
    },
    {
      name: "an authority of another name has signed, with the same key",
      client: "client",
      authorities: ["renamed"],
      reason: "client certificate is signed by no authority of ca.crt",
      kind: "untrusted",
    },
    {
      name: "an authority has signed whose key is too short",
      client: "of-weak",
      authorities: ["ca", "weak"],
      reason: "the authority in ca.crt has a key of less than 2048 bits (RSA)",
      kind: "untrusted",
    },
    {
      name: "a leaf in ca.crt has signed, and OpenSSL can judge",
      client: "named-of-signing",
      // Not "ca": it has the same name, and OpenSSL looks no further than the first.
      authorities: ["signing", "renamed"],
      // In the words of this version of OpenSSL.
      reason: expect.stringMatching(/^client certificate: \w/) as string,
      kind: expect.any(String) as string,
    },
  ])(
    "refuses one that $name",
    async ({ client, authorities, reason, kind }) => {
      const identity = await identityOf(
        directoryWith(pairOf("server"), authorities),
      );
      const port = await start(clock, () => identity);

      expect((await call(port, client)).heard).toBe("");
      expect(accepted).toBe(0);
      expect(lines).toMatchObject([{ fields: { reason } }]);
      expect(refusals).toEqual([kind]);
    },
  );

  it.each([
    {
      name: "the leaf",
      client: "client",
      nowMs: Date.UTC(2100, 0),
      reason: "client certificate is expired or not valid yet",
    },
    {
      name: "the leaf, before its time",
      client: "client",
      nowMs: Date.UTC(2019, 0),
      reason: "client certificate is expired or not valid yet",
    },
    {
      name: "the authority",
      client: "long",
      nowMs: Date.UTC(2090, 0),
      reason: "the authority in ca.crt is expired or not valid yet",
    },
  ])(
    "looks at the dates of $name itself",
    async ({ client, nowMs, reason }) => {
      const port = await start({ ...clock, nowMs: () => nowMs });

      expect((await call(port, client)).heard).toBe("");
      expect(lines).toMatchObject([{ fields: { reason } }]);
      expect(refusals).toEqual(["expired"]);
    },
  );

  /** What is judged of a client, whatever OpenSSL of this version says of it. */
  function judge(
    { cert }: Pair,
    authorities: readonly X509Certificate[],
    authorizationError: string | null = "DEPTH_ZERO_SELF_SIGNED_CERT",
  ) {
    const leaf = new X509Certificate(readFileSync(cert));
    const socket = {
      authorized: authorizationError === null,
      authorizationError: authorizationError as never,
      getPeerX509Certificate: () => leaf,
    };
    return judgeClient(socket, authorities, realClock.nowMs());
  }

  const certificateOf = (name: string) =>
    new X509Certificate(readFileSync(pairOf(name).cert));

  it.each([
    {
      name: "a key that is too short",
      client: "short",
      reason: "client certificate has a key of less than 2048 bits (RSA)",
    },
    {
      name: "a key that is too short, which OpenSSL accepts",
      client: "named-short",
      authorizationError: null,
      reason: "client certificate has a key of less than 2048 bits (RSA)",
    },
    {
      name: "a signature over MD5",
      client: "md5",
      reason: "client certificate is signed over MD5 or SHA-1",
    },
    {
      name: "a signature over SHA-1",
      client: "sha1",
      reason: "client certificate is signed over MD5 or SHA-1",
    },
    {
      name: "a signature over SHA-1, with RSASSA-PSS",
      client: "sha1-pss",
      reason: "client certificate is signed over MD5 or SHA-1",
    },
  ])("refuses one with $name", ({ client, authorizationError, reason }) => {
    expect(
      judge(pairOf(client), [certificateOf("ca")], authorizationError),
    ).toEqual({ kind: "refused", refusal: { kind: "untrusted", reason } });
  });

  it("accepts one of an authority that is in ca.crt with its old certificate, too", () => {
    const [old, ca] = [certificateOf("ca-of-2021"), certificateOf("ca")];
    const client = pairOf("client");

    expect(judge(client, [old, ca])).toEqual({ kind: "accepted" });
    expect(judge(client, [ca, old])).toEqual({ kind: "accepted" });
    expect(judge(client, [old])).toMatchObject({
      refusal: { kind: "expired" },
    });
  });

  it("survives an authority whose key OpenSSL cannot read", () => {
    const bytes = certificateOf("ca").raw;
    const rsa = Buffer.from("2a864886f70d010101", "hex");
    const unknown = Buffer.from("2a864886f70d010163", "hex");
    bytes.set(unknown, bytes.indexOf(rsa));
    const unreadable = new X509Certificate(bytes);
    expect(() => unreadable.publicKey).toThrow();

    expect(judge(pairOf("client"), [unreadable])).toMatchObject({
      refusal: { kind: "untrusted" },
    });
    expect(judge(pairOf("client"), [unreadable, certificateOf("ca")])).toEqual({
      kind: "accepted",
    });
  });

  it("does not believe Node that a resumed session without a certificate is authorized", () => {
    const socket = {
      authorized: true,
      authorizationError: null as never,
      getPeerX509Certificate: () => undefined,
    };

    expect(judgeClient(socket, [], realClock.nowMs())).toEqual({
      kind: "refused",
      refusal: { kind: "no-certificate", reason: "no client certificate" },
    });
  });

  it("does not believe OpenSSL that a certificate for servers is one for clients", () => {
    expect(judge(pairOf("named-server"), [], null)).toEqual({
      kind: "refused",
      refusal: {
        kind: "not-for-clients",
        reason: "client certificate is not meant for clients (clientAuth)",
      },
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

  describe("when the certificates change", () => {
    /** Listens with one set, then with that of the second authority. */
    async function startChangeable() {
      const old = await identityOf(directoryWith(pairOf("server"), ["ca"]));
      const next = await identityOf(
        directoryWith(pairOf("of-second"), ["second"]),
      );
      let current = old;
      const identity = vi.fn(() => current);
      const port = await start(clock, identity);
      return { port, identity, old, next, change: () => (current = next) };
    }

    it("shows the new one, and accepts the clients of the new authorities only", async () => {
      const { port, change } = await startChangeable();
      expect((await call(port, "client")).heard).toBe("hello");
      expect((await call(port, "of-second")).heard).toBe("");

      change();

      expect((await call(port, "client")).heard).toBe("");
      expect((await call(port, "of-second")).heard).toBe("hello");
    });

    it("tells again who is refused", async () => {
      const { port, change } = await startChangeable();
      await call(port, null);
      await call(port, null);
      expect(lines).toHaveLength(1);

      change();
      await call(port, null);
      await call(port, null);

      expect(lines).toHaveLength(2);
    });

    it("ends a handshake with the set it began with", async () => {
      const { port, identity, old, change } = await startChangeable();
      const plain = connectPlainly({ host: "127.0.0.1", port });
      await vi.waitFor(() => {
        expect(identity).toHaveBeenCalledOnce();
      });

      change();
      let shown: string | undefined;
      const { heard } = await call(port, "client", {
        socket: plain,
        onShown: (certificate) => (shown = certificate),
      });

      expect(shown).toBe(old.leaf.toString());
      expect(heard).toBe("hello");
    });

    it("resumes no session of the old one", async () => {
      const { port, change } = await startChangeable();
      const maxVersion = "TLSv1.2";
      const { session } = await call(port, "client", { maxVersion });

      change();
      const again = await call(port, "client", { maxVersion, session });

      expect(again).toMatchObject({ heard: "", resumed: false });
    });
  });

  it("counts each refusal, and tells each reason once", async () => {
    const port = await start();

    await call(port, null);
    await call(port, null);
    await call(port, "of-foreign");

    expect(lines[0]?.fields["peer"]).toBe("127.0.0.1");
    expect(lines.map((line) => line.fields["reason"])).toEqual([
      "no client certificate",
      "client certificate is signed by no authority of ca.crt",
    ]);
    expect(refusals).toEqual(["no-certificate", "no-certificate", "untrusted"]);
  });

  it("tells a reason again after ten minutes, from when it was told", async () => {
    let nowMs = 0;
    const port = await start({ ...clock, monotonicMs: () => nowMs });
    const toldAt = async (atMs: number) => {
      nowMs = atMs;
      await call(port, null);
      return lines.length;
    };

    expect(await toldAt(0)).toBe(1);
    expect(await toldAt(580_000)).toBe(1);
    expect(await toldAt(600_001)).toBe(2);
    expect(await toldAt(1_180_000)).toBe(2);
    expect(await toldAt(1_200_002)).toBe(3);
  });

  describe("a handshake that fails", () => {
    it.each([
      {
        name: "a client without HTTP/2",
        options: { ALPNProtocols: ["http/1.1"] },
        reason: "the client does not offer HTTP/2",
        kind: "no-http2",
      },
      {
        name: "a client that says nothing of HTTP/2",
        options: { ALPNProtocols: [] },
        reason: "the client does not offer HTTP/2",
        kind: "no-http2",
      },
      {
        name: "a client that is too old",
        options: {
          minVersion: "TLSv1.1",
          maxVersion: "TLSv1.1",
          ciphers: "DEFAULT@SECLEVEL=0",
        },
        reason: "the client speaks no TLS of version 1.2 or newer",
        kind: "handshake",
      },
    ] as const)("tells of $name", async ({ options, reason, kind }) => {
      const port = await start();

      await call(port, "client", options);

      expect(accepted).toBe(0);
      await expect.poll(() => lines).toMatchObject([{ fields: { reason } }]);
      expect(refusals).toEqual([kind]);
    });

    it("tells who hung up", async () => {
      const port = await start();
      const socket = connectPlainly({ host: "127.0.0.1", port });
      socket.on("error", () => undefined);
      socket.write(Buffer.from("1603010005010000", "hex"));
      await once(socket, "connect");

      socket.resetAndDestroy();

      await expect
        .poll(() => lines)
        .toMatchObject([
          {
            fields: {
              peer: "127.0.0.1",
              reason: "the client hung up before the TLS handshake had ended",
            },
          },
        ]);
    });

    it.each(["GET / HTTP/1.1\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"])(
      "tells of a client that speaks no TLS: %j",
      async (text) => {
        const port = await start();
        const socket = connectPlainly({ host: "127.0.0.1", port });
        socket.on("error", () => undefined);
        socket.end(text);
        await new Promise((resolve) => socket.on("close", resolve));

        await expect
          .poll(() => lines)
          .toMatchObject([
            { fields: { reason: "the client does not speak TLS" } },
          ]);
        expect(refusals).toEqual(["handshake"]);
      },
    );
  });

  it.each([
    {
      code: "ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE",
      kind: "distrusts-us",
      reason:
        "the client does not accept tls.crt: ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE",
    },
    {
      code: "ERR_SSL_TLSV1_ALERT_UNKNOWN_CA",
      kind: "distrusts-us",
      reason:
        "the client does not accept tls.crt: ERR_SSL_TLSV1_ALERT_UNKNOWN_CA",
    },
    {
      code: "ERR_TLS_HANDSHAKE_TIMEOUT",
      kind: "handshake",
      reason: "the TLS handshake took more than 10 s",
    },
    {
      code: "ERR_SSL_BAD_PACKET_LENGTH",
      kind: "handshake",
      reason: "TLS handshake: ERR_SSL_BAD_PACKET_LENGTH",
    },
    { code: "", kind: "handshake", reason: "TLS handshake: over there" },
    {
      code: "ERR_SSL_NO_APPLICATION_PROTOCOL",
      kind: "no-http2",
      reason: "the client does not offer HTTP/2",
    },
  ])("says why a handshake failed: $code", ({ code, kind, reason }) => {
    const error = Object.assign(new Error("over\nthere"), { code });

    expect(handshakeRefusal(error)).toEqual({ kind, reason });
  });
});
