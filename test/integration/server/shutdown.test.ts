import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

import { fromBinary } from "@bufbuild/protobuf";
import { Client, credentials, status } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { runFunctionRequest } from "../../../bench/request.js";
import {
  startFunction,
  type ServerProcess,
} from "../../../bench/server-process.js";
import { RunFunctionResponseSchema } from "../../../src/gen/run_function_pb.js";
import { guest } from "../../support/guests.js";

const RUN_FUNCTION =
  "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction";

/** How a call ended: the messages of its results, or a gRPC status. */
type Ending = readonly string[] | status;

/** The built program, told to stop while a module spins in it. */
describe.concurrent("integration/server/shutdown", () => {
  let dir: string;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), "shutdown-test-"));
    await mkdir(join(dir, "modules"));
    const spinning = await guest("hostile/loop-run");
    await writeFile(join(dir, "modules", "spin.wasm"), spinning);
  });
  afterAll(() => rm(dir, { recursive: true, force: true }));

  let caches = 0;
  function start(): Promise<ServerProcess> {
    return startFunction({
      moduleDir: join(dir, "modules"),
      cacheDir: join(dir, `cache-${caches++}`),
      flags: ["--module-timeout", "5m"],
    });
  }

  async function call(
    { address }: ServerProcess,
    timeout: string,
    deadlineMs: number,
  ): Promise<Ending> {
    const client = new Client(address, credentials.createInsecure());
    const request = runFunctionRequest({ modulePath: "spin.wasm", timeout });
    try {
      return await new Promise<Ending>((resolve) => {
        client.makeUnaryRequest(
          RUN_FUNCTION,
          (bytes: Uint8Array) => Buffer.from(bytes),
          (bytes) => fromBinary(RunFunctionResponseSchema, bytes),
          request,
          { deadline: Date.now() + deadlineMs },
          (error, answer) => {
            if (error !== null) resolve(error.code);
            else resolve((answer?.results ?? []).map((each) => each.message));
          },
        );
      });
    } finally {
      client.close();
    }
  }

  /** A server with a call that spins, and how both end after `signals` times SIGTERM. */
  async function stopWhileSpinning(
    bounds: { readonly timeout: string; readonly deadlineMs: number },
    signals = 1,
  ) {
    const server = await start();
    // Compiled before, so that the next one runs at once.
    await call(server, "10ms", 20_000);
    const answer = call(server, bounds.timeout, bounds.deadlineMs);
    await delay(500);
    const signalledAtMs = performance.now();
    for (let i = 0; i < signals; i++) {
      process.kill(server.pid, "SIGTERM");
      await delay(100);
    }
    const code = await server.ended;
    const tookMs = performance.now() - signalledAtMs;
    return { ending: await answer, code, tookMs };
  }

  it("answers the call under way, whose module is cut at its limit", async () => {
    const { ending, code, tookMs } = await stopWhileSpinning({
      timeout: "4s",
      deadlineMs: 60_000,
    });

    expect(ending).toEqual([
      expect.stringContaining("limits.timeout allows: 4000 ms"),
    ]);
    expect(code).toBe(0);
    expect(tookMs).toBeGreaterThan(3_000);
    expect(tookMs).toBeLessThan(12_000);
  });

  it("waits for no longer than its caller does", async () => {
    const { ending, code, tookMs } = await stopWhileSpinning({
      timeout: "2m",
      deadlineMs: 3_000,
    });

    // The caller's own clock tells him, or the answer does: they run out together.
    expect([
      status.DEADLINE_EXCEEDED,
      [expect.stringContaining("the request's deadline passed")],
    ]).toContainEqual(ending);
    expect(code).toBe(0);
    expect(tookMs).toBeGreaterThan(2_000);
    expect(tookMs).toBeLessThan(10_000);
  });

  it("ends within 25 s, whatever runs", async () => {
    const { ending, code, tookMs } = await stopWhileSpinning({
      timeout: "2m",
      deadlineMs: 60_000,
    });

    expect([status.CANCELLED, status.UNAVAILABLE]).toContain(ending);
    expect(code).toBe(0);
    expect(tookMs).toBeGreaterThan(24_900);
    // Kubernetes kills 30 s after its signal.
    expect(tookMs).toBeLessThan(29_000);
  });

  it("ends at once when told a second time", async () => {
    const { ending, code, tookMs } = await stopWhileSpinning(
      { timeout: "2m", deadlineMs: 60_000 },
      2,
    );

    expect(ending).toBe(status.UNAVAILABLE);
    expect(code).toBe(1);
    expect(tookMs).toBeLessThan(3_000);
  });

  it("ends at once when nothing is under way", async () => {
    const server = await start();
    const signalledAtMs = performance.now();

    expect(await server.stop()).toBe(0);

    expect(performance.now() - signalledAtMs).toBeLessThan(3_000);
  });
});
