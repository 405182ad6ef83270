import { once } from "node:events";
import { connect, type Socket } from "node:net";

import { afterEach, describe, expect, it, vi } from "vitest";

import {
  startPageServer,
  type Page,
  type PageServer,
  type Route,
} from "../../../src/function/page-server.js";
import { recordOutput } from "../../support/suite-output.js";
import { recordingLogger } from "./fixtures.js";

const servers: PageServer[] = [];
const sockets: Socket[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

const page: Page = { status: 200, contentType: "text/plain", body: "page" };

/** `/page` is there at once, `/late` when told. */
async function serve() {
  let answer: () => void = () => undefined;
  const later = new Promise<Page>((resolve) => {
    answer = () => resolve(page);
  });
  const late = vi.fn(() => later);
  const server = await startPageServer(
    { host: "127.0.0.1", port: 0 },
    "--health-address",
    new Map<string, Route>([
      ["/page", () => page],
      ["/late", late],
    ]),
    recordingLogger().logger,
  );
  servers.push(server);
  return { server, answer, lateAsked: () => late.mock.calls.length };
}

async function open(
  { address }: PageServer,
  localAddress?: string,
): Promise<Socket> {
  const [host = "", port] = address.split(":");
  const socket = connect({
    host,
    port: Number(port),
    ...(localAddress === undefined ? {} : { localAddress }),
  });
  sockets.push(socket);
  socket.on("error", () => undefined);
  await once(socket, "connect");
  return socket;
}

/** In the order in which they come. */
async function openMany(count: number, server: PageServer): Promise<Socket[]> {
  const opened: Socket[] = [];
  while (opened.length < count) opened.push(await open(server));
  return opened;
}

function ask(socket: Socket | undefined, path: string): void {
  socket?.write(`GET ${path} HTTP/1.1\r\nHost: h\r\n\r\n`);
}

/** What comes in until there is a whole page, or the end. */
async function answerOf(socket: Socket | undefined): Promise<string> {
  let received = "";
  for await (const chunk of socket ?? []) {
    received += String(chunk);
    if (received.endsWith("page")) break;
  }
  recordOutput("page", received);
  return received;
}

async function isAnswered(socket: Socket | undefined): Promise<boolean> {
  ask(socket, "/page");
  return (await answerOf(socket)).startsWith("HTTP/1.1 200 OK\r\n");
}

const closed = (socket: Socket | undefined) =>
  socket === undefined || socket.closed
    ? Promise.resolve()
    : once(socket.resume(), "close");

describe("function/page-server", () => {
  describe("more than 64 connections", () => {
    it("close the oldest", async () => {
      const { server } = await serve();
      const [oldest, second, ...others] = await openMany(64, server);

      const next = await open(server);

      await closed(oldest);
      for (const socket of [next, second, others.at(-1)])
        expect(await isAnswered(socket)).toBe(true);
    });

    it("close one for each that is too many", async () => {
      const { server } = await serve();
      const opened = await openMany(64, server);

      await Promise.all(Array.from({ length: 10 }, () => open(server)));

      await Promise.all(opened.slice(0, 10).map(closed));
      expect(await isAnswered(opened[10])).toBe(true);
    });

    it("are none where others have ended", async () => {
      const { server } = await serve();
      const kept = await open(server);

      for (let i = 0; i < 100; i++)
        expect(await isAnswered(await open(server))).toBe(true);

      expect(await isAnswered(kept)).toBe(true);
    });

    it("close those that have been answered as those that never asked", async () => {
      const { server } = await serve();
      const oldest = await open(server);
      ask(oldest, "/page");
      await vi.waitUntil(() => oldest.bytesRead > 0);
      const [second] = await openMany(63, server);

      await open(server);

      await closed(oldest);
      expect(await isAnswered(second)).toBe(true);
    });

    it("close none that waits for an answer while there are others", async () => {
      const { server, answer, lateAsked } = await serve();
      const asking = await open(server);
      ask(asking, "/late");
      await vi.waitUntil(() => lateAsked() === 1);
      const [idle] = await openMany(63, server);

      await open(server);

      await closed(idle);
      answer();
      expect(await answerOf(asking)).toMatch(/ 200 OK\r\n/);
    });

    it("close the oldest where all wait for an answer", async () => {
      const { server, lateAsked } = await serve();
      const waiting = await openMany(64, server);
      for (const socket of waiting) ask(socket, "/late");
      await vi.waitUntil(() => lateAsked() === 64);

      const next = await open(server);

      await closed(waiting[0]);
      expect(await isAnswered(next)).toBe(true);
    });

    it.runIf(process.platform === "linux")(
      "close none of an address that has fewer than another",
      async () => {
        const { server } = await serve();
        const alone = await open(server, "127.0.0.2");

        await openMany(200, server);

        expect(await isAnswered(alone)).toBe(true);
      },
    );
  });
});
