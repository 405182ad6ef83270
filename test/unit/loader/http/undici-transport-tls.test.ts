import { createServer } from "node:https";
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  it,
  vi,
} from "vitest";
import { createTransport } from "../../../../src/loader/http/undici-transport.js";
import { missingTool } from "../../../support/tools.js";
import {
  type CertificateAuthorities,
  createCertificateAuthorities,
  type KeyPair,
} from "./certificates.js";
import { endless, get } from "./doubles.js";
import { createServers, type Servers } from "./servers.js";

const clock = { nowMs: () => 0, monotonicMs: () => 0 };
const BOTH = "DNS:localhost,IP:127.0.0.1";

let authorities: CertificateAuthorities;
let ca: { one: string; two: string };
let leaf: Record<"ofOne" | "ofTwo" | "nameOnly" | "otherName", KeyPair>;
let servers: Servers;

describe.skipIf(missingTool("openssl"))(
  "loader/http/undici-transport: TLS",
  () => {
    beforeAll(() => {
      authorities = createCertificateAuthorities();
      ca = {
        one: authorities.authority("one"),
        two: authorities.authority("two"),
      };
      leaf = {
        ofOne: authorities.leaf({ authority: "one", altNames: BOTH }),
        ofTwo: authorities.leaf({ authority: "two", altNames: BOTH }),
        nameOnly: authorities.leaf({
          authority: "one",
          altNames: "DNS:localhost",
        }),
        otherName: authorities.leaf({
          authority: "one",
          altNames: "DNS:SECRET.test",
        }),
      };
    });
    afterAll(() => authorities.remove());
    beforeEach(() => {
      servers = createServers();
    });
    afterEach(async () => {
      vi.unstubAllEnvs();
      await servers.close();
    });

    it("trusts the CA of a host, by name, by address, and by port", async () => {
      const port = await serve(leaf.ofOne);

      expect(
        await ask(`https://localhost:${port}/`, { localhost: ca.one }),
      ).toBe("hello");
      expect(
        await ask(`https://127.0.0.1:${port}/`, { "127.0.0.1": ca.one }),
      ).toBe("hello");
      expect(
        await ask(`https://localhost:${port}/`, {
          [`localhost:${port}`]: ca.one,
        }),
      ).toBe("hello");
    });

    it("trusts each of several CAs of a host", async () => {
      const port = await serve(leaf.ofTwo);

      expect(
        await ask(`https://localhost:${port}/`, { localhost: ca.one + ca.two }),
      ).toBe("hello");
    });

    it.each([
      { name: "no CA at all", casFor: () => ({}) },
      {
        name: "the CA of another host only",
        casFor: () => ({ "127.0.0.1": ca.one }),
      },
      {
        name: "the CA of another port only",
        casFor: (port: number) => ({ [`localhost:${port + 1}`]: ca.one }),
      },
      { name: "another CA", casFor: () => ({ localhost: ca.two }) },
      {
        name: "another CA for this port",
        casFor: (port: number) => ({
          localhost: ca.one,
          [`localhost:${port}`]: ca.two,
        }),
      },
    ])("does not trust a host with $name", async ({ casFor }) => {
      const port = await serve(leaf.ofOne);

      await expect(
        ask(`https://localhost:${port}/`, casFor(port)),
      ).rejects.toMatchObject({
        code: "tls-failed",
        message: `localhost:${port}: the TLS certificate does not verify, --registry-ca names a CA to trust for this host (UNABLE_TO_VERIFY_LEAF_SIGNATURE)`,
      });
    });

    it("does not trust one host with the CA of another it has just trusted", async () => {
      const one = await serve(leaf.ofOne);
      const two = await serve(leaf.ofOne);
      const transport = create({ [`localhost:${one}`]: ca.one });

      const first = await transport.send(
        get(`https://localhost:${one}/`),
        endless(),
      );
      await first.discard();

      await expect(
        transport.send(get(`https://localhost:${two}/`), endless()),
      ).rejects.toMatchObject({ code: "tls-failed" });
      await transport.close();
    });

    it("verifies whatever the environment says", async () => {
      vi.stubEnv("NODE_TLS_REJECT_UNAUTHORIZED", "0");
      const port = await serve(leaf.ofOne);

      await expect(ask(`https://localhost:${port}/`, {})).rejects.toMatchObject(
        {
          code: "tls-failed",
        },
      );
    });

    it("verifies a host to which http would be allowed", async () => {
      const port = await serve(leaf.ofOne);

      await expect(
        ask(`https://localhost:${port}/`, {}, ["localhost"]),
      ).rejects.toMatchObject({ code: "tls-failed" });
    });

    it.each([
      { name: "another host", pair: () => leaf.otherName, host: "localhost" },
      {
        name: "the name of an address",
        pair: () => leaf.nameOnly,
        host: "127.0.0.1",
      },
    ])("takes no certificate for $name", async ({ pair, host }) => {
      const port = await serve(pair());

      await expect(
        ask(`https://${host}:${port}/`, { [host]: ca.one }),
      ).rejects.toMatchObject({
        code: "tls-failed",
        message: `${host}:${port}: the TLS certificate is for another host (ERR_TLS_CERT_ALTNAME_INVALID)`,
      });
    });

    it("takes no server that speaks no TLS for an unreachable one", async () => {
      const port = await servers.http((_, response) => response.end());

      await expect(ask(`https://127.0.0.1:${port}/`, {})).rejects.toMatchObject(
        {
          code: "tls-failed",
          message: expect.stringMatching(
            new RegExp(
              `^127\\.0\\.0\\.1:${port}: TLS failed \\((?:EPROTO|ERR_SSL_[A-Z_]+)\\)$`,
              "u",
            ),
          ) as string,
        },
      );
    });

    it("takes no server that knows other versions only for an unreachable one", async () => {
      const server = createServer({
        ...leaf.ofOne,
        minVersion: "TLSv1",
        maxVersion: "TLSv1.1",
      });
      const port = await servers.add(server);

      await expect(
        ask(`https://localhost:${port}/`, { localhost: ca.one }),
      ).rejects.toMatchObject({
        code: "tls-failed",
        message: expect.stringMatching(
          /TLS failed \((?:EPROTO|ERR_SSL_[A-Z0-9_]+)\)$/u,
        ) as string,
      });
    });

    it("finds a server that hangs up within the handshake unreachable", async () => {
      const port = await servers.tcp((socket) => {
        socket.once("data", () => socket.end());
      });

      await expect(ask(`https://127.0.0.1:${port}/`, {})).rejects.toMatchObject(
        {
          code: "registry-unreachable",
        },
      );
    });
  },
);

function create(
  registryCas: Readonly<Record<string, string>>,
  insecureHosts: readonly string[] = [],
) {
  return createTransport(
    { insecureHosts, registryCas: new Map(Object.entries(registryCas)) },
    clock,
  );
}

function serve(pair: KeyPair): Promise<number> {
  return servers.add(
    createServer(pair, (_, response) => response.end("hello")),
  );
}

async function ask(
  url: string,
  registryCas: Readonly<Record<string, string>>,
  insecureHosts?: readonly string[],
): Promise<string> {
  const transport = create(registryCas, insecureHosts);
  try {
    const response = await transport.send(get(url), endless());
    const chunks: Uint8Array[] = [];
    for await (const chunk of response.body) chunks.push(chunk);
    return Buffer.concat(chunks).toString();
  } finally {
    await transport.close();
  }
}
