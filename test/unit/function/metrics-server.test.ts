import { once } from "node:events";
import { Agent, request, type IncomingMessage } from "node:http";
import {
  connect,
  createServer,
  Server as NetServer,
  type Socket,
} from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";

import {
  afterEach,
  beforeEach,
  describe,
  expect,
  it,
  onTestFinished,
  vi,
} from "vitest";

import type { ListenAddress } from "../../../src/function/bind.js";
import { FunctionError } from "../../../src/function/error.js";
import { startMetricsServer } from "../../../src/function/metrics-server.js";
import type { PageServer as MetricsServer } from "../../../src/function/page-server.js";
import {
  createMetrics,
  type Exposition,
  type MetricsPage,
} from "../../../src/function/metrics.js";
import type { Logger } from "../../../src/ports.js";
import { recordOutput } from "../../support/suite-output.js";
import { recordingLogger } from "./fixtures.js";

const get = "GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n";

const servers: MetricsServer[] = [];
const sockets: Socket[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

async function serve(
  options: {
    readonly address?: ListenAddress;
    readonly exposition?: Exposition;
    readonly logger?: Logger;
  } = {},
): Promise<MetricsServer> {
  const server = await startMetricsServer(
    options.address ?? { host: "127.0.0.1", port: 0 },
    options.exposition ?? createMetrics().exposition,
    options.logger ?? recordingLogger().logger,
  );
  servers.push(server);
  return server;
}

interface Reply {
  readonly status: number | undefined;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

async function ask(
  server: MetricsServer,
  options: {
    readonly path?: string;
    readonly method?: string;
    readonly accept?: string | string[];
    readonly agent?: Agent;
  } = {},
): Promise<Reply> {
  const { accept, agent } = options;
  const sent = request(`http://${server.address}`, {
    path: options.path ?? "/metrics",
    method: options.method ?? "GET",
    headers: accept === undefined ? {} : { accept },
    ...(agent === undefined ? {} : { agent }),
  }).end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  const body = await text(response);
  recordOutput("page", body);
  return {
    status: response.statusCode,
    headers: response.headers,
    body,
  };
}

async function connectTo(server: MetricsServer): Promise<Socket> {
  const [host = "", port] = server.address.split(":");
  const socket = connect(Number(port), host);
  sockets.push(socket);
  await once(socket, "connect");
  return socket;
}

/** What the server says to `bytes`, until it closes. */
async function tell(server: MetricsServer, bytes: string): Promise<string> {
  const socket = await connectTo(server);
  socket.write(bytes);
  const reply = await text(socket);
  recordOutput("page", reply);
  return reply;
}

/** What comes in until it contains `end`. */
async function readUntil(socket: Socket, end: string): Promise<string> {
  let received = "";
  while (!received.includes(end)) {
    const [chunk] = (await once(socket, "data")) as [Buffer];
    received += chunk.toString();
  }
  return received;
}

describe("function/metrics-server", () => {
  const openMetrics = {
    contentType: "application/openmetrics-text; version=1.0.0; charset=utf-8",
    type: "# TYPE function_wasm_module_requests counter\n",
    endsWithEof: true,
  };
  const classic = {
    contentType: "text/plain; version=0.0.4; charset=utf-8",
    type: "# TYPE function_wasm_module_requests_total counter\n",
    endsWithEof: false,
  };

  it.each([
    { name: "no Accept", accept: undefined, want: openMetrics },
    { name: "anything", accept: "*/*", want: openMetrics },
    { name: "text", accept: "text/plain", want: classic },
    {
      name: "text and OpenMetrics",
      accept: "text/plain,application/openmetrics-text",
      want: openMetrics,
    },
    {
      name: "text, not OpenMetrics",
      accept: "application/openmetrics-text;q=0,text/plain;q=0.1",
      want: classic,
    },
    {
      name: "two headers",
      accept: ["*/*;q=0.1", "text/plain;q=0.5"],
      want: classic,
    },
  ])("serves the metrics to $name", async ({ accept, want }) => {
    const { metrics, exposition } = createMetrics();
    const server = await serve({ exposition });
    metrics.requestEnded("skipped");

    const reply = await ask(server, accept === undefined ? {} : { accept });

    expect(reply.status).toBe(200);
    expect(reply.headers["content-type"]).toBe(want.contentType);
    expect(reply.headers["content-length"]).toBe(`${reply.body.length}`);
    expect(reply.body).toContain(want.type);
    expect(reply.body).toContain(
      '\nfunction_wasm_module_requests_total{outcome="skipped"} 1\n',
    );
    expect(reply.body.endsWith("\n# EOF\n")).toBe(want.endsWithEof);
  });

  it("answers HEAD with the headers of GET", async () => {
    // The process's own figures have one digit more now and then.
    const written = { contentType: "text/plain", body: "a_metric 1\n" };
    const server = await serve({ exposition: () => Promise.resolve(written) });

    const page = await ask(server);
    const head = await ask(server, { method: "HEAD" });

    expect(head.status).toBe(200);
    expect(head.headers["content-type"]).toBe(page.headers["content-type"]);
    expect(head.headers["content-length"]).toBe(`${page.body.length}`);
    expect(head.body).toBe("");
  });

  it("takes no notice of a query", async () => {
    const server = await serve();

    const reply = await ask(server, { path: "/metrics?name[]=x" });

    expect(reply.status).toBe(200);
  });

  it.each([
    { name: "the root", path: "/" },
    { name: "a longer path", path: "/metrics/" },
    { name: "a path below", path: "/metrics/hunter2" },
    { name: "a path that begins alike", path: "/metricsandmore" },
    { name: "other letters", path: "/METRICS" },
    { name: "an encoded letter", path: "/%6detrics" },
    { name: "the path in the query", path: "/?/metrics" },
    { name: "a whole URL", path: "http://localhost/metrics" },
    { name: "another method", path: "/", method: "POST" },
  ])("has nothing at $name", async ({ path, method = "GET" }) => {
    const server = await serve();

    const reply = await ask(server, { path, method });

    expect(reply.status).toBe(404);
    expect(reply.headers["content-type"]).toBe("text/plain; charset=utf-8");
    expect(reply.body).toBe("not found\n");
  });

  it.each(["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])(
    "does not do %s, nor waits for its body",
    async (method) => {
      const server = await serve();

      const reply = await tell(
        server,
        `${method} /metrics HTTP/1.1\r\nHost: hunter2\r\nX-Secret: hunter2\r\nContent-Length: 1000000\r\n\r\n`,
      );

      expect(reply).toMatch(/^HTTP\/1\.1 405 Method Not Allowed\r\n/);
      expect(reply).toMatch(/\r\nallow: GET, HEAD\r\n/);
      expect(reply).toMatch(/\r\n\r\nmethod not allowed\n$/);
      expect(reply.toLowerCase()).not.toMatch(/secret|hunter2/);
    },
  );

  it.each([
    {
      name: "headers that are too large",
      sent: `GET /metrics HTTP/1.1\r\nHost: h\r\nX-Secret: ${"hunter2".repeat(1200)}\r\n\r\n`,
      status: 431,
    },
    {
      name: "a target that is too long",
      sent: `GET /${"hunter2".repeat(2000)} HTTP/1.1\r\nHost: h\r\n\r\n`,
      status: 431,
    },
    { name: "what is no HTTP", sent: "hunter2\r\n\r\n", status: 400 },
  ])("refuses $name", async ({ sent, status }) => {
    const { logger, lines } = recordingLogger();
    const server = await serve({ logger });

    const reply = await tell(server, sent);

    expect(reply).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(reply.toLowerCase()).not.toMatch(/secret|hunter2/);
    expect(lines).toEqual([]);
  });

  it("answers 500 when the metrics cannot be read, and logs why", async () => {
    const { logger, lines } = recordingLogger();
    const server = await serve({
      exposition: () => Promise.reject(new Error("secret\nreason")),
      logger,
    });

    const reply = await ask(server);

    expect(reply.status).toBe(500);
    expect(reply.body).toBe("internal error\n");
    expect(lines).toEqual([
      {
        level: "error",
        fields: { path: "/metrics", reason: "secret reason" },
        message: "cannot make a page",
      },
    ]);
  });

  describe("a page", () => {
    beforeEach(() => {
      vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    });
    afterEach(() => vi.useRealTimers());

    /** Each page has its number. */
    function numbered() {
      let count = 0;
      return vi.fn<Exposition>(() =>
        Promise.resolve({ contentType: "text/plain", body: `${++count}` }),
      );
    }

    it("is written once a second in each format", async () => {
      const server = await serve({ exposition: numbered() });
      const read = async (accept: string) =>
        (await ask(server, { accept })).body;

      expect(await read("*/*")).toBe("1");
      expect(await read("application/openmetrics-text")).toBe("1");
      expect(await read("text/plain")).toBe("2");
      vi.advanceTimersByTime(999);
      expect(await read("*/*")).toBe("1");
      expect(await read("text/plain;q=0.5")).toBe("2");
      vi.advanceTimersByTime(1);
      expect(await read("text/plain")).toBe("3");
      expect(await read("*/*")).toBe("4");
    });

    it("is one for all who ask while it is written", async () => {
      let answer: (page: MetricsPage) => void = () => undefined;
      const written = new Promise<MetricsPage>((resolve) => (answer = resolve));
      const exposition = vi.fn(() => written);
      const server = await serve({ exposition });
      const client = await connectTo(server);

      client.write(get.repeat(2));
      const other = ask(server);
      await vi.waitUntil(() => exposition.mock.calls.length > 0);
      vi.useRealTimers();
      await delay(50);
      answer({ contentType: "text/plain", body: "page" });

      expect((await other).body).toBe("page");
      expect(await readUntil(client, "pageHTTP")).toMatch(/ 200 OK/);
      expect(exposition).toHaveBeenCalledOnce();
    });

    it("that could not be written is tried again with the next", async () => {
      const exposition = numbered().mockRejectedValueOnce(new Error("once"));
      const server = await serve({ exposition });

      expect((await ask(server)).status).toBe(500);
      vi.advanceTimersByTime(500);
      expect((await ask(server)).body).toBe("1");
      // A second after the one that failed.
      vi.advanceTimersByTime(500);
      expect((await ask(server)).body).toBe("1");
    });
  });

  describe("limits", () => {
    it("answers 16 requests on a connection and no more", async () => {
      const page = { contentType: "text/plain", body: "page" };
      const server = await serve({ exposition: () => Promise.resolve(page) });
      const client = await connectTo(server);

      client.write(get.repeat(17));
      const replies = await readUntil(client, " 503 Service Unavailable");

      expect(replies.match(/ 200 OK\r\n/g)).toHaveLength(16);
      expect(replies.match(/page/g)).toHaveLength(16);
      expect(replies).toMatch(/\r\nConnection: close\r\n\r\npageHTTP/);
    });

    it("keeps no process alive", async () => {
      await vi.waitUntil(() => openTcp().length === 0);
      const server = await serve();
      const client = await connectTo(server);
      client.write(get);
      await readUntil(client, "# EOF");

      client.unref();

      expect(openTcp()).toEqual([]);
    });
  });

  describe("close", () => {
    it("ends what is open: kept alive, silent, or in the middle", async () => {
      const agent = new Agent({ keepAlive: true });
      onTestFinished(() => {
        agent.destroy();
      });
      const never = new Promise<never>(() => undefined);
      const { exposition } = createMetrics();
      let reads = 0;
      const server = await serve({
        exposition: (accept) => (reads++ === 0 ? exposition(accept) : never),
      });
      await ask(server, { agent });
      const [kept] = Object.values(agent.freeSockets).flat();
      const silent = await connectTo(server);
      const halfway = await connectTo(server);
      halfway.write("GET /metrics HTTP/1.1\r\nHos");
      const waiting = await connectTo(server);
      // In the other format, of which there is no page yet.
      waiting.write(get.replace("Host: h", "Host: h\r\nAccept: text/plain"));
      await vi.waitUntil(() => reads === 2);

      const closings = [kept, silent, halfway, waiting].map((socket) =>
        once(socket?.resume() ?? agent, "close"),
      );
      await server.close();

      await Promise.all(closings);
      await expect(connectTo(server)).rejects.toThrow("ECONNREFUSED");
    });

    it("may be called twice", async () => {
      const server = await serve();

      await Promise.all([server.close(), server.close()]);
      await server.close();

      await expect(connectTo(server)).rejects.toThrow("ECONNREFUSED");
    });
  });

  describe("address", () => {
    const everywhere = { address: { host: null, port: 0 } };

    it("takes every address for no host", async () => {
      const server = await serve(everywhere);

      expect(server.address).toMatch(/^(\[::\]|0\.0\.0\.0):[1-9]\d*$/);
    });

    it.each(["EAFNOSUPPORT", "EADDRNOTAVAIL"])(
      "takes every IPv4 address where there is no IPv6: %s",
      async (code) => {
        failNextListen(code);

        const server = await serve(everywhere);

        expect(server.address).toMatch(/^0\.0\.0\.0:[1-9]\d*$/);
        expect((await ask(server)).status).toBe(200);
      },
    );

    it("refuses to start when every address fails for another reason", async () => {
      failNextListen("EACCES");

      await expect(serve(everywhere)).rejects.toThrow(
        "cannot listen on --metrics-address :0: listen EACCES",
      );
    });

    it.each([
      { name: "one address", host: "127.0.0.1", shown: "127.0.0.1" },
      { name: "every address", host: null, shown: "" },
    ])("refuses to start on $name that is taken", async ({ host, shown }) => {
      const occupant = createServer().listen(0, host ?? undefined);
      onTestFinished(() => {
        occupant.close();
      });
      await once(occupant, "listening");
      const address = occupant.address();
      const port =
        address === null || typeof address === "string" ? 0 : address.port;

      const started = serve({ address: { host, port } });

      await expect(started).rejects.toBeInstanceOf(FunctionError);
      await expect(started).rejects.toMatchObject({ code: "start-refused" });
      await expect(started).rejects.toThrow(
        `cannot listen on --metrics-address ${shown}:${port}: listen EADDRINUSE`,
      );
    });
  });
});

/** Makes the next server that listens fail as the system would. */
function failNextListen(code: string): void {
  const error = Object.assign(new Error(`listen ${code}`), { code });
  vi.spyOn(NetServer.prototype, "listen").mockImplementationOnce(function (
    this: NetServer,
  ) {
    process.nextTick(() => this.emit("error", error));
    return this;
  });
  onTestFinished(() => {
    vi.restoreAllMocks();
  });
}

/** The sockets, listening or connected, that keep this process alive. */
function openTcp(): readonly string[] {
  return process.getActiveResourcesInfo().filter((type) => /^TCP/.test(type));
}
