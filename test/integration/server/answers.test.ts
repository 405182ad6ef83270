import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import {
  create,
  fromBinary,
  toBinary,
  type JsonObject,
  type MessageInitShape,
} from "@bufbuild/protobuf";
import { Client, credentials } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import {
  startFunction,
  type ServerProcess,
} from "../../../bench/server-process.js";
import {
  type ResourcesSchema,
  RunFunctionRequestSchema,
  RunFunctionResponseSchema,
} from "../../../src/gen/run_function_pb.js";
import { guest } from "../../support/guests.js";
import { missingTool } from "../../support/tools.js";

const RUN_FUNCTION =
  "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction";

/** The built program: whether its answers are alike, and how long they may be kept. */
describe("integration/server/answers", () => {
  let dir: string;
  let server: ServerProcess;
  let client: Client;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), "answers-test-"));
    await mkdir(join(dir, "modules"));
    server = await startFunction({
      moduleDir: join(dir, "modules"),
      cacheDir: join(dir, "cache"),
    });
    client = new Client(server.address, credentials.createInsecure());
  });
  afterAll(async () => {
    client.close();
    await server.stop();
    await rm(dir, { recursive: true, force: true });
  });

  function call(request: Uint8Array): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        RUN_FUNCTION,
        (bytes: Uint8Array) => Buffer.from(bytes),
        (bytes) => bytes,
        request,
        { deadline: Date.now() + 120_000 },
        (error, answer) => {
          if (error !== null) reject(error);
          else resolve(answer ?? Buffer.alloc(0));
        },
      );
    });
  }

  function requestOf(
    path: string,
    config: JsonObject,
    requiredResources: Record<
      string,
      MessageInitShape<typeof ResourcesSchema>
    > = {},
  ): Uint8Array {
    const input = {
      apiVersion: "wasm.fn.crossplane.io/v1",
      kind: "Input",
      module: { type: "Path", path },
      config,
    };
    return toBinary(
      RunFunctionRequestSchema,
      create(RunFunctionRequestSchema, {
        meta: { tag: "c0ffee" },
        input,
        requiredResources,
      }),
    );
  }

  describe.skipIf(missingTool("go"))("a module full of Go maps", () => {
    beforeAll(async () => {
      await promisify(execFile)(
        "go",
        [
          ...["build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w"],
          ...["-o", join(dir, "modules", "go-maps.wasm"), "."],
        ],
        {
          cwd: fileURLToPath(new URL("../../guests/go-maps", import.meta.url)),
          env: { ...process.env, GOOS: "wasip1", GOARCH: "wasm" },
        },
      );
    }, 300_000);

    async function digestsOf(order: string, calls: number) {
      const request = requestOf("go-maps.wasm", { order });
      const digests = new Set<string>();
      for (let i = 0; i < calls; i++) {
        const answer = await call(request);
        const { results, desired } = fromBinary(
          RunFunctionResponseSchema,
          answer,
        );
        expect(results).toEqual([]);
        expect(Object.keys(desired?.resources ?? {})).toHaveLength(40);
        digests.add(createHash("sha256").update(answer).digest("hex"));
      }
      return digests;
    }

    it("answers equal requests alike, 100 times, when it sorts them", async () => {
      expect((await digestsOf("sorted", 100)).size).toBe(1);
    });

    // What docs/module-authors.md warns of; without it, the test above could not fail.
    it("answers them differently when it does not", async () => {
      expect((await digestsOf("as-it-comes", 10)).size).toBeGreaterThan(1);
    });
  });

  it.each([
    { name: "none of it", carried: {}, wantSeconds: 0n },
    { name: "another one", carried: { other: {} }, wantSeconds: 0n },
    { name: "it, not found", carried: { config: {} }, wantSeconds: 60n },
    {
      name: "it",
      carried: { config: { items: [{ resource: { kind: "ConfigMap" } }] } },
      wantSeconds: 60n,
    },
  ])(
    "gives an answer that asks for a resource a TTL of $wantSeconds s when the request carries $name",
    async ({ carried, wantSeconds }) => {
      await writeFile(
        join(dir, "modules", "requirements.wasm"),
        await guest("v1/requirements"),
      );

      const answer = await call(requestOf("requirements.wasm", {}, carried));

      const { meta, requirements } = fromBinary(
        RunFunctionResponseSchema,
        answer,
      );
      expect(requirements?.resources).toMatchObject({
        config: { apiVersion: "v1", kind: "ConfigMap" },
      });
      expect(meta).toMatchObject({
        tag: "c0ffee",
        ttl: { seconds: wantSeconds, nanos: 0 },
      });
    },
  );
});
