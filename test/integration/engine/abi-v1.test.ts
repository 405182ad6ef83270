import { create, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import {
  Ready,
  RunFunctionRequestSchema,
} from "../../../src/gen/run_function_pb.js";
import { desired, messages, startEngine } from "../../support/engine.js";
import type { TestEngine } from "../../support/engine.js";

describe("integration/engine/abi-v1", () => {
  let engine: TestEngine;
  beforeAll(async () => {
    engine = await startEngine();
  });
  afterAll(() => engine.close());

  it("loads a core module as ABI v1", async () => {
    const lease = await engine.load("v1/hello");

    expect(lease.abi).toBe(1);
    expect(lease.digest).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(lease.description).toMatch(/^Path module-\d+\.wasm$/);
    lease.release();
    lease.release();
  });

  it.each([
    { name: "a constant response", guest: "v1/hello", want: ["hello world"] },
    { name: "the empty response", guest: "v1/empty", want: [] },
    { name: "_initialize, once", guest: "v1/initialize", want: ["1"] },
    { name: "a start function", guest: "v1/start", want: ["1"] },
    {
      name: "a maximum of 4 GiB that it does not use",
      guest: "hostile/memory-max-4gib",
      want: [],
    },
  ])("runs a module with $name", async ({ guest, want }) => {
    const response = await engine.call(guest);

    expect(messages(response)).toEqual(want);
  });

  it("returns desired state as the module gave it", async () => {
    const response = await engine.call("v1/desired");

    expect(desired(response)?.resources["cm"]?.ready).toBe(Ready.TRUE);
  });

  it("takes a known field of another wire type for an unknown one", async () => {
    const response = await engine.call("hostile/response-wrong-wire-type");

    expect(Buffer.from(response)).toEqual(Buffer.of(0x10, 0x01));
  });

  it("hands the request over byte for byte", async () => {
    const request = toBinary(
      RunFunctionRequestSchema,
      create(RunFunctionRequestSchema, {
        meta: { tag: "c0ffee" },
        observed: {
          composite: { resource: { spec: { greeting: "grüße" } } },
        },
      }),
    );

    const response = await engine.call("v1/echo", { request });

    expect(Buffer.from(response)).toEqual(Buffer.from(request));
  });

  it("hands over a request of 20 MB, and takes back what it allows", async () => {
    const detail = Buffer.alloc(20_000_000, "x");
    const request = toBinary(
      RunFunctionRequestSchema,
      create(RunFunctionRequestSchema, {
        observed: { composite: { connectionDetails: { detail } } },
      }),
    );
    const roomy = await startEngine({ maxResponseBytes: 32_000_000 });

    try {
      const response = await roomy.call("v1/echo", { request });

      expect(Buffer.compare(response, request)).toBe(0);
    } finally {
      await roomy.close();
    }
  });

  it("does not modify the request", async () => {
    const request = Buffer.from("\n\x03\n\x01t");
    const before = Buffer.from(request);

    await engine.call("v1/echo", { request });

    expect(request).toEqual(before);
  });

  it("answers 64 calls at once, each with its own answer", async () => {
    const lease = await engine.load("v1/echo");
    const requests = Array.from({ length: 64 }, (_, index) =>
      toBinary(
        RunFunctionRequestSchema,
        create(RunFunctionRequestSchema, { meta: { tag: `tag-${index}` } }),
      ),
    );

    const responses = await Promise.all(
      requests.map((request) => engine.run(lease, { request })),
    );

    expect(responses.map((bytes) => Buffer.from(bytes))).toEqual(
      requests.map((bytes) => Buffer.from(bytes)),
    );
    lease.release();
  });

  it("finishes a run whose lease is released meanwhile", async () => {
    const lease = await engine.load("v1/compute");

    const running = engine.run(lease);
    lease.release();

    expect(messages(await running)).toEqual([]);
  });
});
