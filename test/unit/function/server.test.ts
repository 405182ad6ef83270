import { once } from "node:events";
import { readFileSync } from "node:fs";
import {
  connect as connectPlainly,
  createServer,
  Server as NetServer,
} from "node:net";
import { connect as connectTls } from "node:tls";

import { fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import {
  Client,
  credentials,
  Metadata,
  status,
  type ChannelCredentials,
  type ServiceError,
} from "@grpc/grpc-js";
import {
  HealthImplementation,
  service as healthService,
} from "grpc-health-check";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";

import { EngineError, type Engine } from "../../../src/engine/index.js";
import { createMetrics } from "../../../src/function/metrics.js";
import {
  startServer,
  type FunctionServer,
  type ServerOptions,
} from "../../../src/function/server.js";
import { bytesField, WireReader } from "../../../src/function/wire.js";
import { RunFunctionResponseSchema } from "../../../src/gen/run_function_pb.js";
import type { RequestScope } from "../../../src/ports.js";
import { missingTool } from "../../support/tools.js";
import { createCertificateMaker } from "./certificates.js";
import {
  concat,
  fakeEngine,
  pipelineAround,
  realClock,
  recordingLogger,
  requestBytes,
  responseBytes,
} from "./fixtures.js";

const v1 = "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction";
const v1beta1 =
  "/apiextensions.fn.proto.v1beta1.FunctionRunnerService/RunFunction";

const servers: FunctionServer[] = [];
const clients: Client[] = [];

afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  await Promise.all(servers.splice(0).map((server) => server.drain(0)));
});

async function serve(
  engine: Engine,
  options: Partial<ServerOptions> = {},
): Promise<FunctionServer> {
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
    pipelineAround(engine, { logger }),
    realClock,
    logger,
    createMetrics().grpc,
  );
  servers.push(server);
  return server;
}

function clientOf(
  server: FunctionServer,
  creds: ChannelCredentials = credentials.createInsecure(),
  options = {},
): Client {
  const port = server.address.split(":").at(-1) ?? "";
  const client = new Client(`127.0.0.1:${port}`, creds, {
    "grpc.use_local_subchannel_pool": 1,
    "grpc.max_receive_message_length": -1,
    ...options,
  });
  clients.push(client);
  return client;
}

interface CallOptions {
  readonly path?: string;
  readonly deadlineMs?: number;
  /** Called with what ends the call. */
  readonly onStart?: (cancel: () => void) => void;
}

function call(
  client: Client,
  bytes: Uint8Array,
  { path = v1, deadlineMs, onStart }: CallOptions = {},
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const unary = client.makeUnaryRequest(
      path,
      (value: Uint8Array) => Buffer.from(value),
      (value) => value,
      bytes,
      new Metadata(),
      deadlineMs === undefined ? {} : { deadline: Date.now() + deadlineMs },
      (error, value) => {
        if (error !== null) reject(error);
        else resolve(value ?? Buffer.alloc(0));
      },
    );
    onStart?.(() => unary.cancel());
  });
}

async function failure(promise: Promise<unknown>): Promise<ServiceError> {
  try {
    await promise;
  } catch (thrown) {
    return thrown as ServiceError;
  }
  throw new Error("the call succeeded");
}

function decode(bytes: Uint8Array) {
  return fromBinary(RunFunctionResponseSchema, bytes);
}

/** An engine that waits for its caller to go away, and tells the scope it got. */
function waitingEngine() {
  const scopes: RequestScope[] = [];
  let started: () => void = () => undefined;
  let ended: () => void = () => undefined;
  const whenStarted = new Promise<void>((resolve) => (started = resolve));
  const whenEnded = new Promise<void>((resolve) => (ended = resolve));
  const engine = fakeEngine((_request, scope) => {
    scopes.push(scope);
    started();
    return new Promise((_resolve, reject) => {
      scope.onCancel(() => {
        ended();
        reject(new EngineError("run-cancelled", "cancelled"));
      });
    });
  });
  return { engine, scopes, whenStarted, whenEnded };
}

/** An engine whose one answer comes when it is told to. */
function heldEngine() {
  let started: () => void = () => undefined;
  let release: () => void = () => undefined;
  const whenStarted = new Promise<void>((resolve) => (started = resolve));
  const held = new Promise<void>((resolve) => (release = resolve));
  const engine = fakeEngine(async () => {
    started();
    await held;
    return responseBytes({ meta: { tag: "held" } });
  });
  return { engine, whenStarted, release: () => release() };
}

const echoEngine = () =>
  fakeEngine(({ bytes }) => Promise.resolve(bytesField(1023, bytes)));

describe("function/server", () => {
  it.each([{ path: v1 }, { path: v1beta1 }])(
    "answers $path with the module's bytes",
    async ({ path }) => {
      const client = clientOf(await serve(echoEngine()));
      const bytes = requestBytes();

      const answer = await call(client, bytes, { path });

      const echoed = bytesField(1023, bytes);
      expect(answer.subarray(0, echoed.length)).toEqual(Buffer.from(echoed));
      expect(decode(answer).meta?.tag).toBe("a-tag");
    },
  );

  it("answers a hundred calls at once on one connection", async () => {
    const client = clientOf(await serve(echoEngine()));

    const tags = await Promise.all(
      Array.from({ length: 100 }, async (_, i) => {
        const bytes = concat(
          requestBytes(),
          requestBytes({ meta: { tag: `tag-${i}` } }),
        );
        return decode(await call(client, bytes)).meta?.tag;
      }),
    );

    expect(tags).toEqual(Array.from({ length: 100 }, (_, i) => `tag-${i}`));
  });

  it("answers a failure with OK and a fatal result", async () => {
    const engine = fakeEngine(() =>
      Promise.reject(new EngineError("run-trap", "it trapped")),
    );
    const client = clientOf(await serve(engine));

    const answer = decode(await call(client, requestBytes()));

    expect(answer.results[0]?.message).toBe(
      "module Path greeter.wasm: it trapped",
    );
  });

  it("answers a request without an Input with a fatal result", async () => {
    const client = clientOf(await serve(echoEngine()));

    const answer = decode(await call(client, new Uint8Array()));

    expect(answer.results[0]?.message).toContain("the step has no input");
  });

  it("answers what is no protobuf with INVALID_ARGUMENT, and goes on", async () => {
    const client = clientOf(await serve(echoEngine()));

    const error = await failure(call(client, Buffer.from("<html>")));

    expect(error.code).toBe(status.INVALID_ARGUMENT);
    expect(error.details).toBe(
      "the request is not a protobuf message: a group ends that did not start",
    );
    expect(await call(client, requestBytes())).toBeInstanceOf(Buffer);
  });

  it("answers a request that is too large with RESOURCE_EXHAUSTED naming the flag", async () => {
    const client = clientOf(await serve(echoEngine()));
    const big = bytesField(2, new Uint8Array(5 * 1024 * 1024));

    const error = await failure(call(client, big));

    expect(error.code).toBe(status.RESOURCE_EXHAUSTED);
    expect(error.details).toMatch(
      /^Received message larger than max \(5242\d+ vs 4194304\): raise --max-recv-message-size$/,
    );
  });

  it("takes a larger request when the flag says so", async () => {
    const engine = fakeEngine(({ bytes }) =>
      Promise.resolve(responseBytes({ meta: { tag: `${bytes.length}` } })),
    );
    const maxReceiveBytes = 8 * 1024 * 1024;
    const client = clientOf(await serve(engine, { maxReceiveBytes }));
    const bytes = concat(
      requestBytes(),
      bytesField(2, new Uint8Array(5 * 1024 * 1024)),
    );

    const answer = decode(await call(client, bytes));

    expect(answer.meta?.tag).toBe(`${bytes.length}`);
  });

  it("hands the deadline to the run, and DEADLINE_EXCEEDED to the caller", async () => {
    const { engine, scopes, whenEnded } = waitingEngine();
    const client = clientOf(await serve(engine));
    const calledAtMs = performance.now();

    const error = await failure(
      call(client, requestBytes(), { deadlineMs: 300 }),
    );

    expect(error.code).toBe(status.DEADLINE_EXCEEDED);
    const givenMs = (scopes[0]?.deadlineAtMs ?? 0) - calledAtMs;
    expect(givenMs).toBeGreaterThan(200);
    expect(givenMs).toBeLessThan(400);
    await whenEnded;
  });

  it("says Infinity when the caller set no deadline", async () => {
    const { engine, scopes, whenStarted } = waitingEngine();
    const client = clientOf(await serve(engine));
    let cancel: () => void = () => undefined;

    const failed = failure(
      call(client, requestBytes(), { onStart: (c) => (cancel = c) }),
    );
    await whenStarted;
    cancel();

    expect(scopes[0]?.deadlineAtMs).toBe(Infinity);
    expect((await failed).code).toBe(status.CANCELLED);
  });

  it("tells the run when its caller cancels or vanishes", async () => {
    for (const how of ["cancel", "close"] as const) {
      const { engine, scopes, whenStarted, whenEnded } = waitingEngine();
      const client = clientOf(await serve(engine));
      let cancel: () => void = () => undefined;

      const failed = failure(
        call(client, requestBytes(), { onStart: (c) => (cancel = c) }),
      );
      await whenStarted;
      expect(scopes[0]?.cancelled).toBe(false);
      if (how === "cancel") cancel();
      else client.close();

      if (how === "cancel") await failed;
      else cancel();
      await whenEnded;
      expect(scopes[0]?.cancelled).toBe(true);
    }
  });

  it("never says UNIMPLEMENTED on a path it serves, whatever arrives", async () => {
    const client = clientOf(await serve(echoEngine()));
    const stream = client.makeClientStreamRequest(
      v1,
      (value: Uint8Array) => Buffer.from(value),
      (value) => value,
      () => undefined,
    );
    const code = new Promise((resolve) =>
      stream.on("status", (each) => resolve(each.code)),
    );

    // A unary call without its message.
    stream.end();

    expect(await code).toBe(status.INVALID_ARGUMENT);
    const unknown = await failure(
      call(client, requestBytes(), { path: "/other.Service/Method" }),
    );
    expect(unknown.code).toBe(status.UNIMPLEMENTED);
  });

  describe("health", () => {
    const check = (client: Client, service: string): Promise<unknown> =>
      new Promise((resolve, reject) => {
        const method = healthService["Check"];
        if (method === undefined) throw new Error("no Check");
        client.makeUnaryRequest(
          method.path,
          method.requestSerialize,
          method.responseDeserialize,
          { service },
          (error, value) => (error === null ? resolve(value) : reject(error)),
        );
      });

    it.each([
      { service: "" },
      { service: "apiextensions.fn.proto.v1.FunctionRunnerService" },
      { service: "apiextensions.fn.proto.v1beta1.FunctionRunnerService" },
    ])(
      "says SERVING for '$service' once it is told to, not before",
      async ({ service }) => {
        const server = await serve(echoEngine());
        const client = clientOf(server);

        expect(await check(client, service)).toEqual({ status: "NOT_SERVING" });
        server.setServing();
        expect(await check(client, service)).toEqual({ status: "SERVING" });
      },
    );

    it("answers calls before it is SERVING", async () => {
      const client = clientOf(await serve(echoEngine()));

      expect(await call(client, requestBytes())).toBeInstanceOf(Buffer);
    });

    it("knows no other service", async () => {
      const client = clientOf(await serve(echoEngine()));

      const error = await failure(check(client, "other"));

      expect(error).toMatchObject({
        code: status.NOT_FOUND,
        details: "no such service",
      });
    });

    it("keeps nothing of what is watched in vain", async () => {
      const watched = vi.spyOn(
        HealthImplementation.prototype as unknown as { addWatcher(): void },
        "addWatcher",
      );
      const method = healthService["Watch"];
      if (method === undefined) throw new Error("no Watch");
      const client = clientOf(await serve(echoEngine()));
      const first = (service: string) => {
        const watch = client.makeServerStreamRequest(
          method.path,
          method.requestSerialize,
          method.responseDeserialize,
          { service },
        );
        watch.on("error", () => undefined);
        return new Promise((resolve) => watch.once("data", resolve));
      };

      expect(await first("other")).toEqual({ status: "SERVICE_UNKNOWN" });
      expect(watched).not.toHaveBeenCalled();
      expect(await first("")).toEqual({ status: "NOT_SERVING" });
      expect(watched).toHaveBeenCalledTimes(1);
    });

    it("tells watchers NOT_SERVING while draining for good, and does not wait for them", async () => {
      const server = await serve(echoEngine());
      server.setServing();
      const method = healthService["Watch"];
      if (method === undefined) throw new Error("no Watch");
      const watch = clientOf(server).makeServerStreamRequest(
        method.path,
        method.requestSerialize,
        method.responseDeserialize,
        { service: "" },
      );
      watch.on("error", () => undefined);
      const seen: unknown[] = [];
      const first = new Promise<void>((resolve) => {
        watch.on("data", (each) => {
          seen.push(each);
          resolve();
        });
      });
      await first;

      const startedAtMs = performance.now();
      const drained = server.drain(20_000);
      // What was slow to get ready.
      server.setServing();
      await drained;

      expect(seen).toEqual([{ status: "SERVING" }, { status: "NOT_SERVING" }]);
      expect(performance.now() - startedAtMs).toBeLessThan(5_000);
    });
  });

  describe("reflection", () => {
    // Of grpc.reflection.v1: the request's and the response's field numbers.
    const listServices = bytesField(7, new Uint8Array());
    const fileContainingSymbol = (symbol: string) =>
      bytesField(4, Buffer.from(symbol));

    async function ask(version: string, request: Uint8Array): Promise<Buffer> {
      const client = clientOf(await serve(echoEngine()));
      const stream = client.makeBidiStreamRequest(
        `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`,
        (value: Uint8Array) => Buffer.from(value),
        (value) => value,
      );
      const answer = new Promise<Buffer>((resolve, reject) => {
        stream.on("data", resolve);
        stream.on("error", reject);
      });
      stream.write(request);
      const result = await answer;
      stream.end();
      return result;
    }

    /** The values found by following field numbers from message to message. */
    function valuesAt(
      bytes: Buffer,
      [first, ...rest]: readonly number[],
    ): Buffer[] {
      if (first === undefined) return [bytes];
      const values: Buffer[] = [];
      const reader = new WireReader(bytes);
      while (reader.next()) {
        if (reader.fieldNumber !== first) continue;
        const value = bytes.subarray(reader.valueStart, reader.valueEnd);
        values.push(...valuesAt(value, rest));
      }
      return values;
    }

    it.each([{ version: "v1" }, { version: "v1alpha" }])(
      "lists the services in $version",
      async ({ version }) => {
        const answer = await ask(version, listServices);

        expect(valuesAt(answer, [6, 1, 1]).map(String)).toEqual([
          "apiextensions.fn.proto.v1.FunctionRunnerService",
          "apiextensions.fn.proto.v1beta1.FunctionRunnerService",
          "grpc.health.v1.Health",
        ]);
      },
    );

    it("describes the beta service in its own package", async () => {
      const symbol = "apiextensions.fn.proto.v1beta1.FunctionRunnerService";

      const answer = await ask("v1", fileContainingSymbol(symbol));

      const files = valuesAt(answer, [4, 1]).map((bytes) =>
        fromBinary(FileDescriptorProtoSchema, bytes),
      );
      expect(files.map((file) => file.name).sort()).toEqual([
        "google/protobuf/duration.proto",
        "google/protobuf/struct.proto",
        "run_function_v1beta1.proto",
      ]);
      const beta = files.find((file) => file.name.startsWith("run_function"));
      expect(beta?.package).toBe("apiextensions.fn.proto.v1beta1");
      expect(beta?.service[0]?.method[0]?.inputType).toBe(
        ".apiextensions.fn.proto.v1beta1.RunFunctionRequest",
      );
      expect(JSON.stringify(beta?.messageType)).not.toContain("proto.v1.");
    });
  });

  describe("drain", () => {
    it("lets the calls being answered end, and takes no more", async () => {
      const { engine, whenStarted, release } = heldEngine();
      const server = await serve(engine);
      const client = clientOf(server);
      const answer = call(client, requestBytes());
      await whenStarted;

      const drained = server.drain(20_000);
      const late = await failure(
        call(clientOf(server), requestBytes(), { deadlineMs: 2000 }),
      );
      release();

      expect(decode(await answer).meta?.tag).toBe("held");
      await drained;
      expect(late.code).toBe(status.UNAVAILABLE);
    });

    it("cancels what is left when its time is up", async () => {
      const { engine, scopes, whenStarted } = waitingEngine();
      const server = await serve(engine);
      const failed = failure(call(clientOf(server), requestBytes()));
      await whenStarted;

      await server.drain(50);

      expect(scopes[0]?.cancelled).toBe(true);
      expect([status.CANCELLED, status.UNAVAILABLE]).toContain(
        (await failed).code,
      );
    });

    it("ends at once when nobody is connected", async () => {
      const server = await serve(echoEngine());
      const startedAtMs = performance.now();

      await server.drain(20_000);

      expect(performance.now() - startedAtMs).toBeLessThan(400);
    });
  });

  describe("address", () => {
    it("takes every address for no host", async () => {
      const server = await serve(echoEngine(), {
        address: { host: null, port: 0 },
      });

      expect(server.address).toMatch(/^(\[::\]|0\.0\.0\.0):[1-9]\d*$/);
      expect(await call(clientOf(server), requestBytes())).toBeInstanceOf(
        Buffer,
      );
    });

    it("takes every IPv4 address where there is no IPv6", async () => {
      const withoutIpv6 = Object.assign(new Error("listen EAFNOSUPPORT"), {
        code: "EAFNOSUPPORT",
      });
      vi.spyOn(NetServer.prototype, "listen").mockImplementationOnce(function (
        this: NetServer,
      ) {
        process.nextTick(() => this.emit("error", withoutIpv6));
        return this;
      });
      onTestFinished(() => {
        vi.restoreAllMocks();
      });

      const server = await serve(echoEngine(), {
        address: { host: null, port: 0 },
      });

      expect(server.address).toMatch(/^0\.0\.0\.0:[1-9]\d*$/);
    });

    it("refuses to start where it cannot listen", async () => {
      const occupant = createServer();
      await new Promise<void>((resolve) => {
        occupant.listen(0, "127.0.0.1", resolve);
      });
      const address = occupant.address();
      const port =
        address === null || typeof address === "string" ? 0 : address.port;

      await expect(
        serve(echoEngine(), { address: { host: "127.0.0.1", port } }),
      ).rejects.toThrow(
        `cannot listen on --address 127.0.0.1:${port}: listen EADDRINUSE`,
      );
      occupant.close();
    });
  });

  /** A server with Crossplane's certificates, and what a client needs, in PEM. */
  async function serveWithTls() {
    const maker = createCertificateMaker();
    onTestFinished(() => maker.remove());
    maker.authority("ca");
    maker.leaf({ name: "tls", authority: "ca", usage: "serverAuth" });
    const { cert, key } = maker.leaf({
      name: "client",
      authority: "ca",
      usage: "clientAuth",
    });
    return {
      server: await serve(echoEngine(), { tlsCertsDir: maker.directory }),
      ca: readFileSync(`${maker.directory}/ca.crt`),
      cert: readFileSync(cert),
      key: readFileSync(key),
    };
  }

  it.skipIf(missingTool("openssl"))(
    "takes no client whose handshake ends after it has begun to drain",
    async () => {
      const { server, cert, key } = await serveWithTls();
      const plain = connectPlainly(
        Number(server.address.split(":").at(-1)),
        "127.0.0.1",
      );
      await once(plain, "connect");
      await server.drain(0);

      const socket = connectTls({
        socket: plain,
        ALPNProtocols: ["h2"],
        rejectUnauthorized: false,
        cert: cert,
        key: key,
      });
      socket.on("error", () => undefined);
      let heardBytes = 0;
      socket.on("data", (data: Buffer) => (heardBytes += data.length));
      await new Promise((resolve) => socket.on("close", resolve));

      expect(heardBytes).toBe(0);
    },
  );

  it.skipIf(missingTool("openssl"))(
    "serves Crossplane's certificates, and nobody without one",
    async () => {
      const { server, ca, cert, key } = await serveWithTls();
      // No OpenSSL client can judge these certificates; Crossplane's Go client can.
      const lenient = {
        rejectUnauthorized: false,
        checkServerIdentity: () => undefined,
      };
      const withCertificate = credentials.createSsl(ca, key, cert, lenient);
      const without = credentials.createSsl(ca, null, null, lenient);

      const answer = await call(
        clientOf(server, withCertificate),
        requestBytes(),
      );
      const refused = await failure(
        call(clientOf(server, without), requestBytes(), { deadlineMs: 1500 }),
      );
      const plain = await failure(
        call(clientOf(server), requestBytes(), { deadlineMs: 1500 }),
      );

      expect(decode(answer).meta?.tag).toBe("a-tag");
      for (const error of [refused, plain]) {
        expect([status.UNAVAILABLE, status.DEADLINE_EXCEEDED]).toContain(
          error.code,
        );
      }
    },
  );
});
