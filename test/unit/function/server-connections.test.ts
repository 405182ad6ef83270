import { once } from "node:events";
import {
  connect,
  type ClientHttp2Session,
  type IncomingHttpHeaders,
} from "node:http2";
import { connect as connectPlainly, createServer, type Socket } from "node:net";
import { performance } from "node:perf_hooks";
import { setTimeout as delay } from "node:timers/promises";
import zlib, { gzipSync } from "node:zlib";

import { status } from "@grpc/grpc-js";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";

import { EngineError } from "../../../src/engine/index.js";
import { createMetrics } from "../../../src/function/metrics.js";
import {
  startServer,
  type FunctionServer,
  type ServerOptions,
} from "../../../src/function/server.js";
import type { RequestScope } from "../../../src/ports.js";
import {
  fakeEngine,
  pipelineAround,
  realClock,
  recordingLogger,
  requestBytes,
  responseBytes,
} from "./fixtures.js";

const servers: FunctionServer[] = [];
const sessions: ClientHttp2Session[] = [];

afterEach(async () => {
  for (const session of sessions.splice(0)) session.destroy();
  await Promise.all(servers.splice(0).map((server) => server.drain(0)));
  vi.restoreAllMocks();
});

/** A server whose module is answered with `answer`. */
async function serve(
  answer: (scope: RequestScope) => Promise<Uint8Array>,
  options: Partial<ServerOptions> = {},
): Promise<number> {
  const { logger } = recordingLogger();
  const server = await startServer(
    {
      address: { host: "127.0.0.1", port: 0 },
      tlsCertsDir: null,
      maxReceiveBytes: 4 * 1024 * 1024,
      maxConnectionAgeMs: 0,
      maxConnectionAgeGraceMs: 0,
      onTlsReload: () => undefined,
      onClientRefused: () => undefined,
      ...options,
    },
    pipelineAround(
      fakeEngine((_request, scope) => answer(scope)),
      { logger },
    ),
    realClock,
    logger,
    createMetrics().grpc,
  );
  servers.push(server);
  return Number(server.address.split(":").at(-1));
}

const answered = () => Promise.resolve(responseBytes({}));

/** An answer that comes only when the caller has gone. */
function waiting() {
  const scopes: RequestScope[] = [];
  let ended: () => void = () => undefined;
  const whenEnded = new Promise<void>((resolve) => (ended = resolve));
  return {
    scopes,
    whenEnded,
    answer: (scope: RequestScope) => {
      scopes.push(scope);
      return new Promise<Uint8Array>((_resolve, reject) => {
        scope.onCancel(() => {
          ended();
          reject(new EngineError("run-cancelled", "cancelled"));
        });
      });
    },
  };
}

function open(port: number, socket?: Socket): ClientHttp2Session {
  const session = connect(
    `http://127.0.0.1:${port}`,
    socket === undefined ? {} : { createConnection: () => socket },
  );
  session.on("error", () => undefined);
  sessions.push(session);
  return session;
}

/** A message as gRPC frames it; `flag` 1 = compressed. */
function frameOf(message: Uint8Array, flag: 0 | 1 = 0): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt8(flag);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

/** Makes a call with nothing but HTTP/2, and resolves to its status. */
async function call(
  session: ClientHttp2Session,
  headers: IncomingHttpHeaders = {},
  body = frameOf(requestBytes()),
): Promise<{ code: number; message: string }> {
  const stream = session.request({
    ":method": "POST",
    ":path": "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction",
    "content-type": "application/grpc",
    te: "trailers",
    ...headers,
  });
  let ending: IncomingHttpHeaders = {};
  for (const event of ["response", "trailers"] as const) {
    stream.on(event, (each: IncomingHttpHeaders) => {
      ending = { ...ending, ...each };
    });
  }
  stream.on("error", () => undefined);
  stream.resume();
  stream.end(body);
  await new Promise((resolve) => stream.on("close", resolve));
  return {
    code: Number(ending["grpc-status"] ?? NaN),
    message: decodeURI(String(ending["grpc-message"] ?? "")),
  };
}

describe("function/server connections", () => {
  describe("a client that compresses", () => {
    it.each(["gzip", "deflate", "zstd", ""])(
      "is told, with '%s', that its messages must not be",
      async (encoding) => {
        const gunzip = vi.spyOn(zlib, "createGunzip");
        const inflate = vi.spyOn(zlib, "createInflate");
        const session = open(await serve(answered));
        const message = gzipSync(requestBytes());

        const ending = await call(
          session,
          { "grpc-encoding": encoding },
          frameOf(message, 1),
        );

        expect(ending).toEqual({
          code: status.INVALID_ARGUMENT,
          message: "grpc-encoding: expected messages that are not compressed",
        });
        expect(gunzip).not.toHaveBeenCalled();
        expect(inflate).not.toHaveBeenCalled();
      },
    );

    it("is answered as long as it does not", async () => {
      const session = open(await serve(answered));

      expect(await call(session, { "grpc-encoding": "gzip" })).toMatchObject({
        code: status.OK,
      });
      expect(
        await call(
          session,
          { "grpc-encoding": "identity" },
          frameOf(requestBytes(), 1),
        ),
      ).toMatchObject({ code: status.OK });
    });
  });

  it("lets one connection have 256 calls at once", async () => {
    const session = open(await serve(answered));
    await once(session, "remoteSettings");

    expect(session.remoteSettings.maxConcurrentStreams).toBe(256);
  });

  it("writes no header into the log, even one that grpc-js cannot read", async () => {
    const written = vi.spyOn(console, "error").mockReturnValue();
    const raw = vi.spyOn(process.stderr, "write").mockReturnValue(true);
    const session = open(await serve(answered));

    await call(session, { authorization: "Bearer hunter2\u00e9" });
    const texts = [...written.mock.calls, ...raw.mock.calls];
    written.mockRestore();
    raw.mockRestore();

    expect(texts).toEqual([]);
  });

  describe("grpc-timeout", () => {
    async function scopeOf(timeout: string) {
      const { answer, scopes, whenEnded } = waiting();
      const session = open(await serve(answer));
      const calledAtMs = performance.now();
      const ended = call(session, { "grpc-timeout": timeout });
      const stop = async () => {
        session.destroy();
        await whenEnded;
      };
      return { scopes, calledAtMs, ended, stop };
    }

    it.each([
      { timeout: "100S", wantMs: 100_000 },
      { timeout: "100000m", wantMs: 100_000 },
      { timeout: "99999999u", wantMs: 99_999.999 },
      { timeout: "2M", wantMs: 120_000 },
      { timeout: "1H", wantMs: 3_600_000 },
      { timeout: "596H", wantMs: 596 * 3_600_000 },
    ])("gives a run the deadline of $timeout", async ({ timeout, wantMs }) => {
      const { scopes, calledAtMs, stop } = await scopeOf(timeout);
      await expect.poll(() => scopes.length).toBe(1);

      const givenMs = (scopes[0]?.deadlineAtMs ?? 0) - calledAtMs;

      expect(givenMs).toBeGreaterThan(wantMs - 100);
      expect(givenMs).toBeLessThan(wantMs + 2_000);
      await stop();
    });

    it.each(["597H", "1194H", "99999999H", "99999999M", "99999999S"])(
      "takes %s for no deadline",
      async (timeout) => {
        const { scopes, stop } = await scopeOf(timeout);
        await expect.poll(() => scopes.length).toBe(1);
        // A timer that overflowed would have ended the call by now.
        await delay(50);

        expect(scopes[0]).toMatchObject({
          deadlineAtMs: Infinity,
          cancelled: false,
        });
        await stop();
      },
    );

    it.each(["0n", "0H", "1n", "100u", "1m"])(
      "ends a call when %s is over",
      async (timeout) => {
        const { ended } = await scopeOf(timeout);

        expect(await ended).toMatchObject({ code: status.DEADLINE_EXCEEDED });
      },
    );

    it.each(["5x", "x5S", "5S5", "123456789S", "-1S", "1.5S", "5 S", "S", ""])(
      "refuses '%s'",
      async (timeout) => {
        const { scopes, ended } = await scopeOf(timeout);

        expect(await ended).toEqual({
          code: status.INVALID_ARGUMENT,
          message:
            "grpc-timeout: expected up to 8 digits and one of H, M, S, m, u and n",
        });
        expect(scopes).toEqual([]);
      },
    );

    it("does without", async () => {
      const session = open(await serve(answered));

      expect(await call(session)).toMatchObject({ code: status.OK });
    });
  });

  describe("drain", () => {
    /** A call of which nothing but the headers has arrived. */
    function begin(
      session: ClientHttp2Session,
      path = "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction",
    ) {
      const stream = session.request({
        ":method": "POST",
        ":path": path,
        "content-type": "application/grpc",
        te: "trailers",
      });
      let code = NaN;
      stream.on("trailers", (trailers: IncomingHttpHeaders) => {
        code = Number(trailers["grpc-status"]);
      });
      stream.on("error", () => undefined);
      stream.resume();
      const ended = new Promise<number>((resolve) => {
        stream.on("close", () => resolve(code));
      });
      return { stream, ended };
    }

    it("waits for a request that is still arriving", async () => {
      const session = open(await serve(answered));
      // The server has seen what came before this call.
      await call(session);
      const { stream, ended } = begin(session);
      await new Promise((resolve) => session.ping(resolve));

      const drained = servers[0]?.drain(20_000);
      await delay(1_000);
      stream.end(frameOf(requestBytes()));

      expect(await ended).toBe(status.OK);
      await drained;
    });

    it("closes every connection in the end, of a client that does not listen, too", async () => {
      const port = await serve(answered);
      const { via, cut, hungUp } = await breakable(port);
      const watch = begin(open(port, via), "/grpc.health.v1.Health/Watch");
      watch.stream.end(frameOf(new Uint8Array()));
      await once(watch.stream, "response");
      cut();

      await servers[0]?.drain(50);

      expect(await Promise.race([hungUp, delay(2_000, "open")])).toBe("closed");
    });
  });

  describe("age", () => {
    const goaway = (session: ClientHttp2Session) =>
      new Promise<number>((resolve) => session.once("goaway", resolve));

    it("asks an old connection to end, and lets its calls end first", async () => {
      let release: () => void = () => undefined;
      const held = new Promise<void>((resolve) => (release = resolve));
      const port = await serve(() => held.then(answered), {
        maxConnectionAgeMs: 100,
        maxConnectionAgeGraceMs: 20_000,
      });
      const session = open(port);
      const ended = call(session);

      expect(await goaway(session)).toBe(0);
      await delay(50);
      release();

      expect(await ended).toMatchObject({ code: status.OK });
      await expect.poll(() => session.destroyed).toBe(true);
      expect(await call(open(port))).toMatchObject({ code: status.OK });
    });

    it("cuts what is left when the grace is over, and tells the run", async () => {
      const { answer, scopes, whenEnded } = waiting();
      const port = await serve(answer, {
        maxConnectionAgeMs: 50,
        maxConnectionAgeGraceMs: 100,
      });
      const session = open(port);

      const { code } = await call(session);

      await whenEnded;
      expect(code).toBeNaN();
      expect(scopes[0]?.cancelled).toBe(true);
    });

    it.each([{ maxConnectionAgeMs: 0 }, { maxConnectionAgeMs: 1e12 }])(
      "does not end a connection early: %j",
      async (options) => {
        const port = await serve(answered, options);
        const session = open(port);
        const ends = goaway(session);
        await call(session);

        expect(await Promise.race([ends, delay(100, "open")])).toBe("open");
      },
    );
  });

  describe("keepalive", () => {
    it("answers a client that pings all the time", async () => {
      const session = open(await serve(answered));
      let wentAway = false;
      session.on("goaway", () => (wentAway = true));
      await once(session, "connect");

      for (let i = 0; i < 500; i++) {
        await new Promise<void>((resolve, reject) => {
          session.ping((error) => (error ? reject(error) : resolve()));
        });
      }

      expect(await call(session)).toMatchObject({ code: status.OK });
      expect(wentAway).toBe(false);
    });

    it("ends the run of a client that vanished without a word", async () => {
      const { answer, scopes, whenEnded } = waiting();
      const port = await serve(answer, {
        keepaliveTimeMs: 50,
        keepaliveTimeoutMs: 100,
      });
      const { via, cut } = await breakable(port);
      const ended = call(open(port, via));
      await expect.poll(() => scopes.length).toBe(1);
      // It answers pings for now.
      await delay(250);
      expect(scopes[0]?.cancelled).toBe(false);

      cut();

      await whenEnded;
      expect(scopes[0]?.cancelled).toBe(true);
      sessions.at(-1)?.destroy();
      await ended;
    });

    it("closes a connection on which nobody ever spoke", async () => {
      const port = await serve(answered, {
        keepaliveTimeMs: 50,
        keepaliveTimeoutMs: 100,
      });
      const socket = connectPlainly({ host: "127.0.0.1", port });
      socket.on("error", () => undefined);
      socket.resume();

      await new Promise((resolve) => socket.on("close", resolve));
    });
  });

  /** A way to `port` that can go dead: nothing passes any more, and neither end is told. */
  async function breakable(
    port: number,
  ): Promise<{ via: Socket; cut: () => void; hungUp: Promise<string> }> {
    const relay = createServer();
    relay.listen(0, "127.0.0.1");
    await once(relay, "listening");
    const address = relay.address();
    const via = connectPlainly({
      host: "127.0.0.1",
      port: typeof address === "object" ? (address?.port ?? 0) : 0,
    });
    const [near] = (await once(relay, "connection")) as [Socket];
    const far = connectPlainly({ host: "127.0.0.1", port });
    near.pipe(far).pipe(near);
    for (const socket of [near, far]) socket.on("error", () => undefined);
    onTestFinished(() => {
      for (const socket of [near, far, via]) socket.destroy();
      relay.close();
    });
    return {
      via,
      cut() {
        near.unpipe(far);
        far.unpipe(near);
        near.pause();
        // What comes is lost, and the end of it is seen.
        far.resume();
      },
      hungUp: new Promise((resolve) =>
        far.on("close", () => resolve("closed")),
      ),
    };
  }
});
