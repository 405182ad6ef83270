import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

import { describe, expect, it, onTestFinished } from "vitest";

import { createMetrics } from "../../../src/function/metrics.js";
import { startServer } from "../../../src/function/server.js";
import type { FoundModule } from "../../../src/ports.js";
import { clock, MiB, startEngine } from "../../support/engine.js";
import { guest } from "../../support/guests.js";
import { readMetricsPage, sampleOf } from "../../support/metrics-page.js";
import {
  fakeLoader,
  pipelineAround,
  recordingLogger,
  testAdmission,
} from "../../unit/function/fixtures.js";
import { connect as connectCaller, type Caller } from "../loader/caller.js";
import { usePrograms } from "../loader/program.js";

const modules = [
  ["spin.wasm", "hostile/loop-run"],
  ["hello.wasm", "v1/hello"],
] as const;

/** A module spins in the only slot, and its caller is gone. */
describe("integration/server/vanished-callers", () => {
  const programs = usePrograms("suite");

  it("ends a run whose connection goes dead without a word", async () => {
    const { address, running } = await serveWithKeepalive(200, 300);
    const relay = await startRelay(address);
    spin(relay.address);
    await expect.poll(running, { timeout: 20_000 }).toBe(1);
    // Longer than a dead one would be given: its pings are answered.
    await delay(1_500);
    expect(await running()).toBe(1);

    relay.cut();

    await expect.poll(running, { timeout: 5_000 }).toBe(0);
    expect(await greetingOf(callerOf(address))).toEqual(["hello world"]);
  }, 60_000);

  it("ends a run whose connection is reset", async () => {
    const moduleDir = join(programs.dir(), "modules");
    await mkdir(moduleDir);
    for (const [path, name] of modules)
      await writeFile(join(moduleDir, path), await guest(name));
    const program = await programs.start([
      ...["--module-dir", moduleDir, "--module-timeout", "5m"],
      ...["--max-concurrent-runs", "1"],
    ]);
    const [listening] = program.lines("listening");
    const running = async () => {
      const url = `http://${String(listening?.["metricsAddress"])}/metrics`;
      return runsIn(await (await fetch(url)).text());
    };
    const relay = await startRelay(String(listening?.["address"]));
    spin(relay.address);
    await expect.poll(running, { timeout: 20_000 }).toBe(1);
    await delay(500);
    expect(await running()).toBe(1);

    relay.reset();

    await expect.poll(running, { timeout: 5_000 }).toBe(0);
    expect(await greetingOf(program)).toEqual(["hello world"]);
  }, 60_000);

  /** A server with a real engine of one slot, which asks its clients in milliseconds. */
  async function serveWithKeepalive(
    keepaliveTimeMs: number,
    keepaliveTimeoutMs: number,
  ) {
    const { metrics, grpc, exposition } = createMetrics();
    const engine = await startEngine({ metrics, maxConcurrentRuns: 1 });
    onTestFinished(() => engine.close());
    const found = new Map<string, FoundModule>();
    for (const [path, name] of modules)
      found.set(path, await engine.write(await guest(name)));
    const { logger } = recordingLogger();
    const runFunction = pipelineAround(engine.engine, {
      metrics,
      logger,
      loader: {
        ...fakeLoader(),
        resolve(source) {
          const path = source.type === "Path" ? source.path : "";
          const module = found.get(path);
          if (module === undefined) throw new Error(`no module ${path}`);
          return Promise.resolve({
            module,
            manifestDigest: null,
            warning: null,
            readManifest: () => Promise.resolve(null),
          });
        },
      },
      admission: testAdmission({
        ceilings: {
          timeoutMs: 300_000,
          timeoutText: "5m",
          memoryBytes: 64 * MiB,
          memoryText: "64Mi",
          moduleDirSet: true,
          allowUnpinnedTags: false,
        },
      }),
    });
    const server = await startServer(
      {
        address: { host: "127.0.0.1", port: 0 },
        tlsCertsDir: null,
        maxReceiveBytes: 4 * MiB,
        maxConnectionAgeMs: 0,
        maxConnectionAgeGraceMs: 0,
        onTlsReload: () => undefined,
        onClientRefused: () => undefined,
        keepaliveTimeMs,
        keepaliveTimeoutMs,
      },
      runFunction,
      clock,
      logger,
      grpc,
    );
    onTestFinished(() => server.drain(0));
    return {
      address: server.address,
      running: async () => runsIn((await exposition(undefined)).body),
    };
  }

  function callerOf(address: string): Caller {
    const caller = connectCaller(address);
    onTestFinished(() => caller.close());
    return caller;
  }

  /** Calls a module that never returns; nobody waits for the answer. */
  function spin(address: string): void {
    const module = { type: "Path", path: "spin.wasm" };
    void callerOf(address)
      .call({ module })
      .catch(() => undefined);
  }

  async function greetingOf(caller: Caller): Promise<readonly string[]> {
    const module = { type: "Path", path: "hello.wasm" };
    return (await caller.call({ module })).messages;
  }
});

function runsIn(page: string): number | undefined {
  return sampleOf(readMetricsPage(page), "function_wasm_module_runs_in_flight");
}

/** A way to a server that can end as networks end. */
interface Relay {
  /** `host:port` */
  readonly address: string;
  /** Nothing passes any more, and neither end is told. */
  cut(): void;
  /** Both ends are told at once. */
  reset(): void;
}

async function startRelay(to: string): Promise<Relay> {
  const [host = "", port = ""] = to.split(":");
  const sockets: Socket[] = [];
  const server = createServer((near) => {
    const far = connect({ host, port: Number(port) });
    for (const socket of [near, far]) socket.on("error", () => undefined);
    sockets.push(near, far);
    near.pipe(far).pipe(near);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  const own = typeof address === "object" ? address?.port : undefined;
  return {
    address: `127.0.0.1:${String(own)}`,
    cut() {
      // The client must not come again on another way.
      server.close();
      for (const socket of sockets) socket.unpipe().pause();
    },
    reset() {
      server.close();
      for (const socket of sockets) socket.resetAndDestroy();
    },
  };
}
