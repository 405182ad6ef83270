import { copyFileSync, mkdirSync, readFileSync, renameSync } from "node:fs";
import { connect as connectPlainly } from "node:net";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { setTimeout as delay } from "node:timers/promises";
import { connect } from "node:tls";

import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";

import {
  startFunction,
  type ServerProcess,
} from "../../../bench/server-process.js";
import { missingTool } from "../../support/tools.js";
import { createCertificateMaker } from "../../unit/function/certificates.js";

const maker = createCertificateMaker();
const made = (file: string) => join(maker.directory, file);

const crossplane = "127.0.0.2";
const stranger = "127.0.0.66";

/** The built program, and clients that come too often or for nothing. */
describe.skipIf(missingTool("openssl"))("integration/server/handshakes", () => {
  beforeAll(() => {
    for (const authority of ["ca", "foreign-ca"]) maker.authority(authority);
    const usage = "clientAuth";
    maker.leaf({ name: "server", authority: "ca", usage: "serverAuth" });
    maker.leaf({ name: "client", authority: "ca", usage });
    maker.leaf({ name: "foreign", authority: "foreign-ca", usage });
  });
  afterAll(() => maker.remove());

  let server: ServerProcess;
  let certs: string;
  let generation = 0;
  afterEach(() => server.stop());

  /** Starts a server that lets the clients of an authority in. */
  async function serve(authority: string): Promise<void> {
    certs = made(`certs-${generation++}`);
    mkdirSync(certs);
    for (const end of ["crt", "key"])
      copyFileSync(made(`server.${end}`), join(certs, `tls.${end}`));
    trust(authority);
    server = await startFunction({
      moduleDir: maker.directory,
      cacheDir: made(`cache-${generation++}`),
      flags: ["--tls-certs-dir", certs],
    });
  }

  function trust(authority: string): void {
    copyFileSync(made(`${authority}.crt`), join(certs, "ca.crt.new"));
    renameSync(join(certs, "ca.crt.new"), join(certs, "ca.crt"));
  }

  const port = () => Number(server.address.split(":").at(-1));

  interface Outcome {
    /** The server has shown its certificate. */
    readonly shaken: boolean;
    /** It speaks HTTP/2. */
    readonly letIn: boolean;
  }

  /** Connects, waits until it is clear what becomes of it, and hangs up. */
  async function tryFrom(
    localAddress: string,
    client: "client" | "foreign",
  ): Promise<Outcome> {
    const socket = connect({
      socket: connectPlainly({
        host: "127.0.0.1",
        port: port(),
        localAddress,
      }),
      servername: "localhost",
      ALPNProtocols: ["h2"],
      // No OpenSSL client can judge these certificates; Crossplane's Go client can.
      rejectUnauthorized: false,
      cert: readFileSync(made(`${client}.crt`)),
      key: readFileSync(made(`${client}.key`)),
    });
    let shaken = false;
    socket.on("secureConnect", () => (shaken = true));
    socket.on("error", () => undefined);
    const letIn = await new Promise<boolean>((resolve) => {
      socket.once("data", () => resolve(true));
      socket.once("close", () => resolve(false));
    });
    socket.destroy();
    return { shaken, letIn };
  }

  /** Tries until `isOver`, every `afterMs`; counts how often it was what. */
  async function keepTrying(
    localAddress: string,
    client: "client" | "foreign",
    afterMs: number,
    isOver: (last: Outcome) => boolean,
  ) {
    const counts = { tries: 0, shaken: 0, letIn: 0 };
    const startedAtMs = performance.now();
    for (;;) {
      const outcome = await tryFrom(localAddress, client);
      counts.tries += 1;
      counts.shaken += Number(outcome.shaken);
      counts.letIn += Number(outcome.letIn);
      if (isOver(outcome))
        return { ...counts, tookMs: performance.now() - startedAtMs };
      await delay(afterMs);
    }
  }

  function forMs(ms: number): () => boolean {
    const endAtMs = performance.now() + ms;
    return () => performance.now() >= endAtMs;
  }

  it("do not wait when what they are judged by has changed", async () => {
    await serve("foreign-ca");
    // Pauses of 1, 2 and 4 s, and one of 8 s begins.
    const refused = await keepTrying(crossplane, "client", 100, forMs(8_500));
    expect(refused.letIn).toBe(0);

    trust("ca");
    const tries = keepTrying(crossplane, "client", 100, ({ letIn }) => letIn);

    expect((await tries).tookMs).toBeLessThan(5_000);
  });

  it("are let in within 10 s when theirs were the wrong certificates", async () => {
    await serve("ca");
    await keepTrying(crossplane, "foreign", 100, forMs(8_500));

    const mended = await keepTrying(
      crossplane,
      "client",
      100,
      ({ letIn }) => letIn,
    );

    expect(mended.tookMs).toBeLessThan(11_000);
    expect(mended.shaken).toBe(1);
    expect(await tryFrom(crossplane, "client")).toMatchObject({ letIn: true });
  });

  it("are all let in where a hundred come from one address at once", async () => {
    await serve("ca");

    const outcomes = await Promise.all(
      Array.from({ length: 100 }, () => tryFrom(crossplane, "client")),
    );

    expect(outcomes.filter(({ letIn }) => letIn)).toHaveLength(100);
  });

  it("cost little where they try again and again, and keep nobody else out", async () => {
    await serve("ca");
    const isOver = forMs(5_000);
    const strangers = Promise.all(
      Array.from({ length: 10 }, () =>
        keepTrying(stranger, "foreign", 1, isOver),
      ),
    );

    const own = await keepTrying(crossplane, "client", 50, isOver);

    expect(own.letIn).toBe(own.tries);
    expect(own.tries).toBeGreaterThan(10);
    const tries = await strangers;
    const sum = (key: "letIn" | "shaken" | "tries") =>
      tries.reduce((total, each) => total + each[key], 0);
    expect(sum("letIn")).toBe(0);
    expect(sum("tries")).toBeGreaterThan(100);
    // At 0, 1 and 3 s.
    expect(sum("shaken")).toBeLessThanOrEqual(3);
  });

  it("do not fill the server by saying nothing", async () => {
    await serve("ca");
    let closed = 0;
    const silent = Array.from({ length: 300 }, () => {
      const socket = connectPlainly({
        host: "127.0.0.1",
        port: port(),
        localAddress: stranger,
      });
      socket.on("error", () => undefined);
      socket.on("close", () => (closed += 1));
      return socket.resume();
    });

    await expect.poll(() => closed, { timeout: 5_000 }).toBe(300 - 128);
    expect(await tryFrom(crossplane, "client")).toMatchObject({ letIn: true });

    for (const socket of silent) socket.destroy();
  });
});
