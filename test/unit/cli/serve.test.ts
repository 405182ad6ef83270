import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { Command } from "commander";
import { service as healthService } from "grpc-health-check";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";

import { AdmissionError } from "../../../src/admission/index.js";
import { addServeCommand } from "../../../src/cli/serve.js";
import { ConfigError, type Environment } from "../../../src/config.js";
import type { EngineOptions } from "../../../src/engine/index.js";
import { LoaderError } from "../../../src/loader/index.js";
import { unsupportedFlags } from "../../../src/unsupported-flags.js";
import { createTestPolicyEngine } from "../../support/policy-engine.js";
import { recordOutput } from "../../support/suite-output.js";
import { missingTool } from "../../support/tools.js";
import { createCertificateMaker } from "../function/certificates.js";
import {
  fakeEngine,
  realClock,
  recordingLogger,
  requestBytes,
  responseBytes,
} from "../function/fixtures.js";
import { createServers } from "../loader/http/servers.js";

/** Everything around `serve`, and what happened to it. */
function startable(
  env: Environment = {},
  /** Called when the engine is asked for a module. */
  onLoad: () => Promise<void> = () => Promise.resolve(),
) {
  const { logger, lines } = recordingLogger();
  const engineOptions: EngineOptions[] = [];
  const exits: number[] = [];
  let closed = 0;
  let answer: () => void = () => undefined;
  let started: () => void = () => undefined;
  let exited: () => void = () => undefined;
  const held = new Promise<void>((resolve) => (answer = resolve));
  const whenStarted = new Promise<void>((resolve) => (started = resolve));
  const whenExited = new Promise<void>((resolve) => (exited = resolve));
  let terminate: () => void = () => undefined;
  let reload: () => void = () => undefined;
  const program = new Command().exitOverride();
  addServeCommand(program, {
    env,
    clock: realClock,
    createEngine(options) {
      engineOptions.push(options);
      const engine = fakeEngine(async () => {
        started();
        await held;
        return responseBytes({ meta: { tag: "held" } });
      });
      return {
        ...engine,
        async load(module, scope) {
          await onLoad();
          return await engine.load(module, scope);
        },
        close() {
          closed++;
          return Promise.resolve();
        },
      };
    },
    createPolicyEngine: createTestPolicyEngine,
    createLogger: () => logger,
    onTermination: (listener) => (terminate = listener),
    onReload: (listener) => (reload = listener),
    watchFile: () => () => undefined,
    exit(code) {
      exits.push(code);
      exited();
    },
  });
  const listening = () =>
    lines.find((line) => line.message === "listening")?.fields;
  onTestFinished(async () => {
    if (listening() === undefined || exits.length > 0) return;
    answer();
    terminate();
    await whenExited;
  });
  return {
    run: (...argv: string[]) => program.parseAsync(argv, { from: "user" }),
    engineOptions,
    exits,
    lines,
    closed: () => closed,
    listening,
    answer: () => answer(),
    terminate: () => terminate(),
    reload: () => reload(),
    whenStarted,
    whenExited,
  };
}

async function pageAt(address: string, path: string): Promise<string> {
  const page = await (await fetch(`http://${address}${path}`)).text();
  recordOutput("page", page);
  return page;
}

const directories: string[] = [];
afterAll(() => {
  for (const dir of directories) rmSync(dir, { recursive: true, force: true });
});

const insecure = [
  ...["--cache-dir", join(temporaryDirectory(), "cache")],
  "--insecure",
  ...["--address", "127.0.0.1:0"],
  ...["--metrics-address", "127.0.0.1:0"],
  ...["--health-address", "127.0.0.1:0"],
];

function call(address: unknown, moduleDir: string): Promise<Buffer> {
  const client = new Client(String(address), credentials.createInsecure());
  const input = {
    apiVersion: "wasm.fn.crossplane.io/v1",
    kind: "Input",
    module: { type: "Path", path: join(moduleDir, "m.wasm") },
  };
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(
      "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction",
      (value: Uint8Array) => Buffer.from(value),
      (value: Buffer) => value,
      requestBytes({ input }),
      new Metadata(),
      (error, value) => {
        client.close();
        if (error === null) resolve(value ?? Buffer.alloc(0));
        else reject(error);
      },
    );
  });
}

/** What the server says over gRPC to whoever asks for its health. */
function healthOf(address: unknown): Promise<unknown> {
  const check = healthService["Check"];
  if (check === undefined) throw new Error("no Check");
  const client = new Client(String(address), credentials.createInsecure());
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(
      check.path,
      check.requestSerialize,
      check.responseDeserialize,
      { service: "" },
      (error, value: unknown) => {
        client.close();
        if (error === null) resolve(value);
        else reject(error);
      },
    );
  });
}

function temporaryDirectory(): string {
  const dir = mkdtempSync(join(tmpdir(), "function-wasm-serve-"));
  directories.push(dir);
  return dir;
}

describe("cli/serve", () => {
  it("serves by default, and logs the port it was given", async () => {
    const host = startable();

    await host.run(...insecure);

    expect(host.listening()).toMatchObject({
      address: expect.stringMatching(/^127\.0\.0\.1:[1-9]\d*$/) as string,
      insecure: true,
    });
  });

  it("hands the engine what the flags say", async () => {
    const host = startable({ ENGINE_WORKERS: "2" });

    await host.run(
      ...["serve", ...insecure, "--module-memory-limit", "64"],
      "--no-enable-memory-cache",
    );

    expect(host.engineOptions).toMatchObject([
      {
        engineWorkers: 2,
        keepsIdleModules: false,
        memoryLimitBytes: 64 * 1024 * 1024,
        maxResponseBytes: 16 * 1024 * 1024,
        artifactKey: null,
      },
    ]);
  });

  it("finishes the call being answered when told to stop, then exits 0", async () => {
    const host = startable();
    const moduleDir = temporaryDirectory();
    writeFileSync(join(moduleDir, "m.wasm"), "module");
    await host.run(...insecure, "--module-dir", moduleDir);
    const answer = call(host.listening()?.["address"], moduleDir);
    await host.whenStarted;

    host.terminate();
    host.answer();

    expect((await answer).toString()).toContain("held");
    await host.whenExited;
    expect(host.exits).toEqual([0]);
    expect(host.closed()).toBe(1);
  });

  it("exits at once when told a second time", async () => {
    const host = startable();
    const moduleDir = temporaryDirectory();
    writeFileSync(join(moduleDir, "m.wasm"), "module");
    await host.run(...insecure, "--module-dir", moduleDir);
    const answer = call(host.listening()?.["address"], moduleDir);
    await host.whenStarted;

    host.terminate();
    host.terminate();

    expect(host.exits).toEqual([1]);
    host.answer();
    await answer;
    await expect.poll(() => host.exits).toEqual([1, 0]);
  });

  it("exits at once when told to stop before it serves", async () => {
    const file = join(temporaryDirectory(), "policy.cedar");
    writeFileSync(file, "");
    const host = startable();

    const starting = host.run(...insecure, "--sandbox-policy-file", file);
    host.terminate();
    await host.whenExited;

    expect(host.exits).toEqual([0]);
    expect(host.listening()).toBeUndefined();
    await starting;
  });

  it("is not ready while it stops", async () => {
    const host = startable();
    const moduleDir = temporaryDirectory();
    writeFileSync(join(moduleDir, "m.wasm"), "module");
    await host.run(...insecure, "--module-dir", moduleDir);
    const address = String(host.listening()?.["healthAddress"]);
    const readiness = async () =>
      (await fetch(`http://${address}/readyz`)).status;
    await expect.poll(readiness).toBe(200);
    const answer = call(host.listening()?.["address"], moduleDir);
    await host.whenStarted;

    host.terminate();

    expect(await readiness()).toBe(503);
    host.answer();
    await answer;
    await host.whenExited;
  });

  it("does not become ready once it stops", async () => {
    let isWarming = false;
    let warm: () => void = () => undefined;
    const warmed = new Promise<void>((resolve) => (warm = resolve));
    const host = startable({}, () => {
      isWarming = true;
      return warmed;
    });
    const moduleDir = temporaryDirectory();
    writeFileSync(join(moduleDir, "m.wasm"), "module");
    await host.run(
      ...[...insecure, "--module-dir", moduleDir],
      "--warm-modules=path:m.wasm",
    );
    await expect.poll(() => isWarming).toBe(true);

    host.terminate();
    await host.whenExited;
    warm();
    const messages = () => host.lines.map(({ message }) => message);
    await expect.poll(messages).toContain("module is warm");

    expect(messages()).not.toContain("ready");
  });

  const shortKey = join(temporaryDirectory(), "key");
  writeFileSync(shortKey, "hunter2");

  it.each([
    {
      name: "neither certificates nor --insecure",
      argv: [],
      want: "neither --tls-certs-dir (TLS_SERVER_CERTS_DIR) nor --insecure (INSECURE) is set: expected one of them",
    },
    {
      name: "a key that is not there",
      argv: [...insecure, "--artifact-key-file", "/nowhere"],
      want: "--artifact-key-file: ENOENT",
    },
    {
      name: "a key that is too short",
      argv: [...insecure, "--artifact-key-file", shortKey],
      want: "--artifact-key-file: expected at least 32 bytes in",
    },
    {
      name: "a key without an end",
      argv: [...insecure, "--artifact-key-file", "/dev/zero"],
      want: "--artifact-key-file: expected a regular file, got /dev/zero",
    },
    {
      name: "a module directory that is not there",
      argv: [...insecure, "--module-dir", "/nowhere"],
      want: "--module-dir: ENOENT: no such file or directory, stat '/nowhere'",
    },
    {
      name: "a module directory that is a file",
      argv: [...insecure, "--module-dir", shortKey],
      want: `--module-dir: expected a directory, got ${shortKey}`,
    },
    {
      name: "a switch that is neither on nor off",
      argv: [...insecure, "--debug=maybe"],
      want: '--debug: expected true or false, got "maybe"',
    },
    {
      name: "TLS turned on again",
      argv: [...insecure, "--insecure=false"],
      want: "neither --tls-certs-dir (TLS_SERVER_CERTS_DIR) nor --insecure (INSECURE) is set",
    },
    {
      name: "a module directory of the environment that is not there",
      argv: insecure,
      env: { MODULE_DIR: "/nowhere" },
      want: "--module-dir (MODULE_DIR): ENOENT: no such file or directory, stat '/nowhere'",
    },
  ])("does not start with $name", async ({ argv, env = {}, want }) => {
    const host = startable(env);

    const started = host.run(...argv);

    await expect(started).rejects.toThrow(ConfigError);
    await expect(started).rejects.toThrow(want);
    expect(host.engineOptions).toEqual([]);
  });

  it.each(
    unsupportedFlags.flatMap(({ name, env }) => [
      { argv: [`--${name}`, "planted"], env: {}, want: `--${name}: ` },
      { argv: [`--${name}=planted`], env: {}, want: `--${name}: ` },
      { argv: [`--${name}`], env: {}, want: `--${name}: ` },
      ...(env === null
        ? []
        : [
            { argv: [], env: { [env]: "planted" }, want: `--${name} (${env})` },
          ]),
    ]),
  )("does not start with $argv $env, which it cannot honour", async (row) => {
    const host = startable(row.env);

    const started = host.run(...insecure, ...row.argv);

    await expect(started).rejects.toThrow(ConfigError);
    await expect(started).rejects.toThrow(row.want);
    await expect(started).rejects.toThrow("not supported: ");
    await expect(started).rejects.not.toThrow("planted");
    expect(host.engineOptions).toEqual([]);
  });

  const rateLimits = unsupportedFlags.filter(({ off }) => off !== null);

  it("knows what turns egress rate limits off", () => {
    expect(rateLimits.map(({ name, off }) => [name, off])).toEqual([
      ["egress-rate-limit-per-minute", "0"],
      ["egress-rate-limit-burst", "0"],
    ]);
  });

  it.each([
    { argv: ["--egress-rate-limit-per-minute", "0"], env: {} },
    { argv: ["--egress-rate-limit-burst=0"], env: {} },
    { argv: [], env: { EGRESS_RATE_LIMIT_PER_MINUTE: "0" } },
    { argv: [], env: { EGRESS_RATE_LIMIT_BURST: "0" } },
    {
      argv: ["--egress-rate-limit-burst=0"],
      env: { EGRESS_RATE_LIMIT_BURST: "5" },
    },
  ])("starts with $argv $env, which is off", async ({ argv, env }) => {
    const host = startable(env);

    await host.run(...insecure, ...argv);

    expect(host.listening()).toBeDefined();
  });

  it.each(
    rateLimits.flatMap(({ name, env }) => [
      { argv: [`--${name}=1`], variables: { [env ?? ""]: "0" } },
      { argv: [`--${name}=`], variables: {} },
      { argv: [`--${name}=0.0`], variables: {} },
      { argv: [], variables: { [env ?? ""]: "00" } },
    ]),
  )("does not start with $argv $variables, which is not off", async (row) => {
    const host = startable(row.variables);

    await expect(host.run(...insecure, ...row.argv)).rejects.toThrow(
      "not supported: ",
    );
  });

  it("starts with the variables of such flags empty", async () => {
    const host = startable({ COSIGN_KEY: "" });

    await host.run(...insecure);

    expect(host.listening()).toBeDefined();
  });

  it("does not start without the certificates it was told of", async () => {
    const host = startable({ TLS_SERVER_CERTS_DIR: "/nowhere" });

    await expect(
      host.run(...insecure.filter((flag) => flag !== "--insecure")),
    ).rejects.toThrow(
      "cannot read tls.crt of --tls-certs-dir (TLS_SERVER_CERTS_DIR): ENOENT",
    );
  });

  it("serves without TLS when told so, whatever certificates there are", async () => {
    const host = startable({ TLS_SERVER_CERTS_DIR: "/nowhere" });

    await host.run(...insecure);

    expect(host.listening()).toMatchObject({ insecure: true });
    expect(host.lines.filter(({ level }) => level === "warn")).toEqual([
      {
        level: "warn",
        message: "serving without TLS",
        fields: { tlsCertsDir: "/nowhere" },
      },
    ]);
  });
});

describe.skipIf(missingTool("openssl"))("cli/serve with TLS", () => {
  async function serveWithTls() {
    const maker = createCertificateMaker();
    onTestFinished(() => maker.remove());
    maker.authority("ca");
    maker.leaf({ name: "tls", authority: "ca", usage: "serverAuth" });
    const host = startable({ INSECURE: "true" });
    await host.run(
      ...insecure.filter((flag) => flag !== "--insecure"),
      ...["--insecure=false", "--tls-certs-dir", maker.directory],
    );
    return host;
  }

  it("says that it serves with it, and warns of nothing", async () => {
    const host = await serveWithTls();

    expect(host.listening()).toMatchObject({ insecure: false });
    expect(host.lines.filter(({ level }) => level === "warn")).toEqual([]);
  });

  it("counts the clients that it refuses", async () => {
    const host = await serveWithTls();

    const refused = await healthOf(host.listening()?.["address"]).catch(String);

    expect(refused).toContain("UNAVAILABLE");
    const address = String(host.listening()?.["metricsAddress"]);
    expect(await pageAt(address, "/metrics")).toMatch(
      /^function_wasm_clients_refused_total\{reason="handshake"\} [1-9]/m,
    );
  });
});

describe("cli/serve policy and metrics", () => {
  const permitEnv =
    'permit (principal, action == Action::"setEnv", resource);\n';

  it("does not start with an operator policy that does not compile", async () => {
    const file = join(temporaryDirectory(), "policy.cedar");
    writeFileSync(file, 'permit (principal, action == Action::"setEnvv");');
    const host = startable();

    const started = host.run(...insecure, "--sandbox-policy-file", file);

    await expect(started).rejects.toThrow(AdmissionError);
    await expect(started).rejects.toThrow(
      `cannot compile the operator policy (--sandbox-policy-file) ${file}: `,
    );
    expect(host.engineOptions).toEqual([]);
  });

  it("reads the operator policy again when told to, and counts it", async () => {
    const file = join(temporaryDirectory(), "policy.cedar");
    writeFileSync(file, permitEnv);
    const host = startable();
    await host.run(...insecure, "--sandbox-policy-file", file);
    const address = String(host.listening()?.["metricsAddress"]);
    const reloads = async () => {
      const page = await pageAt(address, "/metrics");
      return page
        .split("\n")
        .filter((line) =>
          line.startsWith("function_wasm_policy_reloads_total"),
        );
    };
    expect(await reloads()).toEqual([
      'function_wasm_policy_reloads_total{result="ok"} 0',
      'function_wasm_policy_reloads_total{result="error"} 0',
    ]);

    writeFileSync(file, permitEnv + permitEnv);
    host.reload();

    await expect
      .poll(reloads, { timeout: 5_000 })
      .toContain('function_wasm_policy_reloads_total{result="ok"} 1');
  });

  it("does not end when told to read a policy again that it does not have", async () => {
    const host = startable();
    await host.run(...insecure);

    host.reload();

    expect(host.exits).toEqual([]);
  });

  it("does not start when it cannot serve metrics", async () => {
    const host = startable();
    await host.run(...insecure);
    const taken = String(host.listening()?.["metricsAddress"]);
    const other = startable();

    await expect(
      other.run(...insecure, "--metrics-address", taken),
    ).rejects.toThrow(`cannot listen on --metrics-address ${taken}: `);
  });
});

describe("cli/serve health", () => {
  const asks = (host: ReturnType<typeof startable>) => async (path: string) => {
    const address = String(host.listening()?.["healthAddress"]);
    const response = await fetch(`http://${address}${path}`);
    recordOutput("page", await response.text());
    return response.status;
  };

  it("logs where it answers, and is ready at once without --warm-modules", async () => {
    const host = startable();
    await host.run(...insecure);
    const ask = asks(host);

    expect(host.listening()).toMatchObject({
      healthAddress: expect.stringMatching(/^127\.0\.0\.1:[1-9]\d*$/) as string,
    });
    expect(await ask("/livez")).toBe(200);
    await expect.poll(() => ask("/readyz")).toBe(200);
    expect(host.lines.map(({ message }) => message)).toContain("ready");
  });

  it("is ready when the modules of --warm-modules have been loaded, or failed to", async () => {
    const moduleDir = temporaryDirectory();
    writeFileSync(join(moduleDir, "m.wasm"), "module");
    let finish = (): void => undefined;
    const loaded = new Promise<void>((resolve) => (finish = resolve));
    const host = startable({}, () => loaded);
    await host.run(
      ...insecure,
      `--module-dir=${moduleDir}`,
      "--warm-modules=path:gone.wasm,path:m.wasm",
    );
    const ask = asks(host);
    const grpcHealth = () => healthOf(host.listening()?.["address"]);

    expect(await ask("/livez")).toBe(200);
    expect(await ask("/readyz")).toBe(503);
    expect(await grpcHealth()).toEqual({ status: "NOT_SERVING" });
    finish();
    await expect.poll(() => ask("/readyz")).toBe(200);
    expect(await grpcHealth()).toEqual({ status: "SERVING" });
    const said = host.lines
      .filter(({ message }) => /warm|ready/.test(message))
      .map(({ message, fields }) => [message, fields["reason"]]);
    expect(said).toEqual([
      [
        "cannot load a module of --warm-modules",
        expect.stringContaining("gone.wasm") as string,
      ],
      ["module is warm", undefined],
      ["ready", undefined],
    ]);
  });

  it("does not start when it cannot serve health", async () => {
    const host = startable();
    await host.run(...insecure);
    const taken = String(host.listening()?.["healthAddress"]);

    await expect(
      startable().run(...insecure, "--health-address", taken),
    ).rejects.toThrow(`cannot listen on --health-address ${taken}: `);
  });

  it("answers no more when it has stopped", async () => {
    const host = startable();
    await host.run(...insecure);
    const ask = asks(host);
    await expect.poll(() => ask("/readyz")).toBe(200);

    host.terminate();
    await host.whenExited;

    await expect(ask("/livez")).rejects.toThrow();
  });
});

describe("cli/serve loader", () => {
  it("opens its caches in --cache-dir, and counts what is in them", async () => {
    const cacheDir = join(temporaryDirectory(), "cache");
    mkdirSync(join(cacheDir, "blobs"), { recursive: true });
    writeFileSync(join(cacheDir, "blobs", "sha256-0"), "12345");
    const host = startable();

    await host.run(...insecure, "--cache-dir", cacheDir);

    expect(readdirSync(cacheDir).sort()).toEqual([
      "access",
      "blobs",
      "manifests",
      "refs",
    ]);
    const address = String(host.listening()?.["metricsAddress"]);
    const page = () => pageAt(address, "/metrics");
    await expect
      .poll(page, { timeout: 5_000 })
      .toContain('\nfunction_wasm_module_cache_bytes{cache="blob"} 5\n');
  });

  it("does not start with a cache directory that cannot be opened", async () => {
    const file = join(temporaryDirectory(), "file");
    writeFileSync(file, "no directory");
    const host = startable();

    const started = host.run(...insecure, "--cache-dir", file);

    await expect(started).rejects.toThrow(LoaderError);
    await expect(started).rejects.toMatchObject({ code: "cache-unwritable" });
    await expect(started).rejects.toThrow(
      `cannot open the cache directory (--cache-dir): \`${join(file, "blobs")}\``,
    );
    expect(host.listening()).toBeUndefined();
  });

  it.each([
    {
      name: "a CA that is not there",
      argv: ["--registry-ca", "ghcr.io=/nowhere"],
      want: "--registry-ca ghcr.io: ENOENT",
    },
    {
      name: "a module to warm that is not pinned",
      argv: ["--warm-modules", "ghcr.io/a/b:1"],
      want: '--warm-modules "ghcr.io/a/b:1": expected a reference with a digest',
    },
  ])("does not start with $name", async ({ argv, want }) => {
    const host = startable();

    const started = host.run(...insecure, ...argv);

    await expect(started).rejects.toThrow(ConfigError);
    await expect(started).rejects.toThrow(want);
    expect(host.engineOptions).toEqual([]);
    expect(host.listening()).toBeUndefined();
  });

  it("keeps no connection when it has stopped", async () => {
    const servers = createServers();
    onTestFinished(() => servers.close());
    const port = await servers.http((_, response) => {
      response.writeHead(404, { "content-length": 0 }).end();
    });
    const reference = `127.0.0.1:${port}/a/b@sha256:${"a".repeat(64)}`;
    const host = startable();
    await host.run(
      ...insecure,
      ...["--cache-dir", join(temporaryDirectory(), "cache")],
      ...["--warm-modules", reference],
    );
    await expect
      .poll(() => host.lines.map(({ message }) => message))
      .toContain("ready");
    expect(servers.openConnections).toBe(1);

    host.terminate();
    await host.whenExited;

    await expect.poll(() => servers.openConnections).toBe(0);
  });
});
