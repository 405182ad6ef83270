import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { buffer } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type {
  HttpBody,
  HttpResponse,
  Transport,
} from "../../../../src/loader/http/transport.js";
import {
  createTransport,
  type TransportOptions,
} from "../../../../src/loader/http/undici-transport.js";
import type { Clock, RequestScope } from "../../../../src/ports.js";
import { createRequestScope } from "../../../../src/request-scope.js";
import { endless, get } from "./doubles.js";
import { createServers, type Servers } from "./servers.js";

/** Times are real, but what is left of them is what the tests say. */
const clock: Clock = { nowMs: () => 0, monotonicMs: () => 1_000 };

let servers: Servers;
let directory: string;
const transports: Transport[] = [];

describe("loader/http/undici-transport", () => {
  beforeEach(() => {
    servers = createServers();
    directory = mkdtempSync(path.join(tmpdir(), "function-wasm-http-"));
  });
  afterEach(async () => {
    await Promise.all(transports.splice(0).map((each) => each.close()));
    await servers.close();
    rmSync(directory, { recursive: true });
  });

  describe("sends", () => {
    it("a request, with its headers and a few of its own", async () => {
      const { port, asked } = await recorder();

      await ask(port, {
        headers: {
          accept: "a/b",
          "accept-encoding": "gzip",
          "user-agent": "else",
        },
        at: "/a%20b?x=%2F&y",
      });

      expect(await asked).toMatchObject({
        method: "GET",
        url: "/a%20b?x=%2F&y",
        headers: {
          accept: "a/b",
          "accept-encoding": "identity",
          connection: "keep-alive",
          host: `127.0.0.1:${port}`,
          "user-agent": "function-wasm",
        },
      });
    });

    it("bytes", async () => {
      const { port, asked } = await recorder();

      await ask(port, { method: "PUT", body: bytesBody("hello") });

      expect(await asked).toMatchObject({
        method: "PUT",
        headers: { "content-length": "5" },
        body: Buffer.from("hello"),
      });
    });

    it("no bytes", async () => {
      const { port, asked } = await recorder();

      await ask(port, { method: "POST", body: bytesBody("") });

      expect(await asked).toMatchObject({
        headers: { "content-length": "0" },
        body: Buffer.alloc(0),
      });
    });

    it("a file, as it is each time, and no more of it than was said", async () => {
      const file = tempFile(Buffer.alloc(600_000, "a"));
      const body = {
        kind: "file",
        filePath: file,
        sizeBytes: 600_000,
      } as const;
      const first = await recorder();
      const second = await recorder();

      await ask(first.port, { method: "PATCH", body });
      writeFileSync(file, Buffer.alloc(700_000, "b"));
      await ask(second.port, { method: "PATCH", body });

      const asked = await first.asked;
      expect(asked.headers).toMatchObject({ "content-length": "600000" });
      expect(asked.body.equals(Buffer.alloc(600_000, "a"))).toBe(true);
      expect((await second.asked).body.equals(Buffer.alloc(600_000, "b"))).toBe(
        true,
      );
    });

    it("an empty file", async () => {
      const { port, asked } = await recorder();
      const filePath = tempFile(Buffer.alloc(0));

      await ask(port, {
        method: "PUT",
        body: { kind: "file", filePath, sizeBytes: 0 },
      });

      expect((await asked).body).toEqual(Buffer.alloc(0));
    });

    it.each([
      {
        name: "is not there",
        spoil: (file: string) => rmSync(file),
        code: "module-unreadable",
        want: "the file cannot be read (ENOENT)",
      },
      {
        name: "is shorter than was said",
        spoil: (file: string) => truncateSync(file, 99_999),
        code: "module-changed",
        want: "the file became shorter while it was being sent",
      },
    ])("no file that $name", async ({ spoil, code, want }) => {
      const port = await servers.http(() => undefined);
      const filePath = tempFile(Buffer.alloc(100_000));
      spoil(filePath);

      await expect(
        ask(port, {
          method: "PUT",
          body: { kind: "file", filePath, sizeBytes: 100_000 },
        }),
      ).rejects.toMatchObject({ code, message: want });
    });

    it("no header with a second line in it, nor shows it", async () => {
      const { port } = await recorder();

      const failure: unknown = await ask(port, {
        headers: { authorization: "hunter2\r\nx: y" },
      }).catch((error: unknown) => error);

      expect(failure).toMatchObject({ code: "answer-invalid" });
      expect(String(failure)).not.toContain("hunter2");
      expect(servers.connections).toBe(0);
    });

    it("one request after the other over one connection", async () => {
      const port = await servers.http((_, response) => response.end("hello"));
      const transport = create();

      for (let i = 0; i < 3; i++)
        await text(
          await transport.send(get(`http://127.0.0.1:${port}/`), endless()),
        );

      expect(servers.connections).toBe(1);
    });

    it("nothing over a connection that a server wants to be kept for long", async () => {
      const port = await servers.http((_, response) => {
        response.setHeader("keep-alive", "timeout=600");
        response.end("hello");
      });
      const transport = create({ maxUnusedConnectionMs: 1_000 });

      await text(
        await transport.send(get(`http://127.0.0.1:${port}/`), endless()),
      );

      expect(servers.connections).toBe(1);
      await vi.waitFor(() => expect(servers.openConnections).toBe(0), 20_000);
    });

    it("no more than 16 at once, and the rest when those are done", async () => {
      const waiting: (() => void)[] = [];
      let isOpen = false;
      const port = await servers.http((_, response) => {
        if (isOpen) response.end("x");
        else waiting.push(() => response.end("x"));
      });
      const transport = create();

      const answers = Array.from({ length: 20 }, async () =>
        text(await transport.send(get(`http://127.0.0.1:${port}/`), endless())),
      );
      await vi.waitFor(() => expect(waiting).toHaveLength(16), 5_000);
      isOpen = true;
      for (const answer of waiting) answer();

      expect(await Promise.all(answers)).toEqual(new Array(20).fill("x"));
      expect(servers.connections).toBe(16);
    });
  });

  it.each([
    { name: "bulk keeps no quick one", hanging: true, next: false },
    { name: "quick keeps no bulk one", hanging: false, next: true },
  ])("a crowd of $name waiting", async ({ hanging, next }) => {
    const port = await servers.http(({ url }, response) => {
      if (url === "/next") response.end("x");
      else response.write("begun, and without end");
    });
    const transport = create();
    const leaving = createRequestScope({ deadlineAtMs: Infinity });
    const crowd = Array.from({ length: 20 }, () =>
      transport.send(
        get(`http://127.0.0.1:${port}/`, { isBulk: hanging }),
        leaving,
      ),
    );
    const begun = Promise.all(crowd.slice(0, 16));
    await begun;

    const response = await transport.send(
      get(`http://127.0.0.1:${port}/next`, { isBulk: next }),
      inMs(5_000),
    );

    expect(await text(response)).toBe("x");
    leaving.cancel();
    for (const each of (await Promise.allSettled(crowd)).slice(16))
      expect(each).toMatchObject({ reason: { code: "resolve-cancelled" } });
  });

  describe("receives", () => {
    it("whatever status there is, with headers as they came", async () => {
      const port = await raw(
        "HTTP/1.1 418 I am hunter2\r\nX-A: 1\r\nx-a: 2\r\nx-b: 3\r\nconstructor: 4\r\n__proto__: 5\r\ncontent-length: 2\r\n\r\nhi",
      );

      const response = await ask(port);

      expect(response.status).toBe(418);
      expect(response.url.href).toBe(`http://127.0.0.1:${port}/`);
      const names = ["x-a", "x-b", "constructor", "__proto__", "toString"];
      expect(names.map((name) => response.headers(name))).toEqual([
        ["1", "2"],
        ["3"],
        ["4"],
        ["5"],
        [],
      ]);
      expect(await text(response)).toBe("hi");
    });

    it("redirects as they are", async () => {
      const port = await servers.http((_, response) => {
        response.writeHead(302, { location: "/else" }).end();
      });

      const response = await ask(port);

      expect(response.status).toBe(302);
      expect(response.headers("location")).toEqual(["/else"]);
    });

    it("compressed bytes as they are", async () => {
      const port = await servers.http((_, response) => {
        response.writeHead(200, { "content-encoding": "gzip" }).end("no gzip");
      });

      expect(await text(await ask(port))).toBe("no gzip");
    });

    it("an answer to HEAD, which has a length and no body", async () => {
      const port = await servers.http((_, response) => {
        response.writeHead(200, { "content-length": "1000" }).end();
      });

      const response = await ask(port, { method: "HEAD" });

      expect(response.headers("content-length")).toEqual(["1000"]);
      expect(await text(response)).toBe("");
    });

    it("a body that ends with the connection", async () => {
      const port = await raw("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nall");

      expect(await text(await ask(port))).toBe("all");
    });

    it("no cookie that it would send back", async () => {
      const cookies: unknown[] = [];
      const port = await servers.http((request, response) => {
        cookies.push(request.headers.cookie);
        response.writeHead(200, { "set-cookie": "a=b" }).end();
      });
      const transport = create();

      for (let i = 0; i < 2; i++) {
        const response = await transport.send(
          get(`http://127.0.0.1:${port}/`),
          endless(),
        );
        await response.discard();
      }

      expect(cookies).toEqual([undefined, undefined]);
    });

    it("nothing through a proxy", async () => {
      const saved = process.env["http_proxy"];
      const proxy = await servers.http((_, response) => response.end("proxy"));
      process.env["http_proxy"] = `http://127.0.0.1:${proxy}`;
      const port = await servers.http((_, response) => response.end("server"));

      try {
        expect(await text(await ask(port))).toBe("server");
      } finally {
        if (saved === undefined) delete process.env["http_proxy"];
        else process.env["http_proxy"] = saved;
      }
    });
  });

  describe("refuses http", () => {
    const refusal = {
      code: "plain-http-refused",
      message: expect.stringMatching(
        /^h\.test(:81)?: http is for localhost, .* --insecure-registry only$/u,
      ) as string,
    };

    it.each([
      { url: "http://h.test/", insecureHosts: [] },
      { url: "http://h.test:81/", insecureHosts: ["h.test:80", "test"] },
    ])("to $url with $insecureHosts", async ({ url, insecureHosts }) => {
      const transport = create({ insecureHosts });

      await expect(transport.send(get(url), endless())).rejects.toMatchObject(
        refusal,
      );
    });

    it("except to hosts of the operator's", async () => {
      const transport = create({ insecureHosts: ["h.invalid"] });

      await expect(
        transport.send(get("http://h.invalid/"), inMs(5_000)),
      ).rejects.toMatchObject({
        code: "registry-unreachable",
        message: expect.stringMatching(
          /^h\.invalid: .* \(E[A-Z_]+\)$/u,
        ) as string,
      });
    });
  });

  describe("fails when", () => {
    it("nobody listens", async () => {
      const port = await servers.tcp(() => undefined);
      await servers.close();

      await expect(ask(port)).rejects.toMatchObject({
        code: "registry-unreachable",
        message: `127.0.0.1:${port}: connection refused (ECONNREFUSED)`,
      });
      servers = createServers();
    });

    it.each([
      { name: "garbage", sent: "SSH-2.0-x\r\n\r\n" },
      {
        name: "two lengths",
        sent: "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
      },
      {
        name: "a length and chunks",
        sent: "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
      },
      {
        name: "another protocol",
        sent: "HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
      },
      { name: "continue, unasked", sent: "HTTP/1.1 100 Continue\r\n\r\n" },
      {
        name: "too many headers",
        sent: `HTTP/1.1 200 OK\r\n${"x: 0123456789\r\n".repeat(7_000)}\r\n`,
      },
      {
        name: "one header too long",
        sent: `HTTP/1.1 200 OK\r\nx: ${"a".repeat(70_000)}`,
      },
      {
        name: "early hints without end",
        sent: "HTTP/1.1 103 Early\r\n\r\n".repeat(9),
      },
    ])("the answer is $name", async ({ sent }) => {
      const port = await raw(sent, "stay");

      await expect(ask(port)).rejects.toMatchObject({
        code: "answer-invalid",
        message: expect.stringMatching(
          new RegExp(`^127.0.0.1:${port}: [^:]+$`, "u"),
        ) as string,
      });
    });

    it.each([
      { name: "before it says anything", sent: "" },
      { name: "within the headers", sent: "HTTP/1.1 200 OK\r\ncontent-" },
    ])("the server leaves $name", async ({ sent }) => {
      const port = await raw(sent);

      await expect(ask(port)).rejects.toMatchObject({
        code: "registry-unreachable",
        message: `127.0.0.1:${port}: the connection was closed before an answer came (UND_ERR_SOCKET)`,
      });
    });

    it("the server resets the connection", async () => {
      const port = await servers.tcp((socket) => {
        socket.once("data", () => socket.resetAndDestroy());
      });

      await expect(ask(port)).rejects.toMatchObject({
        code: "registry-unreachable",
        message: `127.0.0.1:${port}: the connection was closed before an answer came (ECONNRESET)`,
      });
    });

    it.each([
      { name: "before its length is reached", head: "content-length: 9" },
      {
        name: "and was to close anyway",
        head: "connection: close\r\ncontent-length: 9",
      },
      {
        name: "between chunks",
        head: "transfer-encoding: chunked",
        body: "2\r\nab\r\n",
      },
      {
        name: "between chunks, and was to close anyway",
        head: "connection: close\r\ntransfer-encoding: chunked",
        body: "2\r\nab\r\n",
      },
    ])("the body ends $name", async ({ head, body = "ab" }) => {
      const port = await raw(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n${body}`);
      const { got, failure } = await readAll(await ask(port));

      expect(got).toBe("ab");
      expect(failure).toMatchObject({
        code: "registry-unreachable",
        message: expect.stringContaining(
          `127.0.0.1:${port}: the answer ended early (`,
        ) as string,
      });
    });

    it("the connection is reset within the body", async () => {
      let reset = (): void => undefined;
      const port = await servers.tcp((socket) => {
        reset = () => socket.resetAndDestroy();
        socket.once("data", () => {
          socket.write("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nab");
        });
      });
      const response = await ask(port);
      reset();
      // Also for one who begins to read later.
      await untilClosed();

      expect((await readAll(response)).failure).toMatchObject({
        code: "registry-unreachable",
        message: `127.0.0.1:${port}: the answer ended early (ECONNRESET)`,
      });
    });

    it("chunks are garbage", async () => {
      const port = await raw(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\nZZ\r\n",
        "stay",
      );

      expect((await readAll(await ask(port))).failure).toMatchObject({
        code: "answer-invalid",
        message: `127.0.0.1:${port}: the answer is not valid HTTP (HTTPParserError)`,
      });
    });
  });

  describe("waits no longer than it may", () => {
    // Together, for each takes a second: undici's timers are no finer.
    it("for a connection, for headers, and for more of a body", async () => {
      const port = await raw("", "stay");
      const slow = await raw("HTTP/1.1 200 OK\r\n", "stay");
      const stalling = await raw(
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nab",
        "stay",
      );
      const fail = async (url: string, options: Partial<TransportOptions>) => {
        try {
          return await text(await create(options).send(get(url), endless()));
        } catch (error) {
          return error;
        }
      };

      const failures = await Promise.all([
        fail(`https://127.0.0.1:${port}/`, { connectTimeoutMs: 50 }),
        fail(`http://127.0.0.1:${slow}/`, { idleTimeoutMs: 50 }),
        fail(`http://127.0.0.1:${stalling}/`, { idleTimeoutMs: 50 }),
      ]);

      expect(failures).toMatchObject([
        {
          code: "registry-unreachable",
          message: `127.0.0.1:${port}: no connection in time (UND_ERR_CONNECT_TIMEOUT)`,
        },
        {
          code: "registry-unreachable",
          message: `127.0.0.1:${slow}: connected, but no answer in time (UND_ERR_HEADERS_TIMEOUT)`,
        },
        {
          code: "registry-unreachable",
          message: `127.0.0.1:${stalling}: the answer stalled (UND_ERR_BODY_TIMEOUT)`,
        },
      ]);
    });

    it.each([
      { name: "a connection", scheme: "https", sent: "" },
      { name: "an answer", scheme: "http", sent: "" },
      { name: "headers", scheme: "http", sent: "HTTP/1.1 200 OK\r\nx: y\r\n" },
    ])("for $name, by its scope's deadline", async ({ scheme, sent }) => {
      const port = await raw(sent, "stay");
      const send = create().send(
        get(`${scheme}://127.0.0.1:${port}/`),
        inMs(100),
      );

      await expect(send).rejects.toMatchObject({
        code: "registry-unreachable",
        message: `127.0.0.1:${port}: no answer within 0.1 s`,
      });
    });

    it("for the end of a body that drips, by its scope's deadline", async () => {
      const port = await servers.http((_, response) => {
        const dripping = setInterval(() => response.write("a"), 5);
        response.on("close", () => clearInterval(dripping));
      });

      const { got, failure } = await readAll(
        await ask(port, { scope: inMs(400) }),
      );

      expect(got).toMatch(/^a+$/u);
      expect(failure).toMatchObject({
        code: "registry-unreachable",
        message: `127.0.0.1:${port}: the answer did not end within 0.4 s`,
      });
      await untilClosed();
    });

    it("for its turn, by its scope's deadline", async () => {
      const port = await servers.http(() => undefined);
      const transport = create();
      const send = (scope: RequestScope) =>
        transport.send(get(`http://127.0.0.1:${port}/`), scope);
      const leaving = createRequestScope({ deadlineAtMs: Infinity });
      const others = Array.from({ length: 16 }, () => send(leaving));

      await expect(send(inMs(50))).rejects.toMatchObject({
        code: "registry-unreachable",
      });
      leaving.cancel();
      for (const other of await Promise.allSettled(others))
        expect(other).toMatchObject({ reason: { code: "resolve-cancelled" } });
    });

    it.each([
      {
        name: "has no time left",
        scope: () => inMs(0),
        want: "registry-unreachable",
      },
      { name: "is over", scope: () => gone(), want: "resolve-cancelled" },
    ])("and sends nothing for a scope that $name", async ({ scope, want }) => {
      const port = await servers.http((_, response) => response.end());

      await expect(ask(port, { scope: scope() })).rejects.toMatchObject({
        code: want,
      });
      expect(servers.connections).toBe(0);
    });
  });

  describe("leaves off when its scope is cancelled", () => {
    it.each([
      { name: "while it connects", scheme: "https" },
      { name: "while it waits for an answer", scheme: "http" },
    ])("$name", async ({ scheme }) => {
      const port = await raw("", "stay");
      const scope = createRequestScope({ deadlineAtMs: Infinity });
      const send = create().send(get(`${scheme}://127.0.0.1:${port}/`), scope);
      const refused = expect(send).rejects.toMatchObject({
        code: "resolve-cancelled",
        message: `127.0.0.1:${port}: the request ended meanwhile`,
      });
      await untilConnected();

      scope.cancel();

      await refused;
    });

    it("within a body", async () => {
      const port = await raw(
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nab",
        "stay",
      );
      const scope = createRequestScope({ deadlineAtMs: Infinity });
      const response = await ask(port, { scope });
      const got: string[] = [];
      const read = async () => {
        for await (const chunk of response.body) {
          got.push(Buffer.from(chunk).toString());
          scope.cancel();
        }
      };

      await expect(read()).rejects.toMatchObject({ code: "resolve-cancelled" });
      expect(got).toEqual(["ab"]);
      await untilClosed();
    });

    it("and no longer listens after the body's end", async () => {
      const port = await servers.http((_, response) => response.end("x"));
      let listeners = 0;
      const scope: RequestScope = {
        deadlineAtMs: Infinity,
        signal: new AbortController().signal,
        cancelled: false,
        onCancel() {
          listeners += 1;
          return () => void (listeners -= 1);
        },
      };

      const response = await ask(port, { scope });
      expect(listeners).toBe(1);
      await text(response);
      await new Promise((resolve) => setImmediate(resolve));

      expect(listeners).toBe(0);
    });
  });

  describe("gets rid of a body", () => {
    it("that is broken off, with its connection", async () => {
      const port = await servers.http((_, response) => {
        response.write("a".repeat(100));
      });
      const response = await ask(port);

      for await (const chunk of response.body) {
        expect(chunk.length).toBeGreaterThan(0);
        break;
      }

      await untilClosed();
    });

    it("that is short, and keeps its connection", async () => {
      const port = await servers.http((_, response) => response.end("short"));
      const transport = create();
      const send = () =>
        transport.send(get(`http://127.0.0.1:${port}/`), endless());

      await (await send()).discard();
      await (await send()).discard();

      expect(servers.connections).toBe(1);
    });

    it.each([
      { name: "long", sent: "content-length: 1000000\r\n\r\nab" },
      {
        name: "without end",
        sent: "connection: close\r\n\r\n" + "a".repeat(200_000),
      },
      { name: "that stalls", sent: "content-length: 9\r\n\r\nab" },
    ])("$name, with its connection", async ({ sent }) => {
      const port = await raw(`HTTP/1.1 200 OK\r\n${sent}`, "stay");

      await (await ask(port)).discard();

      await untilClosed();
    });

    it("that failed, was read or was discarded already", async () => {
      const short = await servers.http((_, response) => response.end("x"));
      const broken = await raw(
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nab",
      );
      const read = await ask(short);
      await text(read);
      const failed = await ask(broken);
      await readAll(failed);
      const discarded = await ask(short);
      await discarded.discard();

      await expect(
        Promise.all([read, failed, discarded].map((each) => each.discard())),
      ).resolves.toBeDefined();
    });
  });

  it("fails what is under way when it is closed, and what comes later", async () => {
    const port = await servers.http(() => undefined);
    const transport = create();
    const send = () =>
      transport.send(get(`http://127.0.0.1:${port}/`), endless());
    const early = send();
    const refused = expect(early).rejects.toMatchObject({
      code: "resolve-cancelled",
    });
    await untilConnected();

    await transport.close();

    await refused;
    await expect(send()).rejects.toMatchObject({ code: "resolve-cancelled" });
  });
});

function create(options: Partial<TransportOptions> = {}): Transport {
  const transport = createTransport(
    { insecureHosts: [], registryCas: new Map(), ...options },
    clock,
  );
  transports.push(transport);
  return transport;
}

async function ask(
  port: number,
  {
    at = "/",
    scope = endless(),
    ...request
  }: Parameters<typeof get>[1] & { at?: string; scope?: RequestScope } = {},
): Promise<HttpResponse> {
  return await create().send(
    get(`http://127.0.0.1:${port}${at}`, request),
    scope,
  );
}

/** A server that says what it is told once it is asked. */
function raw(sent: string, then: "leave" | "stay" = "leave"): Promise<number> {
  return servers.tcp((socket) => {
    socket.once("data", () => {
      socket.write(sent);
      if (then === "leave") socket.end();
    });
  });
}

interface Asked extends Pick<IncomingMessage, "method" | "url" | "headers"> {
  readonly body: Buffer;
}

async function recorder(): Promise<{ port: number; asked: Promise<Asked> }> {
  let tell: (asked: Asked) => void = () => undefined;
  const asked = new Promise<Asked>((resolve) => {
    tell = resolve;
  });
  const port = await servers.http((request, response) => {
    void buffer(request).then((body) => {
      const { method, url, headers } = request;
      tell({ method, url, headers, body });
      response.end();
    });
  });
  return { port, asked };
}

async function text(response: HttpResponse): Promise<string> {
  const { got, failure } = await readAll(response);
  if (failure !== undefined) throw failure as Error;
  return got;
}

async function readAll(
  response: HttpResponse,
): Promise<{ got: string; failure?: unknown }> {
  let got = "";
  try {
    for await (const chunk of response.body)
      got += Buffer.from(chunk).toString();
    return { got };
  } catch (failure) {
    return { got, failure };
  }
}

function bytesBody(content: string): HttpBody {
  return { kind: "bytes", bytes: Buffer.from(content) };
}

function tempFile(content: Buffer): string {
  const file = path.join(directory, "file");
  writeFileSync(file, content);
  return file;
}

function inMs(leftMs: number): RequestScope {
  return createRequestScope({ deadlineAtMs: clock.monotonicMs() + leftMs });
}

function gone(): RequestScope {
  const scope = createRequestScope({ deadlineAtMs: Infinity });
  scope.cancel();
  return scope;
}

async function untilConnected(): Promise<void> {
  await vi.waitFor(() => expect(servers.openConnections).toBe(1), 5_000);
}

async function untilClosed(): Promise<void> {
  await vi.waitFor(() => expect(servers.openConnections).toBe(0), 5_000);
}
