import {
  Client,
  credentials,
  Metadata,
  status,
  type ServiceError,
} from "@grpc/grpc-js";
import { service as healthService } from "grpc-health-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import type { RequestScope } from "../../../src/ports.js";
import { createMetrics } from "../../../src/function/metrics.js";
import type { Answer } from "../../../src/function/run-function.js";
import {
  startServer,
  type FunctionServer,
} from "../../../src/function/server.js";
import {
  readMetricsPage,
  type MetricFamily,
} from "../../support/metrics-page.js";
import { realClock, recordingLogger } from "./fixtures.js";

const v1 = "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction";
const maxReceiveBytes = 1024;

let server: FunctionServer;
let client: Client;
let page: () => Promise<readonly MetricFamily[]>;
let answer: (scope: RequestScope) => Promise<Answer>;

beforeEach(async () => {
  const { grpc, exposition } = createMetrics();
  page = async () => readMetricsPage((await exposition(undefined)).body);
  answer = () => Promise.resolve({ kind: "response", bytes: new Uint8Array() });
  server = await startServer(
    {
      address: { host: "127.0.0.1", port: 0 },
      tlsCertsDir: null,
      maxReceiveBytes,
      maxConnectionAgeMs: 0,
      maxConnectionAgeGraceMs: 0,
      onTlsReload: () => undefined,
      onClientRefused: () => undefined,
    },
    (_bytes, scope) => answer(scope),
    realClock,
    recordingLogger().logger,
    grpc,
  );
  client = new Client(server.address, credentials.createInsecure(), {
    "grpc.use_local_subchannel_pool": 1,
  });
});

afterEach(async () => {
  client.close();
  await server.drain(0);
});

/** The code of a call of `path`, and how to cancel it. */
function start(
  path = v1,
  bytes = new Uint8Array(),
  options = {},
): { cancel: () => void; code: Promise<number> } {
  let cancel: () => void = () => undefined;
  const code = new Promise<number>((resolve) => {
    const call = client.makeUnaryRequest(
      path,
      (value: Uint8Array) => Buffer.from(value),
      (value) => value,
      bytes,
      new Metadata(),
      options,
      (error: ServiceError | null) => {
        resolve(error?.code ?? status.OK);
      },
    );
    cancel = () => {
      call.cancel();
    };
  });
  return { cancel, code };
}

/** What is not zero, by what is counted, method and code. */
async function counted(): Promise<Record<string, number>> {
  const samples = (await page())
    .flatMap((family) => family.samples)
    .filter(({ name, value }) => name.startsWith("grpc_") && value !== 0);
  return Object.fromEntries(
    samples.map(({ name, labels, value }) => [
      [
        /^grpc_server_(.*)_total$/.exec(name)?.[1],
        labels["grpc_method"],
        labels["grpc_code"],
      ]
        .filter((part) => part !== undefined)
        .join(" "),
      value,
    ]),
  );
}

describe("function/grpc-metrics", () => {
  it("knows every method the server has, by its type", async () => {
    const family = (await page()).find(
      ({ name }) => name === "grpc_server_started_total",
    );

    const methods = family?.samples.map(
      ({ labels }) =>
        `${labels["grpc_type"]} ${labels["grpc_service"]}/${labels["grpc_method"]}`,
    );
    expect(methods?.sort()).toEqual([
      "bidi_stream grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
      "bidi_stream grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
      "server_stream grpc.health.v1.Health/Watch",
      "unary apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction",
      "unary apiextensions.fn.proto.v1beta1.FunctionRunnerService/RunFunction",
      "unary grpc.health.v1.Health/Check",
      "unary grpc.health.v1.Health/List",
    ]);
  });

  it("counts a call that is answered", async () => {
    expect(await start().code).toBe(status.OK);
    expect(await start().code).toBe(status.OK);

    expect(await counted()).toEqual({
      "started RunFunction": 2,
      "msg_received RunFunction": 2,
      "msg_sent RunFunction": 2,
      "handled RunFunction OK": 2,
    });
  });

  it("counts a call that is answered with a status", async () => {
    answer = () =>
      Promise.resolve({ kind: "malformed", message: "no message" });

    expect(await start().code).toBe(status.INVALID_ARGUMENT);

    expect(await counted()).toEqual({
      "started RunFunction": 1,
      "msg_received RunFunction": 1,
      "handled RunFunction InvalidArgument": 1,
    });
  });

  it("counts a call that never gets to its handler", async () => {
    const large = new Uint8Array(maxReceiveBytes + 1);

    expect(await start(v1, large).code).toBe(status.RESOURCE_EXHAUSTED);

    expect(await counted()).toEqual({
      "started RunFunction": 1,
      "handled RunFunction ResourceExhausted": 1,
    });
  });

  it("counts the status that is sent, not the one it was before", async () => {
    const stream = client.makeClientStreamRequest(
      v1,
      (value: Uint8Array) => Buffer.from(value),
      (value) => value,
      () => undefined,
    );
    const code = new Promise<number>((resolve) => {
      stream.on("status", (sent) => {
        resolve(sent.code);
      });
    });
    // A unary call without its message, which grpc-js calls unimplemented.
    stream.end();

    expect(await code).toBe(status.INVALID_ARGUMENT);
    expect(await counted()).toEqual({
      "started RunFunction": 1,
      "handled RunFunction InvalidArgument": 1,
    });
  });

  it("counts a call whose caller goes away once, as cancelled", async () => {
    const scopes: RequestScope[] = [];
    answer = (scope) =>
      new Promise((resolve) => {
        scopes.push(scope);
        scope.onCancel(() => {
          resolve({ kind: "cancelled" });
        });
      });
    const { cancel, code } = start();
    await vi.waitFor(() => {
      expect(scopes).toHaveLength(1);
    });
    expect(await counted()).toEqual({
      "started RunFunction": 1,
      "msg_received RunFunction": 1,
    });

    cancel();

    expect(await code).toBe(status.CANCELLED);
    await vi.waitFor(async () => {
      expect(await counted()).toEqual({
        "started RunFunction": 1,
        "msg_received RunFunction": 1,
        "handled RunFunction Canceled": 1,
      });
    });
  });

  it("counts each message of a stream", async () => {
    const watch = healthService["Watch"];
    if (watch === undefined) throw new Error("no Watch");
    const stream = client.makeServerStreamRequest(
      watch.path,
      watch.requestSerialize,
      watch.responseDeserialize,
      { service: "" },
    );
    stream.on("error", () => undefined);
    let seen = 0;
    stream.on("data", () => (seen += 1));
    await vi.waitFor(() => {
      expect(seen).toBe(1);
    });

    server.setServing();

    await vi.waitFor(() => {
      expect(seen).toBe(2);
    });
    expect(await counted()).toEqual({
      "started Watch": 1,
      "msg_received Watch": 1,
      "msg_sent Watch": 2,
    });
    stream.cancel();
  });

  it("does not count what is called that it does not have", async () => {
    const before = await page();

    expect(await start("/tenant.chosen/Name").code).toBe(status.UNIMPLEMENTED);

    const grpc = (families: readonly MetricFamily[]) =>
      families.filter(({ name }) => name.startsWith("grpc_"));
    expect(grpc(await page())).toEqual(grpc(before));
  });
});
