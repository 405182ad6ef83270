import { execFileSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { ECHO_WHOLE } from "../../bench/echo-methods.js";
import {
  buildGrpcGoClient,
  createGrpcGoClient,
  runGrpcGo,
  type CallResult,
} from "../../bench/grpc-go-client.js";
import { assemble } from "../../bench/guests.js";
import {
  runFunctionRequest,
  smallState,
  treeState,
} from "../../bench/request.js";
import { readResponse } from "../../bench/response.js";
import { percentile } from "../../bench/percentile.js";
import {
  startEcho,
  startFunction,
  type ServerProcess,
} from "../../bench/server-process.js";
import { missingTool } from "../support/tools.js";

const MB = 1024 * 1024;

/** Crossplane's own client, over the network, against the built program. */
describe.skipIf(missingTool("go"))("integration/grpc-go", () => {
  let dir: string;
  let client: string;
  const servers: ServerProcess[] = [];

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), "grpc-go-test-"));
    await mkdir(join(dir, "modules"));
    client = await buildGrpcGoClient();
    for (const name of ["echo", "echo-component", "spin"])
      await assemble(join(dir, "modules"), name);
  }, 300_000);

  afterAll(async () => {
    await Promise.all(servers.map((server) => server.stop()));
    await rm(dir, { recursive: true, force: true });
  });

  async function serve(...flags: string[]): Promise<ServerProcess> {
    const cacheDir = join(dir, `cache-${servers.length}`);
    const server = await startFunction({
      moduleDir: join(dir, "modules"),
      cacheDir,
      flags,
    });
    servers.push(server);
    return server;
  }

  async function call(
    server: ServerProcess,
    request: Uint8Array,
    ...flags: string[]
  ): Promise<CallResult> {
    const file = join(dir, "request");
    await writeFile(file, request);
    return (await runGrpcGo(client, [
      "call",
      "--address",
      server.address,
      "--request",
      file,
      ...flags,
    ])) as CallResult;
  }

  describe("a server with its defaults", () => {
    let server: ServerProcess;

    beforeAll(async () => {
      server = await serve();
    });

    it.each([
      { name: "v1, a core module", method: "v1", modulePath: "echo.wasm" },
      {
        name: "v1beta1, a core module",
        method: "v1beta1",
        modulePath: "echo.wasm",
      },
      {
        name: "v1, a component",
        method: "v1",
        modulePath: "echo-component.wasm",
      },
      {
        name: "v1beta1, a component",
        method: "v1beta1",
        modulePath: "echo-component.wasm",
      },
    ])("answers $name", async ({ method, modulePath }) => {
      const request = runFunctionRequest({ modulePath, timeout: "5s" });

      const result = await call(server, request, "--method", method);

      expect(result).toMatchObject({ code: "OK", message: "" });
      const response = readResponse(Buffer.from(result.responseHex, "hex"));
      expect(response.fatal).toBeNull();
      expect(response.tag).toBe("c0ffee");
      expect(hex(response.desired)).toBe(hex(smallState()));
    });

    it("answers 100 calls at once on one connection, all alike", async () => {
      const file = join(dir, "concurrent");
      const request = runFunctionRequest({
        modulePath: "echo.wasm",
        timeout: "5s",
        desired: treeState(100_000),
      });
      await writeFile(file, request);

      const [result] = await createGrpcGoClient(client).load({
        targets: [
          {
            name: "echo",
            address: server.address,
            method: "v1",
            requestFile: file,
          },
        ],
        rounds: 1,
        roundCalls: 100,
        warmupCalls: 0,
        concurrency: 100,
        deadlineMs: 30_000,
        maxDurationMs: 30_000,
      });

      expect(result).toMatchObject({ codes: { OK: 100 }, differentAnswers: 0 });
      const response = readResponse(result?.firstAnswer ?? Buffer.alloc(0));
      expect(hex(response.desired)).toBe(hex(treeState(100_000)));
    });

    it("ends a module that never returns when the call's deadline passes", async () => {
      const request = runFunctionRequest({
        modulePath: "spin.wasm",
        timeout: "20s",
      });

      const result = await call(server, request, "--deadline", "300ms");

      // Either side may notice first; what counts is that somebody says so in time.
      const fatal =
        result.code === "OK"
          ? readResponse(Buffer.from(result.responseHex, "hex")).fatal
          : null;
      expect(
        result.code === "DeadlineExceeded" || fatal !== null,
        JSON.stringify(result),
      ).toBe(true);
      expect(result.elapsedUs).toBeLessThan(600_000);
    });

    it("cuts a module at the Input's limits.timeout and says so", async () => {
      const request = runFunctionRequest({
        modulePath: "spin.wasm",
        timeout: "200ms",
      });

      const result = await call(server, request);

      expect(result.code).toBe("OK");
      expect(
        readResponse(Buffer.from(result.responseHex, "hex")).fatal,
      ).toContain("spin.wasm");
      expect(result.elapsedUs).toBeGreaterThanOrEqual(200_000);
      expect(result.elapsedUs).toBeLessThan(1_000_000);
    });

    it("refuses a request of 5 MB with RESOURCE_EXHAUSTED", async () => {
      const request = runFunctionRequest({
        modulePath: "echo.wasm",
        timeout: "5s",
        observed: treeState(5 * MB),
      });

      const result = await call(server, request);

      expect(result).toMatchObject({
        code: "ResourceExhausted",
        message: expect.stringMatching(
          /^Received message larger than max .*: raise --max-recv-message-size$/,
        ) as string,
      });
    });

    it("refuses bytes that are no protobuf with INVALID_ARGUMENT", async () => {
      const result = await call(
        server,
        Buffer.from("<html>no protobuf</html>"),
      );

      expect(result.code).toBe("InvalidArgument");
    });

    it("answers a module that does not exist with a fatal result that names it", async () => {
      const result = await call(
        server,
        runFunctionRequest({ modulePath: "absent.wasm", timeout: "5s" }),
      );

      expect(result.code).toBe("OK");
      expect(
        readResponse(Buffer.from(result.responseHex, "hex")).fatal,
      ).toContain("absent.wasm");
    });
  });

  describe("a server with one run slot and a raised receive limit", () => {
    let server: ServerProcess;

    beforeAll(async () => {
      server = await serve(
        "--max-concurrent-runs",
        "1",
        "--max-recv-message-size",
        "16",
      );
    });

    it.each([
      { name: "a core module", modulePath: "echo.wasm" },
      { name: "a component", modulePath: "echo-component.wasm" },
    ])(
      "answers a request with 11 MB of observed state: $name",
      async ({ modulePath }) => {
        const request = runFunctionRequest({
          modulePath,
          timeout: "5s",
          observed: treeState(11 * MB),
        });

        const result = await call(server, request);

        expect(request.length).toBeGreaterThan(11 * MB);
        expect(result).toMatchObject({ code: "OK" });
        const response = readResponse(Buffer.from(result.responseHex, "hex"));
        expect(response.fatal).toBeNull();
        expect(hex(response.desired)).toBe(hex(smallState()));
      },
    );

    it("ends a run that its caller cancels, and gives its slot to the next", async () => {
      const spin = runFunctionRequest({
        modulePath: "spin.wasm",
        timeout: "25s",
      });
      const echo = runFunctionRequest({
        modulePath: "echo.wasm",
        timeout: "5s",
      });

      const cancelled = await call(server, spin, "--cancel-after", "300ms");
      const next = await call(server, echo, "--deadline", "2s");

      expect(cancelled.code).toBe("Canceled");
      expect(cancelled.elapsedUs).toBeLessThan(600_000);
      // The only slot is free again only when the cancelled run has really ended.
      expect(next).toMatchObject({ code: "OK" });
      expect(
        readResponse(Buffer.from(next.responseHex, "hex")).fatal,
      ).toBeNull();
      expect(next.elapsedUs).toBeLessThan(500_000);
    });
  });

  describe("a server with Crossplane's certificates", () => {
    let server: ServerProcess;
    let certs: string;
    /** Of another authority with the same name. */
    let foreign: string;

    beforeAll(async () => {
      certs = join(dir, "certs");
      foreign = join(dir, "foreign");
      await runGrpcGo(client, ["certs", "--out", certs]);
      await runGrpcGo(client, ["certs", "--out", foreign]);
      server = await serve("--tls-certs-dir", join(certs, "server"));
    });

    /** The flags of a client that trusts one authority and shows a certificate, or none. */
    const flagsOf = (trusted: string, shown: string | null) => [
      ...["--ca", join(trusted, "client", "ca.crt")],
      ...["--server-name", "function-wasm.crossplane-system"],
      ...(shown === null
        ? []
        : ["--cert", join(shown, "tls.crt"), "--key", join(shown, "tls.key")]),
    ];

    it.skipIf(missingTool("openssl"))(
      "has leaves that OpenSSL takes for self-signed",
      () => {
        for (const name of ["server", "client"]) {
          const verify = () =>
            execFileSync(
              "openssl",
              [
                ...["verify", "-CAfile", join(certs, name, "ca.crt")],
                join(certs, name, "tls.crt"),
              ],
              { stdio: "pipe" },
            );

          expect(verify).toThrow("error 18 at 0 depth lookup");
        }
      },
    );

    it.each(["server", "client"])(
      "has leaves of Crossplane's shape: %s",
      async (name) => {
        const read = (file: string) => readFile(join(certs, name, file));
        const authority = new X509Certificate(await read("ca.crt"));
        const leaf = new X509Certificate(await read("tls.crt"));
        const ends = new Date(leaf.validTo);
        // Of subjectKeyIdentifier and authorityKeyIdentifier, 2.5.29.14 and .35, in DER.
        const identifiers = ["0603551d0e", "0603551d23"];

        expect(leaf.subject.split("\n").sort()).toEqual([
          "C=Earth",
          "CN=Crossplane",
          "L=Earth",
          "O=Crossplane",
          "ST=Earth",
        ]);
        expect(leaf.issuer).toBe(leaf.subject);
        expect(authority.subject).toBe(leaf.subject);
        expect([leaf.serialNumber, authority.serialNumber]).toEqual([
          "07E6",
          "07E6",
        ]);
        expect(leaf.publicKey.asymmetricKeyDetails?.modulusLength).toBe(2048);
        expect(
          identifiers.filter((der) => leaf.raw.toString("hex").includes(der)),
        ).toEqual([]);
        expect(ends.getUTCFullYear()).toBe(new Date().getUTCFullYear() + 10);
        expect((await read("tls.key")).toString()).toMatch(
          /^-----BEGIN RSA PRIVATE KEY-----/,
        );
      },
    );

    it.each(["v1", "v1beta1"])(
      "answers a client that shows its certificate: %s",
      async (method) => {
        const result = await call(
          server,
          runFunctionRequest({ modulePath: "echo.wasm", timeout: "5s" }),
          ...["--method", method],
          ...flagsOf(certs, join(certs, "client")),
        );

        expect(result).toMatchObject({ code: "OK" });
        expect(
          readResponse(Buffer.from(result.responseHex, "hex")).fatal,
        ).toBeNull();
      },
    );

    it.each([
      { name: "no certificate", trusted: "certs", shown: null },
      {
        name: "one of another authority with the same name",
        trusted: "certs",
        shown: "foreign/client",
      },
      { name: "one for servers", trusted: "certs", shown: "certs/server" },
      {
        name: "its own, but does not accept the server's",
        trusted: "foreign",
        shown: "certs/client",
      },
    ])("refuses a client that shows $name", async ({ trusted, shown }) => {
      // One that has refused another lets nobody of that address in for a while.
      const strict = await serve("--tls-certs-dir", join(certs, "server"));
      const result = await call(
        strict,
        runFunctionRequest({ modulePath: "echo.wasm", timeout: "5s" }),
        ...flagsOf(
          join(dir, trusted),
          shown === null ? null : join(dir, shown),
        ),
        ...["--connect-within", "100ms", "--deadline", "500ms"],
      );

      // Such a connection is closed: before the call it makes the call wait, within it end.
      expect(["DeadlineExceeded", "Unavailable"]).toContain(result.code);
    });

    it("answers a call that waits while its client is refused, soon after it is not any more", async () => {
      const mounted = join(dir, "mounted");
      await cp(join(certs, "server"), mounted, { recursive: true });
      await cp(join(foreign, "server", "ca.crt"), join(mounted, "ca.crt"));
      const strict = await serve("--tls-certs-dir", mounted);

      const answer = call(
        strict,
        runFunctionRequest({ modulePath: "echo.wasm", timeout: "5s" }),
        ...flagsOf(certs, join(certs, "client")),
        ...["--connect-within", "100ms", "--deadline", "60s"],
      );
      await delay(5_000);
      await cp(join(certs, "server", "ca.crt"), join(mounted, "ca.crt"));

      const { code, elapsedUs } = await answer;
      expect(code).toBe("OK");
      expect(elapsedUs).toBeGreaterThan(4_000_000);
      // The client's own pauses between its attempts are 4 s long by then, and no longer.
      expect(elapsedUs).toBeLessThan(13_000_000);
    });

    it("lets a plaintext client wait until its deadline", async () => {
      const result = await call(
        server,
        runFunctionRequest({ modulePath: "echo.wasm", timeout: "5s" }),
        ...["--connect-within", "100ms", "--deadline", "500ms"],
      );

      expect(result.code).toBe("DeadlineExceeded");
    });

    it("ends with code 0 when told to", async () => {
      expect(await server.stop()).toBe(0);
    });

    describe("whose connections grow old", () => {
      let aging: ServerProcess;
      let relay: Relay;

      beforeAll(async () => {
        aging = await serve(
          ...["--tls-certs-dir", join(certs, "server")],
          ...["--max-connection-age", "2s"],
        );
        relay = await startRelay(aging.address);
      });
      afterAll(() => relay.close());

      it("fails no call while they roll over", async () => {
        const file = join(dir, "aging-request");
        await writeFile(
          file,
          runFunctionRequest({ modulePath: "echo.wasm", timeout: "5s" }),
        );

        const output = (await runGrpcGo(client, [
          ...["load", "--round-calls", "100000", "--max-duration", "9s"],
          ...["--concurrency", "8", "--connections", "2"],
          ...flagsOf(certs, join(certs, "client")),
          ...["--target", `aging,${relay.address},v1,${file}`],
        ])) as { targets: { calls: number; codes: unknown }[] };

        const [target] = output.targets;
        expect(target?.calls).toBeGreaterThan(100);
        expect(target).toMatchObject({
          codes: { OK: target?.calls },
          firstError: "",
          differentAnswers: 0,
        });
        // Two at the start, and two more every other second.
        expect(relay.connections()).toBeGreaterThanOrEqual(6);
      });

      it("lets a call end that is older than its connection may get", async () => {
        const before = relay.connections();

        const result = await call(
          { ...aging, address: relay.address },
          runFunctionRequest({ modulePath: "spin.wasm", timeout: "4s" }),
          ...flagsOf(certs, join(certs, "client")),
        );

        expect(result).toMatchObject({ code: "OK" });
        expect(
          readResponse(Buffer.from(result.responseHex, "hex")).fatal,
        ).toContain("spin.wasm");
        expect(result.elapsedUs).toBeGreaterThan(3_900_000);
        // The client has a new connection while the old one still has the call.
        expect(relay.connections()).toBeGreaterThan(before + 1);
      });
    });
  });

  describe("the client itself", () => {
    it("prints the percentiles of the latencies it measured", async () => {
      const server = await startEcho();
      servers.push(server);
      const file = join(dir, "echo-request");
      await writeFile(file, "any bytes");

      const output = (await runGrpcGo(client, [
        ...["load", "--samples", "--round-calls", "150", "--connections", "2"],
        ...["--target", `echo,${server.address},${ECHO_WHOLE},${file}`],
      ])) as { targets: Record<string, unknown>[] };

      const target = output.targets[0] ?? {};
      const samplesUs = target["samplesUs"] as number[];
      expect(samplesUs).toHaveLength(150);
      expect(target).toMatchObject({
        calls: 150,
        codes: { OK: 150 },
        differentAnswers: 0,
        p50Us: percentile(samplesUs, 50),
        p90Us: percentile(samplesUs, 90),
        p99Us: percentile(samplesUs, 99),
        maxUs: Math.max(...samplesUs),
      });
    });

    it.each([
      {
        name: "no command",
        args: [],
        want: "expected a command: call, load or certs",
      },
      {
        name: "an unknown command",
        args: ["push"],
        want: 'expected a command: call, load or certs, got "push"',
      },
      {
        name: "load without a target",
        args: ["load"],
        want: "expected at least one --target",
      },
      {
        name: "load beyond this machine",
        args: ["load", "--target", "a,192.0.2.1:9443,v1,request"],
        want: 'address "192.0.2.1": expected a loopback address such as 127.0.0.1',
      },
      {
        name: "load with no end",
        args: [
          "load",
          "--max-duration",
          "1h",
          "--target",
          "a,127.0.0.1:9443,v1,/dev/null",
        ],
        want: "--max-duration: expected more than 0 and at most 10m, got 1h0m0s",
      },
      {
        name: "certs without a place for them",
        args: ["certs"],
        want: "--out: expected a directory",
      },
      {
        name: "an unknown method",
        args: ["call", "--method", "v2"],
        want: 'method "v2": expected v1, v1beta1 or a path that starts with /',
      },
      {
        name: "a client certificate without a CA",
        args: [
          "call",
          "--request",
          "/dev/null",
          "--address",
          "127.0.0.1:1",
          "--cert",
          "c",
        ],
        want: "--cert, --key and --server-name need --ca",
      },
    ])("refuses $name", async ({ args, want }) => {
      await expect(runGrpcGo(client, args)).rejects.toThrow(want);
    });
  });
});

/** Passes connections on, and counts them. */
interface Relay {
  readonly address: string;
  connections(): number;
  close(): void;
}

async function startRelay(to: string): Promise<Relay> {
  let count = 0;
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    count++;
    const [host = "", port = ""] = to.split(":");
    const far = connect({ host, port: Number(port) });
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        sockets.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    near.pipe(far).pipe(near);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" ? address?.port : undefined;
  return {
    address: `127.0.0.1:${String(port)}`,
    connections: () => count,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

function hex(bytes: Uint8Array | null): string | null {
  return bytes === null ? null : Buffer.from(bytes).toString("hex");
}
