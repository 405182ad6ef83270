import { fromBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";

import { EngineError } from "../../../src/engine/index.js";
import type { Answer } from "../../../src/function/run-function.js";
import {
  RunFunctionResponseSchema,
  Severity,
} from "../../../src/gen/run_function_pb.js";
import {
  LoaderError,
  type Loader,
  type PullContext,
} from "../../../src/loader/index.js";
import type { ModuleSource, RedirectFence } from "../../../src/ports.js";
import {
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

function bytesOf(answer: Answer): Uint8Array {
  if (answer.kind !== "response") throw new Error(`got ${answer.kind}`);
  return answer.bytes;
}

function decode(answer: Answer) {
  return fromBinary(RunFunctionResponseSchema, bytesOf(answer));
}

/** A loader whose `resolve` adds to what {@link fakeLoader} finds. */
function loaderWith(
  found: Partial<Awaited<ReturnType<Loader["resolve"]>>>,
): Loader {
  const loader = fakeLoader();
  return {
    ...loader,
    async resolve(...args) {
      return { ...(await loader.resolve(...args)), ...found };
    },
  };
}

/** A loader that remembers what it was asked for, and with what. */
function watchedLoader() {
  const loader = fakeLoader();
  const asked: { source: ModuleSource; context: PullContext }[] = [];
  return {
    ...loader,
    asked,
    resolve(...args: Parameters<Loader["resolve"]>) {
      const [source, context] = args;
      asked.push({ source, context });
      return loader.resolve(...args);
    },
  };
}

describe("function/run-function what the loader says", () => {
  const text = "ghcr.io/a/b:v1: no answer; using sha256:0";
  let saidCount = 0;
  const warning = {
    text,
    said() {
      saidCount += 1;
    },
  };

  it("says that its warning was said when an answer went out, and not before", async () => {
    const loader = loaderWith({ warning });
    const trap = new EngineError("run-trap", "it trapped");
    const failing = fakeEngine(() => Promise.reject(trap));
    saidCount = 0;

    await pipelineAround(failing, { loader })(requestBytes(), openScope());
    expect(saidCount).toBe(0);
    await pipelineAround(okEngine(), { loader })(requestBytes(), openScope());

    expect(saidCount).toBe(1);
  });

  it("puts its warning behind the module's own results and changes nothing else", async () => {
    const own = responseBytes({
      meta: { tag: "own" },
      desired: { resources: { kept: { ready: 1 } } },
      results: [{ severity: Severity.NORMAL, message: "greeted" }],
    });
    const engine = fakeEngine(() => Promise.resolve(own));
    const run = pipelineAround(engine, { loader: loaderWith({ warning }) });

    const answer = await run(requestBytes(), openScope());

    expect(bytesOf(answer).subarray(0, own.length)).toEqual(Buffer.from(own));
    expect(decode(answer)).toMatchObject({
      meta: { tag: "own" },
      desired: { resources: { kept: { ready: 1 } } },
      results: [
        { severity: Severity.NORMAL, message: "greeted" },
        { severity: Severity.WARNING, message: text },
      ],
    });
  });

  it("adds tag and --ttl to an answer without meta, warning or not", async () => {
    const engine = fakeEngine(() => Promise.resolve(new Uint8Array()));
    const run = pipelineAround(engine, { loader: loaderWith({ warning }) });

    const { meta, results } = decode(await run(requestBytes(), openScope()));

    expect(meta).toMatchObject({ tag: "a-tag", ttl: { seconds: 60n } });
    expect(results).toMatchObject([{ message: text }]);
  });

  const none = { seconds: 0n, nanos: 0 };
  const refusal = new LoaderError(
    "access-unproven",
    "cannot resolve module: module OCI ghcr.io/a/b:v1: it is in the cache",
    { detail: "which credential it was" },
  );

  it.each([
    {
      name: "the module",
      loader: {
        ...fakeLoader(),
        resolve: () => Promise.reject(refusal),
      },
      engine: okEngine(),
    },
    {
      name: "the manifest",
      loader: loaderWith({ readManifest: () => Promise.reject(refusal) }),
      engine: okEngine(),
    },
    {
      name: "the bytes, when the engine asks for them",
      loader: loaderWith({ warning }),
      engine: { ...okEngine(), load: () => Promise.reject(refusal) },
    },
  ])(
    "answers a refusal of $name with its sentence, for no time at all",
    async ({ loader, engine }) => {
      const { logger, lines } = recordingLogger();
      const run = pipelineAround(engine, { loader, logger });

      const answer = decode(await run(requestBytes(), openScope()));

      expect(answer.results).toMatchObject([
        { severity: Severity.FATAL, message: refusal.message },
      ]);
      expect(answer.results).toHaveLength(1);
      expect(answer.meta).toMatchObject({ tag: "a-tag", ttl: none });
      expect(lines).toMatchObject([
        {
          level: "warn",
          message: "request refused",
          fields: {
            code: "access-unproven",
            reason: refusal.message,
            detail: "which credential it was",
          },
        },
      ]);
    },
  );
});

describe("function/run-function what the loader is given", () => {
  it("is the data of the request's own step credentials, and nothing for a name it lacks", async () => {
    const loader = watchedLoader();
    const run = pipelineAround(okEngine(), { loader });
    const data = (key: string, value: string) => ({
      source: {
        case: "credentialData" as const,
        value: { data: { [key]: Buffer.from(value) } },
      },
    });
    const request = (password: string) =>
      requestBytes({
        input: greeterInput,
        credentials: {
          pull: data("password", password),
          other: data("token", "hunter2-other"),
        },
      });

    await run(request("hunter2-first"), openScope());
    await run(request("hunter2-second"), openScope());

    const read = (name: string) =>
      loader.asked.map(({ context }) => {
        const found = context.credentialOf(name);
        return (
          found &&
          Array.from(found, ([key, value]) => [
            key,
            Buffer.from(value).toString(),
          ])
        );
      });
    expect(read("pull")).toEqual([
      [["password", "hunter2-first"]],
      [["password", "hunter2-second"]],
    ]);
    expect(read("other")[0]).toEqual([["token", "hunter2-other"]]);
    expect(read("gone")).toEqual([null, null]);
    expect(read("")).toEqual([null, null]);
  });

  it("tells a credential without data from one that is not there", async () => {
    const loader = watchedLoader();
    const run = pipelineAround(okEngine(), { loader });
    const source = { case: "credentialData", value: {} } as const;

    await run(
      requestBytes({ input: greeterInput, credentials: { empty: { source } } }),
      openScope(),
    );

    expect(loader.asked[0]?.context.credentialOf("empty")).toEqual(new Map());
  });

  const digest = `sha256:${"a".repeat(64)}`;
  const ref = `ghcr.io/a/b@${digest}`;
  const http = { url: "https://files.example.com/m.wasm", digest };

  it.each([
    { name: "the Input's Path", module: { type: "Path", path: "m.wasm" } },
    { name: "the Input's reference", module: { type: "OCI", oci: { ref } } },
    { name: "the Input's URL", module: { type: "HTTP", http } },
    {
      name: "a Path that the XR chose",
      module: { type: "Path", from: "spec.module" },
      chosen: "m.wasm",
    },
    {
      name: "a reference that the XR chose",
      module: { type: "OCI", from: "spec.module" },
      chosen: { ref },
    },
    {
      name: "a URL that the XR chose",
      module: { type: "HTTP", from: "spec.module" },
      chosen: http,
      isFenced: true,
    },
  ])(
    "has a fence of redirects, or none, for $name",
    async ({ module, chosen, isFenced = false }) => {
      const loader = watchedLoader();
      const run = pipelineAround(okEngine(), { loader });
      const resource = { kind: "XApp", spec: { module: chosen ?? null } };

      const answer = await run(
        requestBytes({
          observed: { composite: { resource } },
          input: { ...greeterInput, module, compositionPolicy: "fence" },
        }),
        openScope(),
      );

      expect(bytesOf(answer)).toEqual(okAnswer);
      expect(loader.asked).toMatchObject([{ source: { type: module.type } }]);
      expect(loader.asked[0]?.context.redirectFence !== null).toBe(isFenced);
    },
  );

  it("is the very fence that admission made", async () => {
    const admission = testAdmission();
    const redirectFence: RedirectFence = {
      key: "a key",
      admit: () => Promise.resolve(),
    };
    const loader = watchedLoader();
    const run = pipelineAround(okEngine(), {
      loader,
      admission: {
        ...admission,
        async chooseSource(...args) {
          const choice = await admission.chooseSource(...args);
          return choice.kind === "empty"
            ? choice
            : { ...choice, redirectFence };
        },
      },
    });

    await run(requestBytes(), openScope());

    expect(loader.asked[0]?.context.redirectFence).toBe(redirectFence);
  });
});
