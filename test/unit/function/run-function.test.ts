import { fromBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";

import { AdmissionError } from "../../../src/admission/index.js";
import { EngineError } from "../../../src/engine/index.js";
import type { Answer } from "../../../src/function/run-function.js";
import { bytesField } from "../../../src/function/wire.js";
import { RunFunctionResponseSchema } from "../../../src/gen/run_function_pb.js";
import { LoaderError } from "../../../src/loader/index.js";
import { createRequestScope } from "../../../src/request-scope.js";
import {
  concat,
  deepStruct,
  fakeEngine,
  fakeLoader,
  greeterInput,
  openScope,
  pipelineAround,
  recordingLogger,
  requestBytes,
  responseBytes,
  testAdmission,
} from "./fixtures.js";

const okAnswer = responseBytes({ meta: { tag: "own" } });
const okEngine = () => fakeEngine(() => Promise.resolve(okAnswer));

function decode(answer: Answer) {
  if (answer.kind !== "response") throw new Error(`got ${answer.kind}`);
  return fromBinary(RunFunctionResponseSchema, answer.bytes);
}

describe("function/run-function", () => {
  it("hands the module the caller's own bytes and returns the module's", async () => {
    const engine = okEngine();
    const bytes = requestBytes();

    const answer = await pipelineAround(engine)(bytes, openScope());

    expect(engine.runs[0]?.bytes).toBe(bytes);
    expect(answer).toEqual({ kind: "response", bytes: okAnswer });
    expect(engine.released()).toBe(1);
  });

  it("adds tag and --ttl when the module gave no meta", async () => {
    const engine = fakeEngine(() => Promise.resolve(new Uint8Array()));

    const answer = decode(
      await pipelineAround(engine)(requestBytes(), openScope()),
    );

    expect(answer.meta).toMatchObject({
      tag: "a-tag",
      ttl: { seconds: 60n, nanos: 500_000_000 },
    });
  });

  it("hands admission the Input without what is in its config", async () => {
    const seen: unknown[] = [];
    const admission = testAdmission();
    const run = pipelineAround(okEngine(), {
      admission: {
        ...admission,
        readInput(input) {
          seen.push(JSON.parse(JSON.stringify(input)));
          return admission.readInput(input);
        },
      },
    });
    const input = { ...greeterInput, config: { greeting: "hi" } };

    const answer = await run(requestBytes({ input }), openScope());

    expect(seen).toEqual([{ ...greeterInput, config: {} }]);
    expect(answer.kind).toBe("response");
  });

  it("says in whole milliseconds how long a refusal took", async () => {
    const { logger, lines } = recordingLogger();
    let nowMs = 0.25;
    const clock = { nowMs: () => 0, monotonicMs: () => (nowMs += 10.6) };
    const input = { ...greeterInput, config: "hi" };

    await pipelineAround(okEngine(), { logger, clock })(
      requestBytes({ input }),
      openScope(),
    );

    expect(lines).toMatchObject([
      { message: "request refused", fields: { elapsedMs: 11 } },
    ]);
  });

  it("refuses a config that is no object", async () => {
    const input = { ...greeterInput, config: "hi" };
    const run = pipelineAround(okEngine());

    const answer = decode(await run(requestBytes({ input }), openScope()));

    expect(answer.results[0]?.message).toMatch(/^config: expected .* got /);
  });

  it("passes nesting no decoder follows, in config and state", async () => {
    const engine = okEngine();
    const deep = deepStruct(100_000);
    const config = bytesField(
      1,
      concat(
        bytesField(1, new TextEncoder().encode("config")),
        bytesField(2, bytesField(5, deep)),
      ),
    );
    const bytes = concat(
      requestBytes(),
      bytesField(4, config),
      bytesField(2, bytesField(1, bytesField(1, deep))),
      new Uint8Array(10_500).fill(0x0b),
      new Uint8Array(10_500).fill(0x0c),
    );
    const run = pipelineAround(engine);

    const answer = await run(bytes, openScope());

    expect(answer).toEqual({ kind: "response", bytes: okAnswer });
    expect(engine.runs[0]?.bytes).toBe(bytes);
  });

  it("lets the module see no credential", async () => {
    const engine = okEngine();
    const credentials = bytesField(7, new TextEncoder().encode("hunter2"));

    await pipelineAround(engine)(
      concat(requestBytes(), credentials),
      openScope(),
    );

    expect(engine.runs[0]?.bytes).toEqual(Buffer.from(requestBytes()));
  });

  it("gives runs of one step one key when the step bounds its runs", async () => {
    const engine = okEngine();
    const limits = (concurrency: number) => ({
      ...greeterInput,
      limits: { concurrency },
    });
    const run = pipelineAround(engine);

    for (const input of [greeterInput, limits(1), limits(1), limits(2)]) {
      await run(requestBytes({ input }), openScope());
    }

    const [unbound, first, again, other] = engine.runs.map((r) => r.stepKey);
    expect(unbound).toBe("");
    expect(first).toBe(again);
    expect(new Set([unbound, first, other]).size).toBe(3);
  });

  it("logs a deprecated apiVersion once for each request", async () => {
    const { logger, lines } = recordingLogger();
    const input = {
      ...greeterInput,
      apiVersion: "wasm.fn.crossplane.io/v1beta1",
    };
    const run = pipelineAround(okEngine(), { logger });

    await run(requestBytes({ meta: { tag: "t" }, input }), openScope());
    await run(requestBytes({ meta: { tag: "u" }, input }), openScope());

    const line = (tag: string) => ({
      level: "info",
      message: "deprecated Input apiVersion",
      fields: { tag, apiVersion: "wasm.fn.crossplane.io/v1beta1" },
    });
    expect(lines).toMatchObject([line("t"), line("u")]);
  });

  const seconds60 = { seconds: 60n, nanos: 500_000_000 };
  const none = { seconds: 0n, nanos: 0 };

  it.each([
    {
      name: "no Input",
      bytes: requestBytes({ meta: { tag: "a-tag" } }),
      overrides: {},
      message: "the step has no input: expected an Input of",
      ttl: seconds60,
    },
    {
      name: "an Input that is refused",
      overrides: {
        admission: {
          ...testAdmission(),
          readInput: () => {
            throw new AdmissionError("field-unknown", "unknown field modul");
          },
        },
      },
      message: "unknown field modul",
      ttl: seconds60,
    },
    {
      name: "a module that is not there",
      overrides: {
        loader: {
          ...fakeLoader(),
          resolve: () =>
            Promise.reject(new LoaderError("module-not-found", "no such file")),
        },
      },
      message: "no such file",
      ttl: none,
    },
    {
      name: "a fault of ours",
      overrides: {
        loader: {
          ...fakeLoader(),
          resolve: () => Promise.reject(new TypeError("secret is undefined")),
        },
      },
      message: "internal error of the function runtime: see its log",
      ttl: none,
    },
  ])(
    "answers $name with a fatal result",
    async ({ bytes, overrides, message, ttl }) => {
      const run = pipelineAround(okEngine(), overrides);

      const answer = decode(await run(bytes ?? requestBytes(), openScope()));

      expect(answer.results[0]?.message).toContain(message);
      expect(answer.meta).toMatchObject({ tag: "a-tag", ttl });
    },
  );

  it.each([
    {
      name: "names the module where the engine did not",
      thrown: new EngineError("slot-wait", "waiting for a run slot: gone"),
      message: "module Path greeter.wasm: waiting for a run slot: gone",
      ttl: none,
    },
    {
      name: "leaves a message that names it alone",
      thrown: new EngineError(
        "module-invalid",
        "module Path greeter.wasm is no module",
      ),
      message: "module Path greeter.wasm is no module",
      ttl: seconds60,
    },
  ])("$name", async ({ thrown, message, ttl }) => {
    const engine = fakeEngine(() => Promise.reject(thrown));

    const answer = decode(
      await pipelineAround(engine)(requestBytes(), openScope()),
    );

    expect(answer.results[0]?.message).toBe(message);
    expect(answer.meta).toMatchObject({ ttl });
    expect(engine.released()).toBe(1);
  });

  it("keeps what an error tells the operator in the log", async () => {
    const { logger, lines } = recordingLogger();
    const engine = fakeEngine(() =>
      Promise.reject(
        new EngineError("run-trap", "it trapped", { detail: "backtrace" }),
      ),
    );

    const answer = await pipelineAround(engine, { logger })(
      requestBytes(),
      openScope(),
    );

    expect(decode(answer).results[0]?.message).not.toContain("backtrace");
    expect(lines).toMatchObject([
      {
        level: "warn",
        fields: { code: "run-trap", detail: "backtrace", tag: "a-tag" },
      },
    ]);
  });

  it("copies a long tag whole, and logs its beginning", async () => {
    const { logger, lines } = recordingLogger();
    const tag = "t".repeat(10_000);
    const engine = fakeEngine((request) => {
      request.logger.info({}, "from the guest");
      return Promise.resolve(new Uint8Array());
    });

    const bytes = requestBytes({ meta: { tag }, input: greeterInput });
    const answer = await pipelineAround(engine, { logger })(bytes, openScope());

    expect(decode(answer).meta?.tag).toBe(tag);
    expect(lines[0]?.fields["tag"]).toBe(`${"t".repeat(128)}…`);
  });

  it("keeps the caller's desired state when it fails", async () => {
    const engine = fakeEngine(() =>
      Promise.reject(new EngineError("run-trap", "it trapped")),
    );
    const bytes = requestBytes({
      input: greeterInput,
      desired: { resources: { kept: { ready: 1 } } },
      context: { key: "value" },
    });

    const answer = decode(await pipelineAround(engine)(bytes, openScope()));

    expect(answer.desired?.resources["kept"]?.ready).toBe(1);
    expect(answer.context).toEqual({ key: "value" });
  });

  it("answers an answer that is too large, or none, with a fatal result", async () => {
    for (const { bytes, want } of [
      {
        bytes: bytesField(1023, new Uint8Array(5_000_000)),
        want: "module Path greeter.wasm returned 50000",
      },
      {
        bytes: new TextEncoder().encode("<html>"),
        want: "module Path greeter.wasm returned no RunFunctionResponse",
      },
    ]) {
      const engine = fakeEngine(() => Promise.resolve(bytes));

      const answer = decode(
        await pipelineAround(engine)(requestBytes(), openScope()),
      );

      expect(answer.results[0]?.message).toContain(want);
      expect(engine.released()).toBe(1);
    }
  });

  it.each([
    { name: "no protobuf", bytes: new TextEncoder().encode("<html>") },
    {
      name: "an Input that is no Struct",
      bytes: bytesField(4, Uint8Array.of(0xff)),
    },
  ])("calls $name malformed, and runs nothing", async ({ bytes }) => {
    const engine = okEngine();

    const answer = await pipelineAround(engine)(bytes, openScope());

    expect(answer).toMatchObject({
      kind: "malformed",
      message: expect.stringContaining("not a protobuf message") as string,
    });
    expect(engine.runs).toEqual([]);
  });

  it("has no answer for a caller that has gone", async () => {
    const scope = createRequestScope({ deadlineAtMs: Infinity });
    const engine = fakeEngine(() => {
      scope.cancel();
      return Promise.reject(new EngineError("run-cancelled", "cancelled"));
    });

    const answer = await pipelineAround(engine)(requestBytes(), scope);

    expect(answer).toEqual({ kind: "cancelled" });
    expect(engine.released()).toBe(1);
  });
});
