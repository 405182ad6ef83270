import { execFileSync } from "node:child_process";
import {
  mkdir,
  mkdtemp,
  rm,
  symlink,
  truncate,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import {
  create,
  fromBinary,
  toBinary,
  type JsonObject,
} from "@bufbuild/protobuf";
import { Client, credentials, status } from "@grpc/grpc-js";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";

import {
  startFunction,
  type ServerProcess,
} from "../../../bench/server-process.js";
import {
  RunFunctionRequestSchema,
  RunFunctionResponseSchema,
  Severity,
  type RunFunctionResponse,
} from "../../../src/gen/run_function_pb.js";
import { guest } from "../../support/guests.js";
import { htmlPage, precompiledFile } from "../../support/hostile-modules.js";

const MB = 1_000_000;
const services = ["v1", "v1beta1"].map(
  (version) =>
    `/apiextensions.fn.proto.${version}.FunctionRunnerService/RunFunction`,
);
const [v1Path = ""] = services;

/** Whatever comes in, a caller gets one sentence, and the next caller is served. */
describe("integration/server/bad-input", () => {
  let dir: string;
  let moduleDir: string;
  let server: ServerProcess;
  let client: Client;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), "bad-input-test-"));
    moduleDir = join(dir, "modules");
    await mkdir(join(moduleDir, "directory"), { recursive: true });
    const flags = ["--max-module-size", "1", "--module-memory-limit", "64"];
    server = await startFunction({
      moduleDir,
      cacheDir: join(dir, "cache"),
      flags,
    });
    client = new Client(server.address, credentials.createInsecure());
    await place("good.wasm", await guest("v1/hello"));
  });
  afterAll(async () => {
    client.close();
    await server.stop();
    await rm(dir, { recursive: true, force: true });
  });

  async function place(name: string, bytes: Uint8Array): Promise<void> {
    await writeFile(join(moduleDir, name), bytes);
  }

  afterEach(async () => {
    const response = await call(requestFor("good.wasm"));

    expect(response.results.map(({ message }) => message)).toEqual([
      "hello world",
    ]);
  });

  /** Sends bytes as they are; the raw answer, or the gRPC error. */
  function send(bytes: Uint8Array, path = v1Path): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        path,
        (sent: Uint8Array) => Buffer.from(sent),
        (received) => received,
        bytes,
        { deadline: Date.now() + 30_000 },
        (error, answer) => {
          if (error !== null) reject(error);
          else resolve(answer ?? Buffer.alloc(0));
        },
      );
    });
  }

  async function call(
    bytes: Uint8Array,
    path = v1Path,
  ): Promise<RunFunctionResponse> {
    return fromBinary(RunFunctionResponseSchema, await send(bytes, path));
  }

  /** The one fatal result of an answer that holds nothing else. */
  async function fatalOf(bytes: Uint8Array, path?: string): Promise<string> {
    const response = await call(bytes, path);

    expect(response.meta?.tag).toBe("c0ffee");
    expect(response.results).toHaveLength(1);
    const [result] = response.results;
    expect(result?.severity).toBe(Severity.FATAL);
    const message = result?.message ?? "";
    expect(message).toMatch(/^[^\p{Cc}]*[^\p{Cc}.]$/u);
    return message;
  }

  it.each([
    {
      name: "a missing file",
      file: "missing.wasm",
      want: ["no such file", "--module-dir"],
    },
    {
      name: "a directory",
      file: "directory",
      want: ["expected a regular file, got a directory"],
    },
    { name: "a way out", file: "../secret.wasm", want: ["--module-dir"] },
    { name: "a device", file: "/dev/zero", want: ["--module-dir"] },
    { name: "an empty path", file: "", want: ["path"] },
    { name: "a NUL in the path", file: "a\0b", want: ["NUL"] },
  ])("refuses $name", async ({ file, want }) => {
    const message = await fatalOf(requestFor(file));

    for (const part of want) expect(message).toContain(part);
  });

  it("refuses a link that leads out of the module directory", async () => {
    await writeFile(join(dir, "outside.wasm"), await guest("v1/hello"));
    await symlink(join(dir, "outside.wasm"), join(moduleDir, "link.wasm"));

    expect(await fatalOf(requestFor("link.wasm"))).toMatch(
      /module Path link\.wasm.*link.*out of --module-dir/,
    );
  });

  it("refuses a FIFO without waiting for its writer", async () => {
    execFileSync("mkfifo", [join(moduleDir, "fifo.wasm")]);

    expect(await fatalOf(requestFor("fifo.wasm"))).toContain(
      "expected a regular file, got a FIFO",
    );
  });

  it("refuses a module over --max-module-size", async () => {
    await place("large.wasm", Buffer.alloc(0));
    await truncate(join(moduleDir, "large.wasm"), 2 * MB);

    expect(await fatalOf(requestFor("large.wasm"))).toMatch(
      /module Path large\.wasm.*2000000 bytes, --max-module-size/,
    );
  });

  const guests = [
    {
      guest: "shape/no-exports",
      want: /export wasmfn_run: expected .*no such/,
    },
    { guest: "shape/no-memory", want: /export memory: expected .*no such/ },
    {
      guest: "shape/run-signature",
      want: /expected .*\(i32, i32\) -> i64.*got .*\(i32\) -> i32/,
    },
    {
      guest: "shape/run-is-global",
      want: /wasmfn_run: expected .*got a global/,
    },
    { guest: "shape/import-env", want: /unknown import env\.do_evil/ },
    { guest: "shape/memory64", want: /memory64/ },
    {
      guest: "v2/run-inside-interface",
      want: /expected run: .*got .*example:other/,
    },
    { guest: "v2/import-unknown", want: /unknown import evil:host/ },
    { guest: "hostile/memory-too-large", want: /--module-memory-limit/ },
    {
      guest: "hostile/response-outside",
      want: /returned 16 bytes at .*expected .*memory/,
    },
    { guest: "hostile/response-garbage", want: /not a RunFunctionResponse/ },
    {
      guest: "hostile/response-bad-utf8",
      want: /not a RunFunctionResponse.*UTF-8/,
    },
    { guest: "hostile/unreachable", want: /unreachable/ },
    { guest: "hostile/stack-overflow", want: /call stack exhausted/ },
    { guest: "hostile/loop-run", want: /limits\.timeout.*1000 ms/ },
    { guest: "hostile/loop-start", want: /limits\.timeout/ },
    { guest: "wasi/poll-hour", want: /limits\.timeout/ },
    {
      guest: "v2/error",
      want: /failed: run returned an error: no greeting in config$/,
    },
    { guest: "wasi/exit-0", want: /exited with status 0/ },
  ];
  it.each(guests)("answers $guest with a fatal result", async (row) => {
    await place("module.wasm", await guest(row.guest));

    const message = await fatalOf(requestFor("module.wasm", { timeout: "1s" }));

    expect(message).toContain("module Path module.wasm");
    expect(message).toMatch(row.want);
  });

  it.each([
    {
      name: "garbage",
      make: () => Buffer.alloc(512, "\xf7\x03\x91"),
      want: /expected a WebAssembly module or component, got 512 bytes/,
    },
    {
      name: "an HTML page",
      make: htmlPage,
      want: /expected a WebAssembly module.*HTML/,
    },
    {
      name: "8 zero bytes",
      make: () => Buffer.alloc(8),
      want: /expected a WebAssembly module/,
    },
    { name: "native code", make: precompiledFile, want: /precompiled/ },
    { name: "an empty file", make: () => Buffer.alloc(0), want: /empty/ },
    {
      name: "a truncated file",
      make: async () => (await guest("v1/echo")).subarray(0, 60),
      want: /not a valid WebAssembly module|ends before/,
    },
  ])("answers $name with a fatal result", async ({ make, want }) => {
    await place("module.wasm", await make());

    const message = await fatalOf(requestFor("module.wasm"));

    expect(message).toContain("module Path module.wasm");
    expect(message).toMatch(want);
  });

  it.each([
    { name: "no Input", input: undefined, want: /no input/ },
    {
      name: "an empty Input",
      input: {},
      want: /apiVersion: expected wasm\.fn\.crossplane\.io\/v1/,
    },
    {
      name: "an Input of another kind",
      input: { ...inputFor("good.wasm"), kind: "Resources" },
      want: /kind: expected Input/,
    },
    {
      name: "an Input without module",
      input: { apiVersion: "wasm.fn.crossplane.io/v1", kind: "Input" },
      want: /module/,
    },
    {
      name: "a misspelt field",
      input: { ...inputFor("good.wasm"), compositionPolcy: "" },
      want: /compositionPolcy.*compositionPolicy/,
    },
    {
      name: "a removed field",
      input: { ...inputFor("good.wasm"), sandbox: {} },
      want: /the Input's sandbox field was removed: /,
    },
    {
      name: "a module in a registry that is not there",
      input: {
        ...inputFor("good.wasm"),
        module: {
          type: "OCI",
          oci: { ref: `127.0.0.1:1/example/greeter@sha256:${"0".repeat(64)}` },
        },
      },
      want: /^cannot resolve module: module OCI 127\.0\.0\.1:1\/example\/greeter@sha256:0{64}: 127\.0\.0\.1:1: connection refused/,
    },
    {
      name: "a memory limit above the ceiling",
      input: { ...inputFor("good.wasm"), limits: { memory: "1Gi" } },
      want: /limits\.memory 1Gi exceeds the runtime's --module-memory-limit of 64Mi/,
    },
    {
      name: "a timeout above the ceiling",
      input: { ...inputFor("good.wasm"), limits: { timeout: "1h" } },
      want: /limits\.timeout 1h exceeds the runtime's --module-timeout of 30s/,
    },
    {
      name: "a timeout that is none",
      input: { ...inputFor("good.wasm"), limits: { timeout: "soon" } },
      want: /limits\.timeout.*soon/,
    },
    {
      name: "a module that is a list",
      input: { ...inputFor("good.wasm"), module: [] },
      want: /module/,
    },
  ])("answers $name with a fatal result", async ({ input, want }) => {
    expect(await fatalOf(requestWith(input))).toMatch(want);
  });

  it.each(services.map((path) => ({ path })))(
    "says INVALID_ARGUMENT to what is no protobuf on $path",
    async ({ path }) => {
      for (const hex of [
        "ff",
        "0aff",
        "0a05616263",
        "07",
        "6869206d756d",
        "22ffffffff0f",
      ]) {
        await expect(send(Buffer.from(hex, "hex"), path)).rejects.toMatchObject(
          {
            code: status.INVALID_ARGUMENT,
          },
        );
      }
    },
  );

  it.each(services.map((path) => ({ path })))(
    "answers an empty request with a fatal result on $path",
    async ({ path }) => {
      const { results } = await call(new Uint8Array(), path);

      expect(results[0]?.severity).toBe(Severity.FATAL);
      expect(results[0]?.message).toMatch(/no input/);
    },
  );

  it("answers an Input nested 3,000 deep, whatever it thinks of it", async () => {
    // Value { struct_value: Struct { fields: {"": Value {…}} } }, from the inside out.
    let value: Buffer = Buffer.alloc(0);
    for (let depth = 0; depth < 3_000; depth++) {
      value = field(5, field(1, field(2, value)));
    }
    const request = Buffer.concat([
      requestFor("good.wasm"),
      field(
        4,
        field(
          1,
          Buffer.concat([field(1, Buffer.from("deep")), field(2, value)]),
        ),
      ),
    ]);

    const outcome = await send(request).then(
      (bytes) =>
        fromBinary(RunFunctionResponseSchema, bytes).results[0]?.severity,
      (error: unknown) => (error as { code: number }).code,
    );

    expect([Severity.FATAL, status.INVALID_ARGUMENT]).toContain(outcome);
  });

  it("asks for no caching of what may be different next time", async () => {
    const { meta } = await call(requestFor("missing.wasm"));

    expect(meta?.ttl?.seconds ?? 0n).toBe(0n);
    expect(meta?.ttl?.nanos ?? 0).toBe(0);
  });

  it("lets what only a new Input can change be cached", async () => {
    const { meta } = await call(requestWith({}));

    expect(meta?.ttl?.seconds).toBe(60n);
  });

  it("survives a hundred bad calls at once", async () => {
    const names = await Promise.all(
      ["hostile/unreachable", "hostile/response-garbage", "shape/no-run"].map(
        async (name, index) => {
          await place(`bad-${index}.wasm`, await guest(name));
          return `bad-${index}.wasm`;
        },
      ),
    );

    const messages = await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        fatalOf(requestFor(names[index % 3] ?? "")),
      ),
    );

    expect(messages).toHaveLength(100);
  });
});

function inputFor(path: string, limits?: JsonObject): JsonObject {
  return {
    apiVersion: "wasm.fn.crossplane.io/v1",
    kind: "Input",
    module: { type: "Path", path },
    ...(limits === undefined ? {} : { limits }),
  };
}

function requestFor(path: string, limits?: JsonObject): Uint8Array {
  return requestWith(inputFor(path, limits));
}

function requestWith(input: JsonObject | undefined): Uint8Array {
  const request = create(RunFunctionRequestSchema, {
    meta: { tag: "c0ffee" },
    ...(input === undefined ? {} : { input }),
  });
  return toBinary(RunFunctionRequestSchema, request);
}

/** A length-delimited field. */
function field(number: number, payload: Buffer): Buffer {
  const length: number[] = [];
  let rest = payload.length;
  for (; rest >= 128; rest = Math.floor(rest / 128))
    length.push((rest % 128) + 128);
  return Buffer.concat([Buffer.of(number * 8 + 2, ...length, rest), payload]);
}
