import { execFile } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import {
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  symlinkSync,
} from "node:fs";
import {
  connect as connectHttp2,
  type ClientHttp2Session,
  type IncomingHttpHeaders,
} from "node:http2";
import { connect as connectPlainly, createServer } from "node:net";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { setTimeout as delay } from "node:timers/promises";
import { connect, type TLSSocket } from "node:tls";
import { fileURLToPath } from "node:url";

import { afterAll, beforeAll, describe, expect, it } from "vitest";

import {
  startFunction,
  type ServerProcess,
} from "../../../bench/server-process.js";
import { missingTool } from "../../support/tools.js";
import { createCertificateMaker } from "../../unit/function/certificates.js";

const maker = createCertificateMaker();
const made = (file: string) => join(maker.directory, file);
const program = fileURLToPath(
  new URL("../../../dist/main.js", import.meta.url),
);

/** The built program, its certificates and its connections. */
describe.skipIf(missingTool("openssl"))("integration/server/tls", () => {
  beforeAll(() => {
    for (const set of ["old", "new"]) {
      maker.authority(`${set}-ca`);
      for (const usage of ["serverAuth", "clientAuth"] as const) {
        maker.leaf({ name: `${set}-${usage}`, authority: `${set}-ca`, usage });
      }
    }
  });
  afterAll(() => maker.remove());

  let generation = 0;

  /** Swaps the links of a mounted Secret, as the kubelet does. */
  function swap(certs: string, certificate: string, key: string, ca: string) {
    const next = `..${generation++}`;
    mkdirSync(join(certs, next));
    copyFileSync(made(`${certificate}.crt`), join(certs, next, "tls.crt"));
    copyFileSync(made(`${key}.key`), join(certs, next, "tls.key"));
    copyFileSync(made(`${ca}.crt`), join(certs, next, "ca.crt"));
    symlinkSync(next, join(certs, "..data_tmp"));
    renameSync(join(certs, "..data_tmp"), join(certs, "..data"));
  }

  /** A Secret's mount with the old set. */
  function mount(name: string): string {
    const certs = made(name);
    mkdirSync(certs);
    swap(certs, "old-serverAuth", "old-serverAuth", "old-ca");
    for (const file of ["tls.crt", "tls.key", "ca.crt"]) {
      symlinkSync(join("..data", file), join(certs, file));
    }
    return certs;
  }

  const serve = (certs: string, ...flags: string[]) =>
    startFunction({
      moduleDir: maker.directory,
      cacheDir: made(`cache-${generation++}`),
      flags: ["--tls-certs-dir", certs, ...flags],
    });

  /** Every time from another address, for one that was refused is not let in again at once. */
  async function secureSocket(
    server: ServerProcess,
    set: string,
  ): Promise<TLSSocket> {
    const socket = connect({
      socket: connectPlainly({
        host: "127.0.0.1",
        port: Number(server.address.split(":").at(-1)),
        localAddress: `127.0.${generation >> 8}.${generation++ & 255 || 1}`,
      }),
      servername: "localhost",
      ALPNProtocols: ["h2"],
      // No OpenSSL client can judge these certificates; Crossplane's Go client can.
      rejectUnauthorized: false,
      cert: readFileSync(made(`${set}-clientAuth.crt`)),
      key: readFileSync(made(`${set}-clientAuth.key`)),
    });
    socket.on("error", () => undefined);
    await once(socket, "secureConnect");
    return socket;
  }

  function session(socket: TLSSocket): ClientHttp2Session {
    const opened = connectHttp2("https://localhost", {
      createConnection: () => socket,
    });
    opened.on("error", () => undefined);
    return opened;
  }

  /** Whether the server answers a health check on that connection. */
  async function answers(opened: ClientHttp2Session): Promise<boolean> {
    if (opened.destroyed) return false;
    const stream = opened.request({
      ":method": "POST",
      ":path": "/grpc.health.v1.Health/Check",
      "content-type": "application/grpc",
      te: "trailers",
    });
    let status = "";
    stream.on("trailers", (trailers: IncomingHttpHeaders) => {
      status = String(trailers["grpc-status"]);
    });
    stream.on("error", () => undefined);
    stream.resume();
    stream.end(Buffer.alloc(5));
    await new Promise((resolve) => stream.on("close", resolve));
    return status === "0";
  }

  const fingerprint = (file: string) =>
    new X509Certificate(readFileSync(file)).fingerprint256;

  describe("certificates that change", () => {
    let server: ServerProcess;
    let certs: string;
    beforeAll(async () => {
      certs = mount("rotating");
      server = await serve(certs);
    });
    afterAll(() => server.stop());

    const shown = async () => {
      const socket = await secureSocket(server, "old");
      const found = socket.getPeerX509Certificate()?.fingerprint256;
      socket.destroy();
      return found;
    };

    const accepts = async (set: string) => {
      const opened = session(await secureSocket(server, set));
      const accepted = await answers(opened);
      opened.destroy();
      return accepted;
    };

    it("stay the last good ones while the new ones do not fit together", async () => {
      swap(certs, "new-serverAuth", "old-serverAuth", "new-ca");
      await delay(4_000);

      expect(await shown()).toBe(fingerprint(made("old-serverAuth.crt")));
      expect(await accepts("old")).toBe(true);
    });

    it("are those of new connections, and old connections go on", async () => {
      const before = session(await secureSocket(server, "old"));
      expect(await answers(before)).toBe(true);

      swap(certs, "new-serverAuth", "new-serverAuth", "new-ca");

      await expect
        .poll(shown, { timeout: 10_000, interval: 200 })
        .toBe(fingerprint(made("new-serverAuth.crt")));
      expect(await accepts("new")).toBe(true);
      expect(await accepts("old")).toBe(false);
      expect(await answers(before)).toBe(true);
      before.destroy();
    });
  });

  describe("connections on which nothing happens", () => {
    let server: ServerProcess;
    let listening: number;
    beforeAll(async () => {
      server = await serve(mount("idle"));
      listening = sockets();
    });
    afterAll(() => server.stop());

    const sockets = () => {
      const handles = `/proc/${server.pid}/fd`;
      return readdirSync(handles).filter((handle) => {
        const target = readlinkSync(join(handles, handle));
        return target.startsWith("socket:");
      }).length;
    };
    const residentKb = () =>
      Number(
        /^VmRSS:\s+(?<kb>\d+)/m.exec(
          readFileSync(`/proc/${server.pid}/status`, "utf8"),
        )?.groups?.["kb"],
      );

    it("are closed when they do not even say hello", async () => {
      const sockets = Array.from({ length: 50 }, () =>
        connectPlainly({
          host: "127.0.0.1",
          port: Number(server.address.split(":").at(-1)),
        }),
      );
      const startedAtMs = performance.now();

      await Promise.all(
        sockets.map(async (socket) => {
          socket.on("error", () => undefined);
          socket.resume();
          await new Promise((resolve) => socket.on("close", resolve));
        }),
      );

      expect(performance.now() - startedAtMs).toBeGreaterThan(9_000);
    }, 40_000);

    it("do no harm, 1,000 at once", async () => {
      // The last of those before may be on its way out yet.
      await expect.poll(sockets, { timeout: 5_000 }).toBe(listening);
      const beforeKb = residentKb();
      const opened: ClientHttp2Session[] = [];
      while (opened.length < 1_000) {
        const batch = Array.from({ length: 50 }, () =>
          secureSocket(server, "old"),
        );
        opened.push(...(await Promise.all(batch)).map(session));
      }
      const [first] = opened;
      expect(await Promise.all(opened.map(answers))).not.toContain(false);
      expect(sockets()).toBe(listening + 1_000);

      const calledAtMs = performance.now();
      expect(first !== undefined && (await answers(first))).toBe(true);
      expect(performance.now() - calledAtMs).toBeLessThan(1_000);
      expect(residentKb() - beforeKb).toBeLessThan(1_000 * 256);

      for (const each of opened) each.destroy();
      await expect.poll(sockets, { timeout: 10_000 }).toBe(listening);
    });
  });

  describe("a start that must fail", () => {
    const run = (...argv: string[]) =>
      new Promise<{ code: unknown; stderr: string }>((resolve) => {
        execFile(
          process.execPath,
          [
            ...[program, "serve", "--cache-dir", made("cache-failed")],
            ...["--metrics-address", "127.0.0.1:0"],
            ...["--health-address", "127.0.0.1:0"],
            ...argv,
          ],
          { env: { PATH: process.env["PATH"] }, timeout: 20_000 },
          (error, _stdout, stderr) => {
            resolve({ code: error === null ? 0 : error.code, stderr });
          },
        );
      });

    it("neither certificates nor --insecure", async () => {
      const { code, stderr } = await run("--address", "127.0.0.1:0");

      expect(code).toBe(2);
      expect(stderr).toContain(
        "neither --tls-certs-dir (TLS_SERVER_CERTS_DIR) nor --insecure (INSECURE) is set",
      );
    });

    it("no certificates where they should be", async () => {
      const { code, stderr } = await run(
        ...["--address", "127.0.0.1:0", "--tls-certs-dir", made("nowhere")],
      );

      expect(code).toBe(1);
      expect(stderr).toContain(
        "cannot read tls.crt of --tls-certs-dir (TLS_SERVER_CERTS_DIR): ENOENT",
      );
    });

    it("a key of another certificate", async () => {
      const certs = mount("mismatched");
      swap(certs, "new-serverAuth", "old-serverAuth", "new-ca");

      const { code, stderr } = await run(
        ...["--address", "127.0.0.1:0", "--tls-certs-dir", certs],
      );

      expect(code).toBe(1);
      expect(stderr).toContain("tls.key is not the key of tls.crt");
      expect(stderr).not.toContain("PRIVATE KEY");
    });

    it("an address that is taken", async () => {
      const occupant = createServer();
      occupant.listen(0, "127.0.0.1");
      await once(occupant, "listening");
      const address = occupant.address();
      const port = typeof address === "object" ? (address?.port ?? 0) : 0;

      const { code, stderr } = await run(
        ...["--address", `127.0.0.1:${port}`, "--tls-certs-dir", mount("late")],
      );

      occupant.close();
      expect(code).toBe(1);
      expect(stderr).toContain(
        `cannot listen on --address 127.0.0.1:${port}: listen EADDRINUSE`,
      );
    });
  });
});
