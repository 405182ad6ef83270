import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { createServer } from "node:net";
import { text } from "node:stream/consumers";

import { afterEach, describe, expect, it, onTestFinished } from "vitest";

import { startHealthServer } from "../../../src/function/health-server.js";
import type { PageServer } from "../../../src/function/page-server.js";
import { recordOutput } from "../../support/suite-output.js";
import { recordingLogger } from "./fixtures.js";

const servers: PageServer[] = [];

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

async function serve(isReady = () => true, port = 0): Promise<PageServer> {
  const server = await startHealthServer(
    { host: "127.0.0.1", port },
    isReady,
    recordingLogger().logger,
  );
  servers.push(server);
  return server;
}

/** Status, headers and body of an answer. */
async function ask({ address }: PageServer, path: string, method = "GET") {
  const sent = request(`http://${address}${path}`, { method }).end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  const body = await text(response);
  recordOutput("page", body);
  return {
    status: response.statusCode,
    type: response.headers["content-type"],
    length: response.headers["content-length"],
    allow: response.headers.allow,
    body,
  };
}

describe("function/health-server", () => {
  it("says that it lives, ready or not", async () => {
    const server = await serve(() => false);

    expect(await ask(server, "/livez")).toMatchObject({
      status: 200,
      type: "text/plain; charset=utf-8",
      body: "ok\n",
    });
  });

  it("says that it is ready as soon as it is, and no longer than that", async () => {
    let isReady = false;
    const server = await serve(() => isReady);
    const asked = async () => {
      const { status, body } = await ask(server, "/readyz?verbose");
      return `${status} ${body}`;
    };

    expect(await asked()).toBe("503 not ready\n");
    isReady = true;
    expect(await asked()).toBe("200 ok\n");
    isReady = false;
    expect(await asked()).toBe("503 not ready\n");
  });

  it.each(["/livez", "/readyz"])(
    "answers HEAD of %s as GET, without body",
    async (path) => {
      const server = await serve(() => false);

      const page = await ask(server, path);
      const head = await ask(server, path, "HEAD");

      expect(head).toEqual({ ...page, body: "" });
    },
  );

  it.each(["/", "/healthz", "/metrics", "/livez/", "/readyz/x", "/LIVEZ"])(
    "has nothing at %s",
    async (path) => {
      expect(await ask(await serve(), path)).toMatchObject({
        status: 404,
        body: "not found\n",
      });
    },
  );

  it.each(["POST", "PUT", "DELETE"])("does not do %s", async (method) => {
    expect(await ask(await serve(), "/readyz", method)).toMatchObject({
      status: 405,
      allow: "GET, HEAD",
      body: "method not allowed\n",
    });
  });

  it("names its flag when the address is taken", async () => {
    const occupant = createServer().listen(0, "127.0.0.1");
    onTestFinished(() => {
      occupant.close();
    });
    await once(occupant, "listening");
    const address = occupant.address();
    const port =
      address === null || typeof address === "string" ? 0 : address.port;

    await expect(serve(undefined, port)).rejects.toMatchObject({
      code: "start-refused",
      message: expect.stringContaining(
        `cannot listen on --health-address 127.0.0.1:${port}: listen EADDRINUSE`,
      ) as string,
    });
  });
});
