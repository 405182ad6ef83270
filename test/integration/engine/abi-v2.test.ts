import { create, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { RunFunctionRequestSchema } from "../../../src/gen/run_function_pb.js";
import {
  createLogCollector,
  messages,
  MiB,
  refusal,
  startEngine,
  type TestEngine,
} from "../../support/engine.js";
import { assembleText } from "../../support/guests.js";
import { manyMemories } from "../../support/hostile-modules.js";

describe("integration/engine/abi-v2", () => {
  let engine: TestEngine;
  beforeAll(async () => {
    engine = await startEngine();
  });
  afterAll(() => engine.close());

  it("loads a component as ABI v2", async () => {
    const lease = await engine.load("v2/hello");

    expect(lease.abi).toBe(2);
    lease.release();
  });

  it.each([
    { name: "a plain func", guest: "v2/hello", want: ["hello world"] },
    {
      name: "an async func lifted synchronously",
      guest: "v2/sync-lifted",
      want: ["hello world"],
    },
    {
      name: "an async func lifted with a callback, after a yield",
      guest: "v2/async-lifted",
      want: ["hello world"],
    },
    {
      name: "an async func lifted with a callback, at once",
      guest: "v2/async-immediate",
      want: ["hello world"],
    },
    { name: "no bytes", guest: "v2/empty", want: [] },
    {
      name: "imports of WASI 0.2 and 0.3",
      guest: "v2/import-p3",
      want: ["hello world"],
    },
  ])("runs a component whose run is $name", async ({ guest, want }) => {
    const response = await engine.call(guest);

    expect(messages(response)).toEqual(want);
  });

  it("hands the request over byte for byte, 5 MB of it", async () => {
    const detail = Buffer.alloc(5_000_000, "x");
    const request = toBinary(
      RunFunctionRequestSchema,
      create(RunFunctionRequestSchema, {
        observed: { composite: { connectionDetails: { detail } } },
      }),
    );

    const response = await engine.call("v2/echo", { request });

    expect(Buffer.compare(response, request)).toBe(0);
  });

  it("carries strings between two memories and two encodings", async () => {
    const error = await refusal(engine.call("v2/composed"));

    expect(error.code).toBe("run-error");
    expect(error.message).toContain("run returned an error: grüße 世界");
  });

  it("quotes the error a component returns", async () => {
    const error = await refusal(engine.call("v2/error"));

    expect(error.code).toBe("run-error");
    expect(error.message).toMatch(
      /^module Path module-\d+\.wasm failed: run returned an error: no greeting in config$/,
    );
  });

  it.each([
    {
      guest: "v2/error-control",
      want: /error: red\\u\{1b\}\[31m\\u\{a\}forged$/,
    },
    { guest: "v2/error-10mb", want: /error: x{1000}/ },
  ])("keeps the error of $guest on one short line", async ({ guest, want }) => {
    const error = await refusal(engine.call(guest, { memoryBytes: 64 * MiB }));

    expect(error.code).toBe("run-error");
    expect(error.message).toMatch(want);
    expect(error.message.length).toBeLessThan(10_000);
  });

  it("passes log lines on with level and pairs", async () => {
    const { logger, lines } = createLogCollector();

    await engine.call("v2/log", { logger });

    expect(lines.map(({ level }) => level)).toEqual([
      "debug",
      "info",
      "warn",
      "error",
    ]);
    expect(JSON.stringify(lines[1]?.fields)).toContain("rendered");
    expect(JSON.stringify(lines[1]?.fields)).toContain('"objects":"3"');
  });

  it("serves a guest that declares fewer log levels", async () => {
    expect(messages(await engine.call("v2/log-fewer-levels"))).toEqual([]);
  });

  it("counts all memories of a component against one total", async () => {
    const component = await assembleText(manyMemories(64));

    const response = await engine.call(component, { memoryBytes: 32 * MiB });

    // One page for the main module, the rest to the others: 512 pages in all.
    const pages = Number.parseInt(messages(response)[0] ?? "", 16);
    expect(pages).toBeGreaterThan(64);
    expect(pages).toBeLessThanOrEqual(512);
  });
});
